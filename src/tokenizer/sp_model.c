/* SPDX-License-Identifier: Apache-2.0 */
/* See tok.h. Field numbers are those of sentencepiece_model.proto; protobuf.dev/programming-guides/encoding describes
 * the format. The bytes may be hostile: a field that is not whole is an error, never read past the end. */
#include "src/tokenizer/tok.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define MOST_BYTES ((size_t)256 << 20)   /* the largest published file has 5 MB */

/* ---- protocol buffers: the fields of one message, one after the other ---- */

struct wire { const char *at; size_t n; };   /* what is left of a message */

enum wire_type { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;                     /* all but BYTES; floats as their bits */
    struct wire bytes;               /* BYTES: points into the message      */
};

static int take_varint(struct wire *m, uint64_t *value)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 10 && i < m->n; i++) {
        unsigned char c = (unsigned char)m->at[i];
        v |= (uint64_t)(c & 0x7f) << (7 * i);
        if (c < 0x80) {
            *m = (struct wire){m->at + i + 1, m->n - i - 1};
            *value = v;
            return 0;
        }
    }
    return -1;
}

static int take_fixed(struct wire *m, unsigned bytes, uint64_t *value)
{
    if (m->n < bytes)
        return -1;
    *value = 0;
    for (unsigned i = 0; i < bytes; i++)
        *value |= (uint64_t)(unsigned char)m->at[i] << (8 * i);
    m->at += bytes;
    m->n -= bytes;
    return 0;
}

static int take_content(struct wire *m, struct field *f)
{
    switch (f->type) {
    case VARINT: return take_varint(m, &f->value);
    case FIXED64: return take_fixed(m, 8, &f->value);
    case FIXED32: return take_fixed(m, 4, &f->value);
    case BYTES: break;
    }
    uint64_t length;
    if (take_varint(m, &length) || length > m->n)
        return -1;
    f->bytes = (struct wire){m->at, (size_t)length};
    m->at += length;
    m->n -= (size_t)length;
    return 0;
}

/* Takes the first field off `m`. 1: done, 0: nothing is left, -1: error. */
static int next_field(struct wire *m, struct field *f, struct sh_err *e)
{
    uint64_t tag;
    if (!m->n)
        return 0;
    if (take_varint(m, &tag) || tag > UINT32_MAX || tag < 8)
        return sh_fail(e, "not a protobuf message: expected the start of a field");
    unsigned type = tag & 7;
    *f = (struct field){.number = (uint32_t)tag >> 3, .type = (enum wire_type)type};
    if (type != VARINT && type != FIXED64 && type != BYTES && type != FIXED32)
        return sh_fail(e, "field %u has wire type %u, expected 0, 1, 2 or 5", f->number, type);
    if (take_content(m, f))
        return sh_fail(e, "field %u extends past the end of its message", f->number);
    return 1;
}

/* ---- the messages ---- */

