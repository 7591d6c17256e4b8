/* SPDX-License-Identifier: Apache-2.0 */
/* src/model/tokenizer: tokenizer.model against what the SentencePiece library gave (ids and text
 * exact), and files that are faulty. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/tap.h"
#include "tests/unit/base64.h"
#include "tests/unit/scratch.h"
#include "tests/unit/tokenizer_golden.h"

static char *golden_model(const char *kind, size_t *n)
{
    char *name = xasprintf("sentencepiece/%s/tokenizer.model", kind),
         *path = tokenizer_golden(name);
    char *at = xmalloc(1 << 20);
    FILE *f = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    *n = fread(at, 1, 1 << 20, f);
    fclose(f);
    free(path);
    free(name);
    return at;
}

/* ---- references ---- */

/* All ids in a row give the library's text. */
static int decodes_all(const struct sh_tokenizer *t, const json_t *wanted)
{
    size_t n = (size_t)sh_tokenizer_size(t), bytes;
    int32_t *ids = xcalloc(n, sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)i;
    char *back = sh_tokenizer_decode(t, ids, n, &bytes);
    int fine = tokenizer_same_text(back, bytes, wanted);
    free(back);
    free(ids);
    return fine;
}

static void one_model(const char *kind, const json_t *model, const json_t *texts)
{
    static char text[1 << 16];
    struct sh_err e = {0};
    char *name = xasprintf("sentencepiece/%s", kind), *folder = tokenizer_golden(name);
    struct sh_tokenizer *t = sh_tokenizer_open(folder, &e);
    const json_t *cases = json_object_get(model, "cases");
    size_t n_bad = 0;
    free(folder);
    free(name);
    if (!t)
        printf("# %s: %s\n", kind, e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(sh_tokenizer_size(t) == json_integer_value(json_object_get(model, "size")));
    CU_ASSERT(tokenizer_bos(t) == json_integer_value(json_object_get(model, "bos")));
    CU_ASSERT(sh_tokenizer_eos(t) == -1);
    CU_ASSERT(decodes_all(t, json_object_get(model, "all")));
    CU_ASSERT_FATAL(json_array_size(cases) == json_array_size(texts));
    for (size_t i = 0; i < json_array_size(texts); i++) {
        size_t n = from_base64(json_string_value(json_array_get(texts, i)), text);
        text[n] = '\0';
        n_bad += !tokenizer_agrees(t, text, n, json_array_get(cases, i));
    }
    if (n_bad)
        printf("# %s: %zu texts differ\n", kind, n_bad);
    CU_ASSERT(n_bad == 0);
    sh_tokenizer_free(t);
}

static void references(void)
{
    json_error_t error;
    char *path = tokenizer_golden("sentencepiece/cases.json");
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error), *texts, *model;
    const char *kind;
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    texts = json_object_get(root, "texts");
    CU_ASSERT(json_array_size(texts) > 60 &&
              json_object_size(json_object_get(root, "models")) >= 10);
    json_object_foreach(json_object_get(root, "models"), kind, model)
        one_model(kind, model, texts);
    json_decref(root);
    free(path);
}

/* ---- faulty files ---- */

struct message { char at[4096]; size_t n; };

static void put_varint(struct message *m, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        m->at[m->n++] = (char)(v | 0x80);
    m->at[m->n++] = (char)v;
}

static void put_number(struct message *m, unsigned field, uint64_t value)
{
    put_varint(m, field << 3);
    put_varint(m, value);
}

static void put_bytes(struct message *m, unsigned field, const char *at, size_t n)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, n);
    memcpy(m->at + m->n, at, n);
    m->n += n;
}

static void put_piece(struct message *m, const char *text, float score, unsigned type)
{
    struct message piece = {.n = 0};
    put_bytes(&piece, 1, text, strlen(text));
    put_varint(&piece, 2 << 3 | 5);
    memcpy(piece.at + piece.n, &score, sizeof score);
    piece.n += sizeof score;
    put_number(&piece, 3, type);
    put_bytes(m, 1, piece.at, piece.n);
}

/* <unk>, a, b, ab; then trainer_spec with one number. */
static void begin(struct message *m, unsigned field, uint64_t value)
{
    struct message trainer = {.n = 0};
    m->n = 0;
    put_piece(m, "<unk>", 0, 2);
    put_piece(m, "a", -1, 1);
    put_piece(m, "b", -2, 1);
    put_piece(m, "ab", -3, 1);
    put_number(&trainer, 3, 2);
    put_number(&trainer, field, value);
    put_bytes(m, 2, trainer.at, trainer.n);
}

