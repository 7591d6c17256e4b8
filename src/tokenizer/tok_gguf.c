/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer that is in a GGUF file's metadata, under the keys tokenizer.ggml.*, which are described in
 * ggml's doc "gguf.md". Defaults are those of llama.cpp (llama-vocab.cpp):
 *
 *     model       pieces become ids by            bos  eos  before     after
 *     "llama"     scores (SentencePiece's BPE)    1    2    bos        -
 *     "t5"        scores (unigram)                -    1    -          eos
 *     "gpt2"      merges                          -    -    as the pre-tokenizer has it (tok_pre.c)
 *     "gemma4"    the same, pre-tokenizer gemma4  -    -    bos, whatever the file says
 *
 * Texts of the first two get a leading space unless add_space_prefix is false, which converters always write
 * for "t5". Other models, and a model whose arrays do not fit together, are refused by the key's name. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/mem.h"
#include "src/model/files/gguf.h"
#include "src/model/files/map.h"
#include "src/tokenizer/tok.h"

#define KEY "tokenizer.ggml."

static const struct kind {
    const char *name;
    enum sh_tok_model model;
    int bos, eos, add_bos, add_eos;     /* when the file does not say */
} kinds[] = {{"llama", SH_TOK_SCORES, 1, 2, 1, 0}, {"t5", SH_TOK_UNIGRAM, -1, 1, 0, 1},
             {"gpt2", SH_TOK_MERGES, -1, -1, 0, 0}, {"gemma4", SH_TOK_MERGES, -1, -1, 1, 0}};

/* Arrays that are made of the file's; they point into it. */
struct made {
    struct sh_tok_string *token, *merge;
    float *score;
    int32_t *type;
    char *pre;
};

static const struct kind *find_kind(const struct sh_gguf *g, struct sh_err *e)
{
    struct sh_gguf_text name = {NULL, 0};
    if (sh_gguf_word(g, KEY "model", &name, e))
        return NULL;
    for (size_t i = 0; name.at && i < sizeof kinds / sizeof *kinds; i++)
        if (sh_gguf_text_is(name, kinds[i].name))
            return &kinds[i];
    sh_gguf_refuse(g, KEY "model", "llama, t5, gpt2 or gemma4", e);
    return NULL;
}

/* ---- arrays ---- */

static int take_strings(const struct sh_gguf *g, const char *key, struct sh_tok_string **out, size_t *n,
                        struct sh_err *e)
{
    struct sh_gguf_value *v;
    if (sh_gguf_strings(g, key, &v, e))
        return -1;
    if (!v || !v->n)
        return sh_gguf_refuse(g, key, "an array of strings", e);
    *n = v->n;
    *out = xcalloc(v->n, sizeof **out);
    for (size_t i = 0; i < v->n; i++) {
        struct sh_gguf_text text = sh_gguf_string_at(v, i);
        (*out)[i] = (struct sh_tok_string){text.at, text.bytes};
    }
    return 0;
}

/* One number a token; *out is NULL when there is no such key. */
static int take_numbers(const struct sh_gguf *g, const char *key, size_t n, struct sh_gguf_value **out,
                        struct sh_err *e)
{
    if (sh_gguf_numbers(g, key, out, e))
        return -1;
    if (*out && (*out)->n != n)
        return sh_fail(e, "%s: key '%s': found %zu elements, expected one for each of the %zu tokens", g->path, key,
                       (*out)->n, n);
    return 0;
}

static int take_types(const struct sh_gguf *g, struct sh_tok_arrays *a, struct made *m, struct sh_err *e)
{
    static const char key[] = KEY "token_type";
    struct sh_gguf_value *v;
    if (take_numbers(g, key, a->n, &v, e))
        return -1;
    if (!v && a->model == SH_TOK_MERGES)
        return 0;
    if (!v || !sh_gguf_is_whole(v->item))
        return sh_gguf_refuse(g, key, "an array of whole numbers", e);
    a->type = m->type = xcalloc(a->n, sizeof *m->type);
    for (size_t i = 0; i < a->n; i++) {
        int64_t type = sh_gguf_whole_at(v, i);
        if (type < SH_TOK_NORMAL || type > SH_TOK_BYTE)
            return sh_fail(e, "%s: key '%s': token %zu is of type %lld, expected %d to %d", g->path, key, i,
                           (long long)type, SH_TOK_NORMAL, SH_TOK_BYTE);
        m->type[i] = (int32_t)type;
        a->byte_fallback = a->byte_fallback || type == SH_TOK_BYTE;
    }
    return 0;
}

static int take_scores(const struct sh_gguf *g, struct sh_tok_arrays *a, struct made *m, struct sh_err *e)
{
    struct sh_gguf_value *v;
    if (take_numbers(g, KEY "scores", a->n, &v, e))
        return -1;
    if (!v || v->item != SH_GGUF_F32)
        return sh_gguf_refuse(g, KEY "scores", "an array of f32", e);
    a->score = m->score = xcalloc(a->n, sizeof *m->score);
    for (size_t i = 0; i < a->n; i++)
        m->score[i] = (float)sh_gguf_real_at(v, i);
    return 0;
}

static int take_charsmap(const struct sh_gguf *g, struct sh_tok_arrays *a, struct sh_err *e)
{
    static const char key[] = KEY "precompiled_charsmap";
    struct sh_gguf_value *v;
    if (sh_gguf_numbers(g, key, &v, e))
        return -1;
    if (v && v->item != SH_GGUF_U8 && v->item != SH_GGUF_I8)
        return sh_gguf_refuse(g, key, "an array of bytes", e);
    if (v)
        a->charsmap = (struct sh_tok_string){(const char *)v->at, v->n};
    return 0;
}

/* ---- ids and flags ---- */

/* An id below the number of tokens; *out stays as it is when the key is absent. */
static int take_id(const struct sh_gguf *g, const char *key, const struct sh_tok_arrays *a, int32_t *out,
                   struct sh_err *e)
{
    int64_t id = *out;
    if (sh_gguf_whole(g, key, 0, (int64_t)a->n - 1, &id, e))
        return -1;
    *out = (int32_t)id;
    return 0;
}

/* The first files of Gemma 4 say that no bos comes first, and are wrong. */
static int is_gemma(const struct sh_tok_arrays *a)
{
    return a->pre && !strcmp(a->pre, "gemma4");
}

static int take_ends(const struct sh_gguf *g, const struct kind *k, struct sh_tok_arrays *a, struct sh_err *e)
{
    a->bos = k->bos;
    a->eos = k->eos;
    a->add_bos = k->add_bos;
    a->add_eos = k->add_eos;
    if (a->pre && sh_tok_pre_begins(a->pre))
        a->add_bos = 1;
    return take_id(g, KEY "bos_token_id", a, &a->bos, e) || take_id(g, KEY "eos_token_id", a, &a->eos, e) ||
           (!is_gemma(a) && sh_gguf_flag(g, KEY "add_bos_token", &a->add_bos, e)) ||
           sh_gguf_flag(g, KEY "add_eos_token", &a->add_eos, e) ? -1 : 0;
}

/* The unknown token is known by its type; files whose types do not tell name it by a key. Converters of 2024 gave the
 * rows that pad the embedding this type, too ("[PAD32011]" of Phi-3): then the key counts, or llama.cpp's default. */
static int take_unknown(const struct sh_gguf *g, const struct sh_tok_arrays *a, struct made *m, struct sh_err *e)
{
    static const char key[] = KEY "unknown_token_id";
    int32_t named = -1, typed = -1, n_typed = 0, usual = a->model == SH_TOK_UNIGRAM ? 2 : 0, unknown;
    if (take_id(g, key, a, &named, e))
        return -1;
    for (size_t i = a->n; i-- > 0;)
        if (m->type[i] == SH_TOK_UNKNOWN) {
            typed = (int32_t)i;
            n_typed++;
        }
    unknown = named >= 0 ? named : n_typed > 1 && (size_t)usual < a->n ? usual : typed;
    int is_other = typed >= 0 && m->type[unknown] != SH_TOK_UNKNOWN && m->type[unknown] != SH_TOK_CONTROL;
    if (is_other && named < 0)
        return sh_fail(e, "%s: key '%s': found nothing, expected the id of one of the %d tokens of type unknown",
                       g->path, key, (int)n_typed);
    if (is_other)
        return sh_fail(e, "%s: key '%s': found %d, expected %d, the id of the token of type unknown", g->path, key,
                       (int)unknown, (int)typed);
    for (size_t i = 0; i < a->n && n_typed > 0; i++)
        if (m->type[i] == SH_TOK_UNKNOWN)
            m->type[i] = SH_TOK_UNUSED;
    if (unknown >= 0)
        m->type[unknown] = SH_TOK_UNKNOWN;
    return 0;
}

/* What nothing but the model's name tells, as llama.cpp takes it, too. */
static int is_phi3(const struct sh_gguf *g)
{
    struct sh_gguf_text name = {NULL, 0};
    struct sh_err ignored;
    sh_gguf_word(g, "general.name", &name, &ignored);
    for (size_t i = 0; name.at && i + 4 <= name.bytes; i++) {
        size_t dash = i + 4 < name.bytes && name.at[i + 3] == '-';
        if (!strncasecmp(name.at + i, "phi", 3) && name.at[i + 3 + dash] == '3')
            return 1;
    }
    return 0;
}

static int take_pieces(const struct sh_gguf *g, struct sh_tok_arrays *a, struct made *m, struct sh_err *e)
{
    a->escape = a->add_prefix = a->specials_in_text = 1;
    a->takes_spaces = is_phi3(g);
    a->unknown_text = (struct sh_tok_string){" \xe2\x81\x87 ", 5};
    return take_scores(g, a, m, e) || take_unknown(g, a, m, e) || take_charsmap(g, a, e) ||
           sh_gguf_flag(g, KEY "add_space_prefix", &a->add_prefix, e) ||
           sh_gguf_flag(g, KEY "remove_extra_whitespaces", &a->squeeze, e) ? -1 : 0;
}

static int take_merges(const struct sh_gguf *g, struct sh_tok_arrays *a, struct made *m, struct sh_err *e)
{
    struct sh_gguf_text pre = {NULL, 0}, model = pre;
    if (take_strings(g, KEY "merges", &m->merge, &a->n_merge, e) || sh_gguf_word(g, KEY "pre", &pre, e) ||
        sh_gguf_word(g, KEY "model", &model, e))
        return -1;
    if (!sh_gguf_text_is(model, "gpt2"))        /* the others name their pre-tokenizer */
        pre = model;
    if (!pre.at || memchr(pre.at, '\0', pre.bytes)) {
        sh_gguf_refuse(g, KEY "pre", "the name of a pre-tokenizer", e);
        return sh_hint(e, "Files made before May 2024 do not have it. Convert the model again, or put its "
                          "tokenizer.json next to the file, in a folder of their own, and give the folder.");
    }
    a->merge = m->merge;
    m->pre = xcalloc(pre.bytes + 1, 1);
    memcpy(m->pre, pre.at, pre.bytes);
    a->pre = m->pre;
    return 0;
}

/* ---- the whole ---- */

static int take(const struct sh_gguf *g, struct sh_tok_arrays *a, struct made *m, struct sh_err *e)
{
    const struct kind *k = find_kind(g, e);
    if (!k || take_strings(g, KEY "tokens", &m->token, &a->n, e))
        return -1;
    a->model = k->model;
    a->token = m->token;
    return take_types(g, a, m, e) || (k->model == SH_TOK_MERGES ? take_merges : take_pieces)(g, a, m, e) ||
           take_ends(g, k, a, e) ? -1 : 0;
}

static int read_gguf(struct sh_tokenizer *t, const struct sh_gguf *g, struct sh_err *e)
{
    struct sh_tok_arrays a = {.bos = -1, .eos = -1};
    struct made m = {0};
    int bad = take(g, &a, &m, e);
    if (!bad && (bad = sh_tok_read_arrays(t, &a, e)))
        sh_err_prefix(e, "%s: tokenizer", g->path);
    free(m.token);
    free(m.merge);
    free(m.score);
    free(m.type);
    free(m.pre);
    return bad ? -1 : 0;
}

int sh_tok_open_gguf(struct sh_tokenizer *t, const char *path, struct sh_err *e)
{
    struct sh_map map;
    if (sh_map_open(&map, path, e))
        return -1;
    struct sh_gguf *g = sh_gguf_open(path, &map, e);
    int bad = !g || read_gguf(t, g, e);
    sh_gguf_close(g);
    sh_map_close(&map);
    return bad ? -1 : 0;
}