enum { MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

struct reader {
    struct sh_sp_model *m;
    size_t cap;
    int32_t model_type;
    int32_t suffix;                     /* treat_whitespace_as_suffix */
    struct sh_tok_string bos, eos;      /* names */
    struct sh_err *e;
};

static int want(const struct field *f, enum wire_type type, const char *name, struct sh_err *e)
{
    return f->type == type ? 0 : sh_fail(e, "%s: found wire type %d, expected %d", name, (int)f->type, (int)type);
}

/* A field that is read, and where its value goes. */
struct target {
    uint32_t number;
    enum { INT, FLAG, REAL, TEXT } kind;    /* into an int32_t, an int, a float, a struct sh_tok_string */
    const char *name;                       /* for messages */
    void *to;
};

static int read_fields(struct reader *r, struct wire from, const struct target *t, int n)
{
    static const enum wire_type types[] = {[INT] = VARINT, [FLAG] = VARINT, [REAL] = FIXED32, [TEXT] = BYTES};
    struct field f;
    int more;
    while ((more = next_field(&from, &f, r->e)) == 1)
        for (int i = 0; i < n; i++) {
            uint32_t bits = (uint32_t)f.value;      /* protobuf cuts an int32 or enum like this */
            if (t[i].number != f.number)
                continue;
            if (want(&f, types[t[i].kind], t[i].name, r->e))
                return -1;
            if (t[i].kind == TEXT)
                *(struct sh_tok_string *)t[i].to = (struct sh_tok_string){f.bytes.at, f.bytes.n};
            else if (t[i].kind == FLAG)
                *(int *)t[i].to = f.value != 0;
            else
                memcpy(t[i].to, &bits, sizeof bits);
        }
    return more;
}

static int read_piece(struct reader *r, struct wire from)
{
    struct sh_sp_model *m = r->m;
    size_t n = m->arrays.n;
    if (n > SH_TOK_MAX_ID)
        return sh_fail(r->e, "found too many pieces, expected at most %d", SH_TOK_MAX_ID + 1);
    if (n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 1024;
        m->token = xreallocarray(m->token, r->cap, sizeof *m->token);
        m->score = xreallocarray(m->score, r->cap, sizeof *m->score);
        m->type = xreallocarray(m->type, r->cap, sizeof *m->type);
    }
    m->token[n] = (struct sh_tok_string){"", 0};
    m->score[n] = 0;
    m->type[n] = SH_TOK_NORMAL;
    const struct target t[] = {{1, TEXT, "piece", &m->token[n]}, {2, REAL, "score", &m->score[n]},
                               {3, INT, "type", &m->type[n]}};
    int bad = read_fields(r, from, t, 3);
    m->arrays.n += !bad;
    return bad;
}

static int read_trainer(struct reader *r, struct wire from)
{
    static const char name[] = "trainer_spec";
    struct sh_tok_arrays *a = &r->m->arrays;
    const struct target t[] = {{3, INT, name, &r->model_type}, {24, INT, name, &r->suffix},
                               {35, INT, name, &a->byte_fallback}, {44, TEXT, name, &a->unknown_text},
                               {46, TEXT, name, &r->bos}, {47, TEXT, name, &r->eos}};
    return read_fields(r, from, t, 6);
}

static int read_normalizer(struct reader *r, struct wire from)
{
    static const char name[] = "normalizer_spec";
    struct sh_tok_arrays *a = &r->m->arrays;
    const struct target t[] = {{2, TEXT, "precompiled_charsmap", &a->charsmap}, {3, FLAG, name, &a->add_prefix},
                               {4, FLAG, name, &a->squeeze}, {5, FLAG, name, &a->escape}};
    return read_fields(r, from, t, 4);
}

static int refuse_denormalizer(struct reader *r, struct wire from)
{
    struct field f;
    int more;
    while ((more = next_field(&from, &f, r->e)) == 1)
        if (f.number == 2 && f.type == BYTES && f.bytes.n)
            return sh_fail(r->e, "precompiled_charsmap: rewriting decoded text is not supported");
    return more;
}

static int read_message(struct reader *r, struct wire from)
{
    static const struct {
        const char *name;
        int (*read)(struct reader *r, struct wire from);
    } part[] = {{NULL, NULL}, {"piece", read_piece}, {"trainer_spec", read_trainer},
                {"normalizer_spec", read_normalizer}, {NULL, NULL},
                {"denormalizer_spec", refuse_denormalizer}};
    struct field f;
    int more;
    while ((more = next_field(&from, &f, r->e)) == 1) {
        if (f.number > 5 || !part[f.number].read)
            continue;
        if (want(&f, BYTES, part[f.number].name, r->e))
            return -1;
        if (part[f.number].read(r, f.bytes))
            return f.number == 1 ? sh_err_prefix(r->e, "piece %zu", r->m->arrays.n)
                                 : sh_err_prefix(r->e, "%s", part[f.number].name);
    }
    return more;
}

/* The id of the control piece of this name; -1: none. */
static int32_t control_id(const struct sh_sp_model *m, const struct sh_tok_string *name)
{
    for (size_t i = 0; i < m->arrays.n; i++) {
        const struct sh_tok_string *s = &m->token[i];
        if (m->type[i] == SH_TOK_CONTROL && s->n == name->n && !memcmp(s->at, name->at, s->n))
            return (int32_t)i;
    }
    return -1;
}

static int finish(struct reader *r)
{
    struct sh_sp_model *m = r->m;
    struct sh_tok_arrays *a = &m->arrays;
    if (!a->n)
        return sh_fail(r->e, "found no pieces, expected at least one");
    if (r->model_type != MODEL_UNIGRAM && r->model_type != MODEL_BPE)
        return sh_fail(r->e, "trainer_spec: model_type %d is not supported, only unigram (1) and "
                       "BPE (2) are", (int)r->model_type);
    if (r->suffix)
        return sh_fail(r->e, "trainer_spec: treat_whitespace_as_suffix is not supported");
    a->model = r->model_type == MODEL_BPE ? SH_TOK_SCORES : SH_TOK_UNIGRAM;
    a->token = m->token;
    a->score = m->score;
    a->type = m->type;
    a->bos = control_id(m, &r->bos);
    a->eos = control_id(m, &r->eos);
    a->add_bos = a->bos >= 0;
    return 0;
}

int sh_sp_model_open(struct sh_sp_model *m, const char *path, struct sh_err *e)
{
    struct reader r = {.m = m, .model_type = MODEL_UNIGRAM, .bos = {"<s>", 3}, .eos = {"</s>", 4}, .e = e};
    *m = (struct sh_sp_model){.arrays = {.add_prefix = 1, .squeeze = 1, .escape = 1,
                                         .unknown_text = {" \xe2\x81\x87 ", 5}}};
    if (sh_map_open(&m->map, path, e))
        return -1;
    struct wire all = {(const char *)m->map.at, m->map.bytes};
    int bad = 0;
    if (all.n > MOST_BYTES) {
        bad = sh_fail(e, "%s: file too large: expected at most %zu bytes", path, MOST_BYTES);
    } else if (read_message(&r, all) || finish(&r)) {
        bad = sh_err_prefix(e, "%s", path);
    }
    if (bad)
        sh_sp_model_close(m);
    return bad;
}

void sh_sp_model_close(struct sh_sp_model *m)
{
    sh_map_close(&m->map);
    free(m->token);
    free(m->score);
    free(m->type);
}