static int refuses(const struct message *m, const char *why)
{
    struct sh_err e = {0};
    scratch_write("tokenizer.model", m->at, m->n);
    struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
    int fine = !t && strstr(e.text, why) && strstr(e.text, "tokenizer.model");
    if (!fine)
        printf("# expected \"%s\", found \"%s\"\n", why, t ? "an open tokenizer" : e.text);
    sh_tokenizer_free(t);
    return fine;
}

static void refused_messages(void)
{
    struct message m = {.n = 0};
    CU_ASSERT(refuses(&m, "found no pieces"));
    put_varint(&m, 7);
    CU_ASSERT(refuses(&m, "not a protobuf message"));
    m.n = 0;
    put_varint(&m, 1 << 3 | 3);
    CU_ASSERT(refuses(&m, "field 1 has wire type 3"));
    m.n = 0;
    put_varint(&m, 1 << 3 | 2);
    put_varint(&m, UINT64_MAX);
    CU_ASSERT(refuses(&m, "field 1 extends past the end of its message"));
    m.n = 0;
    put_number(&m, 1, 5);
    CU_ASSERT(refuses(&m, "piece: found wire type 0, expected 2"));
    m.n = 0;
    put_bytes(&m, 1, "\x0a\x09" "ab", 4);
    CU_ASSERT(refuses(&m, "piece 0: field 1 extends past the end"));
    m.n = 0;
    memcpy(m.at, "IQ== 0\nIg== 1\n", 14);
    m.n = 14;
    CU_ASSERT(refuses(&m, "tokenizer_class nothing is not known"));
    memset(m.at, 0xff, 40);
    m.n = 40;
    CU_ASSERT(refuses(&m, "not a protobuf message"));
    scratch_clear();
}

static void refused_specs(void)
{
    static const struct { unsigned field; uint64_t value; const char *why; } bad[] = {
        {3, 3, "model_type 3 is not supported"},
        {3, 4, "model_type 4 is not supported"},
        {3, UINT64_MAX, "model_type -1 is not supported"},
        {24, 1, "treat_whitespace_as_suffix is not supported"},
        {35, 1, "no token for byte 0x00"}};
    struct message m, part;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        begin(&m, bad[i].field, bad[i].value);
        CU_ASSERT(refuses(&m, bad[i].why));
    }
    begin(&m, 99, 0);
    part.n = 0;
    put_bytes(&part, 2, "map", 3);
    put_bytes(&m, 5, part.at, part.n);
    CU_ASSERT(refuses(&m, "denormalizer_spec: precompiled_charsmap"));
    begin(&m, 99, 0);
    put_bytes(&m, 3, part.at, part.n);
    CU_ASSERT(refuses(&m, "precompiled_charsmap: not a valid map: 3 bytes with an array of 0 bytes"));
    begin(&m, 99, 0);
    part.n = 0;
    put_bytes(&part, 2, "\xf0\xff\xff\xff" "abcd\0", 9);
    put_bytes(&m, 3, part.at, part.n);
    CU_ASSERT(refuses(&m, "array of 4294967280 bytes"));
    scratch_clear();
}

static void refused_pieces(void)
{
    static const struct { const char *text; float score; unsigned type; const char *why; } bad[] = {
        {"", 0, 1, "token 4 has 0 bytes"},
        {"\xff", 0, 1, "token 4 is not valid UTF-8"},
        {"ab", 0, 1, "token 4: \"ab\" is a duplicate"},
        {"c", 0, 0, "token 4 has type 0"},
        {"c", 0, 7, "token 4 has type 7"},
        {"c", 0, 2, "tokens 0 and 4 are both of type unknown"},
        {"<0x41>", 0, 6, "is of type byte, but byte_fallback is off"},
        {"<0xzz>", 0, 6, "is of type byte, but its text is not <0xXX>"}};
    struct message m;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        begin(&m, 99, 0);
        put_piece(&m, bad[i].text, bad[i].score, bad[i].type);
        CU_ASSERT(refuses(&m, bad[i].why));
    }
    begin(&m, 99, 0);
    put_piece(&m, "c", 1.0f / 0.0f, 1);
    CU_ASSERT(refuses(&m, "token 4, \"c\", has score inf"));
    begin(&m, 3, 1);
    put_piece(&m, "c", -1.0f / 0.0f, 1);
    CU_ASSERT(refuses(&m, "\"c\" has score -inf"));
    m.n = 0;
    put_piece(&m, "a", 0, 1);
    put_bytes(&m, 2, "\x18\x02", 2);
    CU_ASSERT(refuses(&m, "neither an unknown token nor a token for each byte"));
    scratch_clear();
}

