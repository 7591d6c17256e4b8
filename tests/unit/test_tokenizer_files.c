/* SPDX-License-Identifier: Apache-2.0 */
/* src/model/tokenizer: files that are faulty or hostile. Each fault has its sentence. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/tokenizer/tok_regex.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"
#include "tests/unit/tokenizer_golden.h"

static struct sh_tokenizer *open_text(const char *tokenizer_json, struct sh_err *e)
{
    scratch_write("tokenizer.json", tokenizer_json, strlen(tokenizer_json));
    return sh_tokenizer_open(scratch_folder(), e);
}

/* The folder as it now is must be refused, saying `why`. */
static int refuses(const char *why)
{
    return tokenizer_refuses(scratch_folder(), why);
}

#define MODEL(vocab, merges) \
    "\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}"
#define AB MODEL("{\"a\":0,\"b\":1,\"ab\":2}", "[\"a b\"]")

static const struct { const char *content, *why; } bad_json[] = {
    {"", "not valid JSON"},
    {"[]", "found an array, expected an object"},
    {"{" AB, "not valid JSON"},
    {"{" AB "," AB "}", "duplicate object key"},
    {"{}", "model: found nothing"},
    {"{\"model\":7}", "model: found an integer"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}", "WordLevel is not supported"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "an array with 0 entries"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{\"a\":0}}}", "found an object"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "number 0: expected [token, score]"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0],[\"a\",1]]}}", "\"a\" is a duplicate"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":1}}",
     "unk_id: expected the id"},
    {"{\"model\":{\"type\":3,\"vocab\":{\"a\":0}}}", "type: an integer is not supported"},
    {"{\"model\":{\"vocab\":{\"a\":0}}}", "neither a type nor merges"},
    {"{" MODEL("[]", "[]") "}", "vocab: found an array"},
    {"{" MODEL("{}", "[]") "}", "vocab: found no tokens"},
    {"{" MODEL("{\"a\":\"0\"}", "[]") "}", "token \"a\": found a string"},
    {"{" MODEL("{\"a\":1.5}", "[]") "}", "token \"a\": found a real number"},
    {"{" MODEL("{\"a\":-1}", "[]") "}", "\"a\" has id -1"},
    {"{" MODEL("{\"a\":4194304}", "[]") "}", "\"a\" has id 4194304"},
    {"{" MODEL("{\"a\":9223372036854775807}", "[]") "}", "id 9223372036854775807"},
    {"{" MODEL("{\"a\":99999999999999999999}", "[]") "}", "too big integer"},
    {"{" MODEL("{\"a\":0,\"b\":0}", "[]") "}", "tokens \"a\" and \"b\" both have id 0"},
    {"{" MODEL("{\"a\":0,\"a\":1}", "[]") "}", "duplicate object key"},
    {"{" MODEL("{\"a\":0}", "{}") "}", "merges: found an object"},
    {"{" MODEL("{\"a\":0}", "[\"a b\"]") "}",
     "merges: number 0: token \"b\" is not in the vocabulary"},
    {"{" MODEL("{\"a\":0,\"b\":1}", "[\"a b\"]") "}", "token \"ab\" is not in the vocabulary"},
    {"{" MODEL("{\"a\":0}", "[\"aa\"]") "}", "two tokens separated by one space"},
    {"{" MODEL("{\"a\":0}", "[\"a a a\"]") "}", "two tokens separated by one space"},
    {"{" MODEL("{\"a\":0}", "[[\"a\"]]") "}", "found an array"},
    {"{" MODEL("{\"a\":0}", "[[\"a\",1]]") "}", "found an integer in a pair"},
    {"{" MODEL("{\"a\":0}", "[7]") "}", "merges: number 0: found an integer"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"unk_token\":\"b\"}}",
     "unk_token: \"b\""},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"unk_token\":1}}",
     "unk_token: found an integer"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"dropout\":0.1}}", "dropout"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"fuse_unk\":1}}",
     "fuse_unk: found an integer"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"end_of_word_suffix\":\"</w>\"}}",
     "end_of_word_suffix"},
    {"{\"normalizer\":{\"type\":\"Nmt\"}," AB "}", "normalizer: Nmt is not supported"},
    {"{\"normalizer\":{\"type\":\"Strip\",\"strip_left\":1}," AB "}",
     "normalizer: Strip: strip_left: found an integer"},
    {"{\"normalizer\":{\"type\":\"Sequence\"}," AB "}", "expected an array of normalizers"},
    {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Bert\"}]}," AB "}",
     "Bert is not"},
    {"{\"normalizer\":\"NFC\"," AB "}", "normalizer: found a string"},
    {"{\"normalizer\":{\"type\":\"Prepend\"}," AB "}",
     "normalizer: Prepend: prepend: found nothing"},
    {"{\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":"
     "{\"String\":\"\"}}," AB "}",
     "is empty"},
    {"{\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}," AB "}",
     "pre_tokenizer: UnicodeScripts is not supported"},
    {"{\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Odd\"}," AB "}",
     "Punctuation: behavior: Odd is not"},
    {"{\"pre_tokenizer\":[]," AB "}", "pre_tokenizer: found an array"},
    {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"use_regex\":\"no\"}," AB "}",
     "use_regex: found a string"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\"}," AB "}", "behavior: found nothing"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Odd\"}," AB "}",
     "behavior: Odd is not"},
    {"{\"decoder\":{\"type\":\"WordPiece\"}," AB "}", "decoder: WordPiece is not supported"},
    {"{\"decoder\":{\"type\":\"Strip\",\"content\":\"ab\",\"start\":1,\"stop\":0}," AB "}",
     "one character"},
    {"{\"decoder\":{\"type\":\"Strip\",\"content\":\"a\",\"start\":-1,\"stop\":0}," AB "}",
     "start, stop"},
    {"{\"post_processor\":{\"type\":\"Odd\"}," AB "}", "post_processor: Odd is not"},
    {"{\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"z\",9]},"
     AB "}",
     "BertProcessing: sep: expected [token, id]"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}," AB "}",
     "TemplateProcessing: single"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":"
     "[{\"SpecialToken\":{\"id\":\"x\"}},"
     "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"x\":{\"ids\":[9]}}}," AB "}",
     "id of one known token"},
    {"{\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},"
     "{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"b\",1]},"
     "{\"type\":\"RobertaProcessing\",\"cls\":[\"a\",0],\"sep\":[\"b\",1]}]}," AB "}",
     "RobertaProcessing: found a second step that adds tokens"},
    {"{\"added_tokens\":{}," AB "}", "added_tokens: found an object"},
    {"{\"added_tokens\":[1]," AB "}", "added_tokens: number 0: found an integer"},
    {"{\"added_tokens\":[{\"id\":5}]," AB "}", "content: found nothing"},
    {"{\"added_tokens\":[{\"content\":\"x\"}]," AB "}", "id: found nothing"},
    {"{\"added_tokens\":[{\"content\":\"x\",\"id\":-5}]," AB "}", "id -5"},
    {"{\"added_tokens\":[{\"content\":\"x\",\"id\":2147483648}]," AB "}", "id 2147483648"},
    {"{\"added_tokens\":[{\"content\":\"x\",\"id\":1}]," AB "}", "id 1 is already used by \"b\""},
    {"{\"added_tokens\":[{\"content\":\"a\",\"id\":7}]," AB "}",
     "id 7, expected 0"},
    {"{\"added_tokens\":[{\"content\":\"x\",\"id\":7,\"lstrip\":2}]," AB "}",
     "lstrip: found an integer"}};

