/* SPDX-License-Identifier: Apache-2.0 */
/* See sp_model.h. Field numbers are those of sentencepiece_model.proto. */
#include "src/tokenizer/sp_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/tokenizer/sp_wire.h"
#include "src/tokenizer/tok_text.h"
#include "src/tokenizer/tok_vocab.h"

#define MOST_BYTES ((off_t)256 << 20)   /* the largest published file has 5 MB */

enum { MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

struct reader {
    struct sh_sp_model *m;
    size_t cap;
    int32_t model_type;
    int32_t suffix;                     /* treat_whitespace_as_suffix */
    struct sh_tok_string bos, eos;      /* names */
    struct sh_err *e;
};

static int is_named(const struct sh_tok_string *s, const struct sh_tok_string *name)
{
    return s->n == name->n && !memcmp(s->at, name->at, name->n);
}

static int want(const struct sh_wire_field *f, enum sh_wire_type type, const char *name, struct sh_err *e)
{
    return f->type == type ? 0 : sh_fail(e, "%s: found wire type %d, expected %d", name, (int)f->type, (int)type);
}

static int read_piece(struct reader *r, struct sh_wire from)
{
    struct sh_sp_model *m = r->m;
    struct sh_wire_field f;
    size_t n = m->arrays.n;
    int more;
    if (n > SH_TOK_MAX_ID)
        return sh_fail(r->e, "found more than %d pieces, expected at most that many", SH_TOK_MAX_ID + 1);
    if (n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 1024;
        m->token = xreallocarray(m->token, r->cap, sizeof *m->token);
        m->score = xreallocarray(m->score, r->cap, sizeof *m->score);
        m->type = xreallocarray(m->type, r->cap, sizeof *m->type);
    }
    m->token[n] = (struct sh_tok_string){"", 0};
    m->score[n] = 0;
    m->type[n] = SH_TOK_NORMAL;
    while ((more = sh_wire_next(&from, &f, r->e)) == 1) {
        if (f.number == 1) {
            if (want(&f, SH_WIRE_BYTES, "piece", r->e))
                return -1;
            m->token[n] = (struct sh_tok_string){f.bytes.at, f.bytes.n};
        } else if (f.number == 2) {
            if (want(&f, SH_WIRE_FIXED32, "score", r->e))
                return -1;
            m->score[n] = sh_wire_float(&f);
        } else if (f.number == 3) {
            if (want(&f, SH_WIRE_VARINT, "type", r->e))
                return -1;
            m->type[n] = sh_wire_int(&f);
        }
    }
    m->arrays.n += more == 0;
    return more;
}

static int read_trainer(struct reader *r, struct sh_wire from)
{
    struct sh_tok_arrays *a = &r->m->arrays;
    struct { uint32_t number; int32_t *to; } numbers[] = {
        {3, &r->model_type}, {24, &r->suffix}, {35, &a->byte_fallback}};
    struct { uint32_t number; struct sh_tok_string *to; } strings[] = {
        {44, &a->unknown_text}, {46, &r->bos}, {47, &r->eos}};
    struct sh_wire_field f;
    int more;
    while ((more = sh_wire_next(&from, &f, r->e)) == 1) {
        for (int i = 0; i < 3; i++) {
            if (f.number == numbers[i].number) {
                if (want(&f, SH_WIRE_VARINT, "trainer_spec", r->e))
                    return -1;
                *numbers[i].to = sh_wire_int(&f);
            }
            if (f.number == strings[i].number) {
                if (want(&f, SH_WIRE_BYTES, "trainer_spec", r->e))
                    return -1;
                *strings[i].to = (struct sh_tok_string){f.bytes.at, f.bytes.n};
            }
        }
    }
    return more;
}

static int read_normalizer(struct reader *r, struct sh_wire from)
{
    struct sh_tok_arrays *a = &r->m->arrays;
    struct { uint32_t number; int *to; } flags[] = {
        {3, &a->add_prefix}, {4, &a->squeeze}, {5, &a->escape}};
    struct sh_wire_field f;
    int more;
    while ((more = sh_wire_next(&from, &f, r->e)) == 1) {
        for (int i = 0; i < 3; i++)
            if (f.number == flags[i].number) {
                if (want(&f, SH_WIRE_VARINT, "normalizer_spec", r->e))
                    return -1;
                *flags[i].to = f.value != 0;
            }
        if (f.number == 2) {
            if (want(&f, SH_WIRE_BYTES, "precompiled_charsmap", r->e))
                return -1;
            a->charsmap = (struct sh_tok_string){f.bytes.at, f.bytes.n};
        }
    }
    return more;
}

static int refuse_denormalizer(struct reader *r, struct sh_wire from)
{
    struct sh_wire_field f;
    int more;
    while ((more = sh_wire_next(&from, &f, r->e)) == 1)
        if (f.number == 2 && f.type == SH_WIRE_BYTES && f.bytes.n)
            return sh_fail(r->e, "precompiled_charsmap: rewriting decoded text is not supported");
    return more;
}

static int read_message(struct reader *r, struct sh_wire from)
{
    static const struct {
        const char *name;
        int (*read)(struct reader *r, struct sh_wire from);
    } part[] = {{NULL, NULL}, {"piece", read_piece}, {"trainer_spec", read_trainer},
                {"normalizer_spec", read_normalizer}, {NULL, NULL},
                {"denormalizer_spec", refuse_denormalizer}};
    struct sh_wire_field f;
    int more;
    while ((more = sh_wire_next(&from, &f, r->e)) == 1) {
        if (f.number > 5 || !part[f.number].read)
            continue;
        if (want(&f, SH_WIRE_BYTES, part[f.number].name, r->e))
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
    for (size_t i = 0; i < m->arrays.n; i++)
        if (m->type[i] == SH_TOK_CONTROL && is_named(&m->token[i], name))
            return (int32_t)i;
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

static char *read_all(const char *path, size_t *n, struct sh_err *e)
{
    struct stat info;
    FILE *from = sh_stream_open(path, &info);
    char *file = NULL;
    if (!from) {
        sh_fail(e, "cannot be opened: %s", strerror(errno));
    } else if (!S_ISREG(info.st_mode) || info.st_size > MOST_BYTES) {
        sh_fail(e, "file too large: expected at most %lld bytes", (long long)MOST_BYTES);
    } else {
        file = xmalloc((size_t)info.st_size + 1);
        *n = fread(file, 1, (size_t)info.st_size, from);
        if (ferror(from)) {
            sh_fail(e, "cannot be read: %s", strerror(errno));
            free(file);
            file = NULL;
        }
    }
    if (from)
        fclose(from);
    return file;
}

/* LLaMA-3's own folders have a list of "<base64> <rank>" lines under the same name. */
static int is_rank_list(const char *file, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    size_t i = 0, begin;
    while (i < n && i < 100 && file[i] && strchr(digits, file[i]))
        i++;
    if (!i || i % 4 || i >= n || file[i] != ' ')
        return 0;
    for (begin = ++i; i < n && i < begin + 10 && file[i] >= '0' && file[i] <= '9'; i++)
        ;
    return i > begin && i < n && file[i] == '\n';
}

int sh_sp_model_open(struct sh_sp_model *m, const char *path, struct sh_err *e)
{
    struct reader r = {.m = m, .model_type = MODEL_UNIGRAM, .bos = {"<s>", 3}, .eos = {"</s>", 4},
                       .e = e};
    size_t n = 0;
    *m = (struct sh_sp_model){.arrays = {.add_prefix = 1, .squeeze = 1, .escape = 1,
                                         .unknown_text = {" \xe2\x81\x87 ", 5}}};
    if ((m->file = read_all(path, &n, e)) && is_rank_list(m->file, n)) {
        sh_sp_model_close(m);
        sh_fail(e, "%s: rank lists (tiktoken's format) are not supported", path);
        return sh_hint(e, "use the tokenizer.json of the same model instead");
    }
    if (!m->file || read_message(&r, (struct sh_wire){m->file, n}) || finish(&r)) {
        sh_sp_model_close(m);
        return sh_err_prefix(e, "%s", path);
    }
    return 0;
}

void sh_sp_model_close(struct sh_sp_model *m)
{
    free(m->file);
    free(m->token);
    free(m->score);
    free(m->type);
}