/* Cut short, or with bytes changed, a file is refused or opens as some tokenizer; never worse. */
static void damaged(void)
{
    static const char *const kinds[] = {"rules", "unigram", "gemma"};
    static const char text[] = "<s> The user\xc3\xa9 12  \xef\xac\x81ne<b> \xe2\x85\xa7";
    for (int k = 0; k < 3; k++) {
        size_t n;
        int opened = 0;
        char *whole = golden_model(kinds[k], &n);
        for (uint64_t i = 0; i < 400; i++) {
            size_t at = sh_rng(2, 2 * i) % n, length = i % 4 ? n : sh_rng(5, i) % n;
            char old = whole[at];
            whole[at] = (char)(sh_rng(3, i) & 255);
            scratch_write("tokenizer.model", whole, length);
            opened += tokenizer_tried(scratch_folder(), text);
            whole[at] = old;
        }
        CU_ASSERT(opened > 0 && opened < 400);
        free(whole);
    }
    scratch_clear();
}

/* ---- folders ---- */

/* Files next to tokenizer.model: the start token, tokens that are cut out of the text, new ones. */
static void next_to(void)
{
    static const char config[] =
        "{\"add_bos_token\":false,\"add_eos_token\":true,\"eos_token\":\"</s>\","
        "\"added_tokens_decoder\":{\"1\":{\"content\":\"<s>\",\"special\":true},"
        "\"600\":{\"content\":\"<new>\",\"special\":false}}}";
    struct sh_err e = {0};
    struct sh_ids ids = {0};
    size_t n, bytes;
    char *whole = golden_model("llama", &n);
    scratch_write("tokenizer.model", whole, n);
    scratch_write("tokenizer_config.json", config, sizeof config - 1);
    struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
    if (!t)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(tokenizer_bos(t) == -1 && sh_tokenizer_eos(t) == 2);
    CU_ASSERT(sh_tokenizer_encode(t, "<s><new>", 8, 1, &ids, &e) == 0);
    CU_ASSERT(ids.n == 3 && ids.at[0] == 1 && ids.at[1] == 600 && ids.at[2] == 2);
    char *back = sh_tokenizer_decode(t, ids.at, ids.n, &bytes);
    CU_ASSERT_STRING_EQUAL(back, "<new>");
    CU_ASSERT_STRING_EQUAL(sh_tokenizer_piece(t, 600), "<new>");
    free(back);
    free(ids.at);
    free(whole);
    sh_tokenizer_free(t);
    scratch_clear();
}

/* The space in front, as LlamaTokenizerFast of transformers 4.46.3 has it for the same files. */
static void space_in_front(void)
{
    enum { MOST = 6 };
    static const struct { const char *flags, *text; int32_t ids[MOST]; } cases[] = {
        {"", "the of", {269, 302}}, {"", "of</s>the", {302, 2, 269}}, {"", "</s> the", {2, 539, 269}},
        {"\"legacy\":false,", "the of", {269, 302}}, {"\"legacy\":false,", "of</s>the", {302, 2, 541, 260}},
        {"\"legacy\":false,", "</s> the", {2, 269}}, {"\"legacy\":false,", " the", {269}},
        {"", " the", {539, 269}},
        {"\"legacy\":false,", "<s>of </s>", {1, 542, 557, 539, 2}}, {"\"legacy\":null,", "of</s>the", {302, 2, 269}},
        {"\"legacy\":false,\"add_prefix_space\":false,", "the of", {541, 260, 302}},
        {"\"legacy\":false,\"add_prefix_space\":false,", "of</s>the", {542, 557, 2, 541, 260}},
        {"\"add_prefix_space\":null,", "the of", {269, 302}}};
    size_t n;
    char *whole = golden_model("llama", &n);
    scratch_write("tokenizer.model", whole, n);
    free(whole);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *config = xasprintf("{%s\"added_tokens_decoder\":{\"1\":{\"content\":\"<s>\"},"
                                 "\"2\":{\"content\":\"</s>\"}}}", cases[i].flags);
        scratch_write("tokenizer_config.json", config, strlen(config));
        free(config);
        struct sh_err e = {0};
        struct sh_ids ids = {0};
        struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(t);
        CU_ASSERT(sh_tokenizer_encode(t, cases[i].text, strlen(cases[i].text), 0, &ids, &e) == 0);
        int wanted = 0;
        while (wanted < MOST && cases[i].ids[wanted])
            wanted++;
        CU_ASSERT(ids.n == (size_t)wanted && !memcmp(ids.at, cases[i].ids, ids.n * sizeof *ids.at));
        free(ids.at);
        sh_tokenizer_free(t);
    }
    scratch_clear();
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"tokenizer.model of every kind: every reference case", references},
        {"messages: each fault has its sentence", refused_messages},
        {"specifications: each fault has its sentence", refused_specs},
        {"pieces: each fault has its sentence", refused_pieces},
        {"damaged files", damaged},
        {"the files next to tokenizer.model", next_to},
        {"the space before a text, and after special tokens", space_in_front},
        {0}};
    return tap_run("tokenizer_model", tests);
}