static void refused_tokenizer_json(void)
{
    for (size_t i = 0; i < sizeof bad_json / sizeof *bad_json; i++) {
        scratch_write("tokenizer.json", bad_json[i].content, strlen(bad_json[i].content));
        CU_ASSERT(refuses(bad_json[i].why));
    }
    scratch_clear();
}

static void long_token(void)
{
    char name[4098];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int fits = 0; fits < 2; fits++) {
        char *text = xasprintf("{" MODEL("{\"%s\":0}", "[]") "}", name + fits);
        scratch_write("tokenizer.json", text, strlen(text));
        struct sh_err e;
        struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
        CU_ASSERT(fits ? t != NULL : !t && strstr(e.text, "has 4097 bytes, expected at most 4096"));
        sh_tokenizer_free(t);
        free(text);
    }
    scratch_clear();
}

static void refused_patterns(void)
{
    static const struct { const char *regex, *why; } bad[] = {
        {"(", "missing closing parenthesis"},   {"[a-", "missing terminating ]"},  {"[a&&b]",
         "intersection &&"},
        {"[a[^b]]", "inner set"},               {"\\\\h+", "\\h at byte 0"},       {"[\\\\W]",
         "\\W within brackets"},
        {"a{1,3}+", "repeated interval"},       {"\\\\p{Nope}", "unknown property"}, {"\\\\C",
         "\\C"},
        {"\\\\X", "\\X at byte 0"},            {"a\\\\V", "\\V at byte 1"},      {"[\\\\X]",
         "\\X within brackets"},
        {"[[:punct:]]", "class [:punct at byte 1"}, {"[[:^alpha:]]", "class [:^alpha at byte 1"},
        {"[[:", "class [: at byte 1"},          {"[[:alpha:", "class [:alpha at byte 1"},
        {"\\\\", "\\ at end of pattern"},       {"\\\\p{", "malformed"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *text = xasprintf("{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
                               "\"pattern\":{\"Regex\":\"%s\"}}," AB "}", bad[i].regex);
        scratch_write("tokenizer.json", text, strlen(text));
        CU_ASSERT(refuses(bad[i].why));
        free(text);
    }
    scratch_clear();
}

static void catastrophic_regex(void)
{
    struct sh_err e = {0};
    struct sh_tokenizer *t = open_text("{\"pre_tokenizer\":{\"type\":\"Split\","
                                       "\"behavior\":\"Isolated\",\"pattern\":"
                                       "{\"Regex\":\"(?:a+)+[bc]\"}}," AB "}", &e);
    struct sh_ids ids = {0};
    char text[64];
    memset(text, 'a', sizeof text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(sh_tokenizer_encode(t, "aab", 3, 0, &ids, &e) == 0 && ids.n == 2);
    CU_ASSERT(sh_tokenizer_encode(t, text, sizeof text, 0, &ids, &e) == -1 && ids.n == 2);
    CU_ASSERT(strstr(e.text, "failed at byte 0 of 64: match limit exceeded") != NULL);
    free(ids.at);
    sh_tokenizer_free(t);
    scratch_clear();
}

/* Each match stays within its limits; all of them together do not. */
static void slow_matches(void)
{
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaa";      /* more than a quick match's steps */
    struct sh_err e = {0};
    struct sh_regex *r = sh_regex_new("(?:a+)+[bc]", 11, 0, &e);
    struct sh_text with = {0}, out = {0};
    struct sh_watch watch;
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    sh_watch_begin(&watch, 100, 0);
    CU_ASSERT(sh_regex_replace(r, text, 19, &with, &out, &watch, &e) == 0 && out.n == 19);
    sh_watch_begin(&watch, -1, 0);
    CU_ASSERT(sh_regex_replace(r, text, 5, &with, &out, &watch, &e) == 0);
    CU_ASSERT(sh_regex_replace(r, text, 19, &with, &out, &watch, &e) == -1);
    CU_ASSERT(strstr(e.text, "a regular expression takes too long: stopped at byte 0 of 19") != NULL);
    CU_ASSERT(sh_regex_replace(r, text, 5, &with, &out, &watch, &e) == -1);
    free(out.at);
    sh_regex_free(r);
}

/* A text of `n` times `unit`, malloc'ed. */
static char *repeated(const char *unit, size_t n)
{
    size_t length = strlen(unit);
    char *text = xmalloc(n * length + 1);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * length, unit, length);
    text[n * length] = '\0';
    return text;
}

/* Files that are small and sound but want far too much. */
static void too_much(void)
{
    static const struct { const char *part, *unit; size_t n; const char *rest, *why; } bad[] = {
        {"\"added_tokens\":[{\"id\":5,\"content\":\"", "x", 513, "\"}]",
         "has 513 bytes, expected at most 512"},
        {"\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"", "x", 513, "\"}",
         "Prepend: prepend: found 513 bytes"},
        {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[", "{\"type\":\"NFC\"},", 65,
         "{\"type\":\"NFC\"}]}", "steps, expected at most 64"},
        {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[",
         "{\"type\":\"ByteLevel\"},", 65, "{\"type\":\"ByteLevel\"}]}", "steps, expected at most 64"},
        {"\"decoder\":{\"type\":\"Sequence\",\"decoders\":[", "{\"type\":\"Fuse\"},", 65,
         "{\"type\":\"Fuse\"}]}", "steps, expected at most 64"},
        {"\"pre_tokenizer\":", "{\"type\":\"Sequence\",\"pretokenizers\":[", 17,
         "]}]}]}]}]}]}]}]}]}]}]}]}]}]}]}]}]}",
         "at depth 16"},
        {"\"a\":", "[", 3000, "", "maximum parsing depth reached"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *units = repeated(bad[i].unit, bad[i].n);
        char *text = xasprintf("{%s%s%s," AB "}", bad[i].part, units, bad[i].rest);
        scratch_write("tokenizer.json", text, strlen(text));
        CU_ASSERT(refuses(bad[i].why));
        free(text);
        free(units);
    }
    scratch_clear();
}

/* Steps that multiply a text are stopped, not followed into terabytes. */
static void growing(void)
{
    static const struct { const char *head, *unit, *tail, *why; } bad[] = {
        {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[",
         "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaaa\"},",
         "{\"type\":\"NFC\"}]}", "the text after replacement exceeds"},
        {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[",
         "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":false},",
         "{\"type\":\"Digits\"}]}", "the text after the pre_tokenizer exceeds"}};
    for (size_t i = 0; i < 2; i++) {
        struct sh_err e = {0};
        struct sh_ids ids = {0};
        char *units = repeated(bad[i].unit, 30), *input = repeated("a\xc3\xa9", 10000);
        char *text = xasprintf("{%s%s%s," AB "}", bad[i].head, units, bad[i].tail);
        struct sh_tokenizer *t = open_text(text, &e);
        if (!t)
            printf("# %s\n", e.text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(t);
        CU_ASSERT(sh_tokenizer_encode(t, input, strlen(input), 0, &ids, &e) == -1);
        CU_ASSERT(strstr(e.text, bad[i].why) != NULL);
        sh_tokenizer_free(t);
        free(ids.at);
        free(text);
        free(units);
        free(input);
    }
    scratch_clear();
}

static void holes_and_missing_characters(void)
{
    struct sh_err e = {0};
    struct sh_tokenizer *t = open_text("{\"added_tokens\":[{\"content\":\"<x>\",\"id\":9}],"
                                       MODEL("{\"a\":3,\"b\":0,\"ab\":7}",
                                             "[[\"a\",\"b\"]]") "}", &e);
    struct sh_ids ids = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(sh_tokenizer_size(t) == 10 && tokenizer_bos(t) == -1);
    CU_ASSERT_PTR_NULL(sh_tokenizer_piece(t, 1));
    CU_ASSERT(sh_tokenizer_encode(t, "aab<x>", 6, 1, &ids, &e) == 0);
    CU_ASSERT(ids.n == 3 && ids.at[0] == 3 && ids.at[1] == 7 && ids.at[2] == 9);
    CU_ASSERT(sh_tokenizer_encode(t, "ab\xc3\xa9", 4, 1, &ids, &e) == -1 && ids.n == 3);
    CU_ASSERT(strstr(e.text, "no token for the character U+00E9") != NULL);
    free(ids.at);
    sh_tokenizer_free(t);
    scratch_clear();
}

/* What the classes of transformers 4.46.3 do with the flags next to a tokenizer.json. */
static void flags_by_class(void)
{
    static const struct { const char *class; int heeds; } cases[] = {
        {"\"tokenizer_class\":\"LlamaTokenizer\",", 1}, {"\"tokenizer_class\":\"LlamaTokenizerFast\",", 1},
        {"\"tokenizer_class\":\"CodeLlamaTokenizerFast\",", 1}, {"\"tokenizer_class\":\"GemmaTokenizer\",", 1},
        {"\"tokenizer_class\":\"GPTNeoXTokenizerFast\",", 1}, {"\"tokenizer_class\":\"CohereTokenizerFast\",", 1},
        {"", 1}, {"\"tokenizer_class\":null,", 1}, {"\"tokenizer_class\":\"GPT2Tokenizer\",", 0},
        {"\"tokenizer_class\":\"Qwen2Tokenizer\",", 0}, {"\"tokenizer_class\":\"PreTrainedTokenizerFast\",", 0},
        {"\"tokenizer_class\":\"LlamaTokenizerOfOurs\",", 0}};
    const char *json = "{\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],"
                       "\"sep\":[\"b\",1]}," AB "}";
    scratch_write("tokenizer.json", json, strlen(json));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *config = xasprintf("{%s\"add_bos_token\":true,\"bos_token\":\"b\",\"add_eos_token\":false}",
                                 cases[i].class);
        scratch_write("tokenizer_config.json", config, strlen(config));
        free(config);
        struct sh_err e = {0};
        struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(t);
        CU_ASSERT(tokenizer_bos(t) == 0 && sh_tokenizer_eos(t) == (cases[i].heeds ? -1 : 1));
        sh_tokenizer_free(t);
    }
    scratch_clear();
}

/* GLM's template has two tokens before the text. */
static void two_before(void)
{
    static const char text[] =
        "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}},"
        "{\"SpecialToken\":{\"id\":\"y\"}},{\"Sequence\":{\"id\":\"A\"}}],"
        "\"special_tokens\":{\"x\":{\"ids\":[2]},\"y\":{\"ids\":[0]}}},"
        MODEL("{\"a\":0,\"b\":1,\"ab\":2}", "[[\"a\",\"b\"]]") "}";
    struct sh_err e = {0};
    struct sh_ids ids = {0};
    struct sh_tokenizer *t = open_text(text, &e);
    const int32_t *start, wanted[] = {2, 0, 2, 1};
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(sh_tokenizer_start(t, &start) == 2 && start[0] == 2 && start[1] == 0 && sh_tokenizer_eos(t) == -1);
    CU_ASSERT(sh_tokenizer_encode(t, "abb", 3, 1, &ids, &e) == 0);
    CU_ASSERT(ids.n == 4 && !memcmp(ids.at, wanted, sizeof wanted));
    free(ids.at);
    sh_tokenizer_free(t);
    scratch_clear();
}

/* vocab.json and merges.txt: what the classes of transformers add to what the files say. */
static void classes_of_pairs(void)
{
    static const char vocab[] = "{\"e\":0,\"\u00cc\":1,\"\u0123\":2,\"\u00c3\":3,\"\u00a9\":4,\"<|endoftext|>\":5}";
    static const struct { const char *config; int n; int32_t ids[4]; } cases[] = {
        {"{\"tokenizer_class\":\"GPTNeoXTokenizer\"}", 3, {3, 4, 5}},      /* NFC */
        {"{\"tokenizer_class\":\"GPT2Tokenizer\"}", 4, {0, 1, 2, 5}},
        {"{\"pad_token\":\"<p>\"}", 4, {0, 1, 2, 5}}};
    struct sh_err e = {0};
    scratch_write("vocab.json", vocab, sizeof vocab - 1);
    scratch_write("merges.txt", "#version: 0.2\n", 14);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sh_ids ids = {0};
        scratch_write("tokenizer_config.json", cases[i].config, strlen(cases[i].config));
        struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(t);
        CU_ASSERT(sh_tokenizer_encode(t, "e\xcc\x81<|endoftext|>", 16, 0, &ids, &e) == 0);
        CU_ASSERT(ids.n == (size_t)cases[i].n && !memcmp(ids.at, cases[i].ids, ids.n * sizeof *ids.at));
        free(ids.at);
        sh_tokenizer_free(t);
    }
    scratch_clear();
}

static void refused_folders(void)
{
    const char *vocab = "{\"a\":0,\"b\":1,\"ab\":2}";
    const char *config = "{\"add_bos_token\":true,\"bos_token\":\"q\","
                         "\"model_max_length\":1000000000000000019884624838656}";
    CU_ASSERT(refuses("expected tokenizer.json, vocab.json"));
    scratch_write("tokenizer.model", "x", 1);
    CU_ASSERT(refuses("tokenizer.model: field 15 extends past the end"));
    scratch_write("vocab.json", vocab, strlen(vocab));
    CU_ASSERT(refuses("tokenizer.model"));
    scratch_write("merges.txt", "#version: 0.2\na b\nb\n", 20);
    CU_ASSERT(refuses("merges: number 1: found \"b\""));
    scratch_write("merges.txt", "a b\n\xff \n", 8);
    CU_ASSERT(refuses("line 2 is not UTF-8"));
    scratch_write("merges.txt", "a b\r\n", 5);
    scratch_write("special_tokens_map.json", "{", 1);
    CU_ASSERT(refuses("special_tokens_map.json: not valid JSON"));
    scratch_write("special_tokens_map.json", "{\"pad_token\":\"p\"}", 17);
    scratch_write("tokenizer_config.json", "{\"tokenizer_class\":\"CLIPTokenizer\"}", 35);
    CU_ASSERT(refuses("CLIPTokenizer without a tokenizer.json is not supported"));
    scratch_write("tokenizer_config.json", "{\"add_bos_token\":true}", 22);
    CU_ASSERT(refuses("bos_token: found nothing"));
    scratch_write("tokenizer_config.json", config, strlen(config));
    struct sh_err e = {0};
    struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(sh_tokenizer_size(t) == 5 && tokenizer_bos(t) == 3);     /* q and p are next */
    CU_ASSERT_STRING_EQUAL(sh_tokenizer_piece(t, 4), "p");
    sh_tokenizer_free(t);
    scratch_write("tokenizer_config.json", "{\"add_eos_token\":true}", 22);
    CU_ASSERT(refuses("eos_token: found nothing"));
    scratch_clear();
}

/* tests/oracle/tokenizer_folders.py: what files next to a tokenizer.json add. */
static void named_tokens(void)
{
    json_t *all = tokenizer_golden_json("folders.json"), *one, *content;
    const char *file;
    size_t i;
    CU_ASSERT(json_array_size(all) == 42);
    json_array_foreach(all, i, one) {
        struct sh_err e = {0};
        char name[80];
        snprintf(name, sizeof name, "%s/tokenizer.json", json_string_value(json_object_get(one, "base")));
        json_t *whole = tokenizer_golden_json(name);
        char *text = json_dumps(whole, JSON_COMPACT);
        const char *input = json_string_value(json_object_get(one, "text"));
        scratch_clear();
        scratch_write("tokenizer.json", text, strlen(text));
        free(text);
        json_decref(whole);
        json_object_foreach(json_object_get(one, "files"), file, content) {
            text = json_dumps(content, JSON_COMPACT);
            scratch_write(file, text, strlen(text));
            free(text);
        }
        struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
        struct sh_ids ids = {0};
        const json_t *wanted = json_object_get(one, "ids");
        int fine = t && !sh_tokenizer_encode(t, input, strlen(input), 0, &ids, &e) && ids.n == json_array_size(wanted);
        for (size_t k = 0; fine && k < ids.n; k++)
            fine = ids.at[k] == json_integer_value(json_array_get(wanted, k));
        if (!fine)
            printf("# %s, %s: %s\n", json_string_value(json_object_get(one, "base")),
                   json_string_value(json_object_get(one, "name")), t ? "other ids" : e.text);
        CU_ASSERT(fine);
        free(ids.at);
        sh_tokenizer_free(t);
    }
    json_decref(all);
    scratch_clear();
}

/* Cut short, or with bytes changed, a file is refused or opens as some tokenizer; never worse. */
static void damaged_files(void)
{
    static const char *const kinds[] = {"gpt2_bpe/tokenizer.json", "llama2_sp/tokenizer.json"};
    static const char text[] = "<s> The work\xc3\xa9 12 <|endoftext|>";
    for (int k = 0; k < 2; k++) {
        json_t *root = tokenizer_golden_json(kinds[k]);
        char *whole = json_dumps(root, 0);
        size_t n = strlen(whole);
        int opened = 0;
        json_decref(root);
        for (size_t cut = 0; cut < n; cut += 997) {
            scratch_write("tokenizer.json", whole, cut);
            CU_ASSERT(refuses("not valid JSON"));
        }
        for (uint64_t i = 0; i < 300; i++) {
            size_t at = sh_rng(2, 2 * i) % (i % 2 ? n : 1500);
            char old = whole[at];
            whole[at] = "0129\"ab\\[]{}:,"[sh_rng(2, 2 * i + 1) % 14];
            if (i % 3 == 0)
                whole[at] = (char)(sh_rng(3, i) & 255);
            scratch_write("tokenizer.json", whole, n);
            opened += tokenizer_tried(scratch_folder(), text);
            whole[at] = old;
        }
        CU_ASSERT(opened > 0 && opened < 300);
        free(whole);
    }
    scratch_clear();
}

/* As many tokens in tokenizer_config.json as in tokenizer.json: each is looked up, not searched for. */
static void many_named_tokens(void)
{
    enum { MANY = 30000 };
    for (int is_unigram = 0; is_unigram < 2; is_unigram++) {
        json_t *vocab = json_array(), *added = json_array(), *decoder = json_object();
        for (int i = 0; i < MANY; i++) {
            char id[16], text[16];
            snprintf(id, sizeof id, "%d", MANY + i);
            snprintf(text, sizeof text, "<t%d>", i);
            json_array_append_new(vocab, json_pack("[s+f]", "u", text, -1.0));
            json_object_set_new(decoder, id, json_pack("{s:s, s:b}", "content", text, "lstrip", 1));
            if (!is_unigram)
                json_array_append_new(added, json_pack("{s:s, s:i}", "content", text, "id", MANY + i));
        }
        json_t *root = is_unigram
            ? json_pack("{s:{s:s, s:i, s:o}, s:o}", "model", "type", "Unigram", "unk_id", 0, "vocab", vocab,
                        "added_tokens", added)
            : json_pack("{s:{s:s, s:{s:i}, s:[]}, s:o}", "model", "type", "BPE", "vocab", "a", 0, "merges",
                        "added_tokens", added);
        json_t *config = json_pack("{s:o}", "added_tokens_decoder", decoder);
        char *whole = json_dumps(root, 0), *named = json_dumps(config, 0);
        scratch_write("tokenizer_config.json", named, strlen(named));
        struct sh_err e = {0};
        clock_t before = clock();
        struct sh_tokenizer *t = open_text(whole, &e);
        CU_ASSERT((double)(clock() - before) < 8.0 * CLOCKS_PER_SEC);
        CU_ASSERT(t && sh_tokenizer_size(t) == 2 * MANY);
        sh_tokenizer_free(t);
        free(whole);
        free(named);
        json_decref(root);
        json_decref(config);
        if (!is_unigram)
            json_decref(vocab);
        scratch_clear();
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"tokenizer.json: each fault has its sentence", refused_tokenizer_json},
        {"regular expressions: each fault has its sentence", refused_patterns},
        {"a regular expression that explodes is stopped", catastrophic_regex},
        {"regular expressions that take long together", slow_matches},
        {"files that want too much", too_much},
        {"a token that is too long", long_token},
        {"steps that multiply a text are stopped", growing},
        {"vocabulary with holes, characters without a token", holes_and_missing_characters},
        {"tokenizer_config.json: which classes heed its flags", flags_by_class},
        {"a template with two tokens before the text", two_before},
        {"vocab.json and merges.txt: by class", classes_of_pairs},
        {"folders: each fault has its sentence", refused_folders},
        {"tokens that files next to a tokenizer.json name", named_tokens},
        {"many tokens that another file names", many_named_tokens},
        {"damaged files", damaged_files},
        {0}};
    return tap_run("tokenizer_files", tests);
}
