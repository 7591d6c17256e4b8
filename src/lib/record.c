/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: what callers pass is checked as far as it can be, and handed on. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/app/record/record.h"
#include "src/base/mem.h"
#include "src/base/num.h"
#include "src/base/team.h"
#include "src/lib/lib.h"

enum { MOST_NUMBERS = INT_MAX };        /* of an argument's array: more are a mistake, not a tile */

struct shears_recording {
    struct sh_recording *recording;
    char *path;
    pid_t pid;
};

static int given(struct shears_error **e, const char *function, const struct shears_recording *r)
{
    if (sh_lib_given(e, function, "a recording", r))
        return -1;
    return r->pid == getpid() ? 0
           : sh_lib_misused(e, "%s: found a recording that was opened before fork(), expected one of this process",
                            r->path);
}

struct shears_recording *shears_record_open(const char *path, struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, "shears_record_open", "a path", path))
        return NULL;
    if (!*path) {
        sh_lib_misused(e, "shears_record_open: found an empty path, expected a file's name");
        return NULL;
    }
    struct sh_recording *opened = sh_recording_open(path, sh_team_threads(), &why);
    if (!opened) {
        sh_lib_fail(e, &why);
        return NULL;
    }
    struct shears_recording *r = xcalloc(1, sizeof *r);
    *r = (struct shears_recording){opened, xstrdup(path), getpid()};
    return r;
}

/* ---- what is recorded ---- */

static int find_name(const char *what, const char *name, const char *const *all, struct sh_err *e)
{
    char list[128] = "";
    for (int i = 0; all[i]; i++) {
        if (!strcmp(all[i], name))
            return i;
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", all[i]);
    }
    return sh_misused(e, "%s: found \"%.40s\", expected one of %s", what, name, list);
}

static int take_names(const struct shears_recorded *what, struct sh_trace_run *run, struct sh_err *e)
{
    static const char *const attention[] = {"causal", "bidirectional", "cross", NULL};
    static const char *const dtypes[] = {"f32", "f16", "bf16", NULL};
    int kind = find_name("attention", what->attention, attention, e);
    int record = kind < 0 ? -1 : find_name("record", what->record, sh_record_names, e);
    int codec = record < 0 ? -1 : find_name("codec", what->codec, sh_codec_names, e);
    if (codec < 0 || find_name("dtype", what->dtype, dtypes, e) < 0)
        return -1;
    if (kind == 2 && *what->vectors)
        return sh_misused(e, "vectors: found \"%.20s\", expected none: in cross-attention, keys and values belong to "
                             "another sequence", what->vectors);
    run->record = (enum sh_record)record;
    run->codec = (enum sh_codec)codec;
    run->orderless = kind > 0;
    return 0;
}

int shears_record_begin(struct shears_recording *r, const struct shears_recorded *what, struct shears_error **e)
{
    struct sh_err why = {0};
    if (given(e, "shears_record_begin", r) || sh_lib_given(e, "shears_record_begin", "what is recorded", what))
        return -1;
    if (what->bytes != sizeof *what)
        return sh_lib_misused(e, "shears_record_begin: found a description of %zu bytes, expected %zu", what->bytes,
                              sizeof *what);
    const char *const texts[] = {what->model, what->family, what->weights, what->backend, what->device, what->dtype,
                                 what->command, what->attention, what->record, what->codec, what->vectors};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (sh_lib_given(e, "shears_record_begin", "a text", texts[i]))
            return -1;
    struct sh_trace_run run = {
        .model = {.name = what->model, .family = what->family, .weights = what->weights,
                  .fingerprint = what->fingerprint, .n_layer = what->n_layer, .n_head = what->n_head,
                  .n_kv_head = what->n_kv_head, .d_head = what->d_head, .d_model = what->d_model,
                  .n_vocab = what->n_vocab, .max_pos = what->max_pos},
        .backend = what->backend, .device = what->device, .dtype = what->dtype, .command = what->command,
        .vectors = what->vectors, .weight_bits = 16};
    if (take_names(what, &run, &why) || sh_recording_begin(r->recording, &run, &why)) {
        sh_err_prefix(&why, "%s", r->path);
        return sh_lib_fail(e, &why);
    }
    return 0;
}

/* ---- sequences ---- */

/* -1: the array is NULL or has a number that no token has. */
static int check_tokens(const struct shears_recording *r, const int32_t *token, size_t n, struct shears_error **e)
{
    if (sh_lib_given(e, r->path, "tokens", token))
        return -1;
    if (n < 1 || n > INT_MAX)
        return sh_lib_misused(e, "%s: found %zu tokens, expected at least 1", r->path, n);
    for (size_t i = 0; i < n; i++)
        if (token[i] < -1)
            return sh_lib_misused(e, "%s: token %zu: found %d, expected an id, or -1 where it is not known", r->path, i,
                                  token[i]);
    return 0;
}

/* A sequence's number as an int, in which no wrong one is right. */
static int number_of(int64_t sequence)
{
    return sequence < 0 || sequence > INT_MAX ? -1 : (int)sequence;
}

int64_t shears_record_sequence(struct shears_recording *r, const char *source, const int32_t *token, size_t n,
                               int grows, struct shears_error **e)
{
    struct sh_err why = {0};
    if (given(e, "shears_record_sequence", r) || sh_lib_given(e, "shears_record_sequence", "a source", source) ||
        check_tokens(r, token, n, e))
        return -1;
    int i = sh_recording_sequence(r->recording, source, token, (int)n, grows != 0, &why);
    return i < 0 ? sh_lib_fail(e, &why) : i;
}

int shears_record_more(struct shears_recording *r, int64_t sequence, const int32_t *token, size_t n,
                       struct shears_error **e)
{
    struct sh_err why = {0};
    if (given(e, "shears_record_more", r) || check_tokens(r, token, n, e))
        return -1;
    return sh_recording_more(r->recording, number_of(sequence), token, (int)n, &why) ? sh_lib_fail(e, &why) : 0;
}

/* -1: the numbers are no shape of an array that there can be. */
static int check_shape(const struct shears_recording *r, int64_t rows, int64_t columns, struct shears_error **e)
{
    if (rows < 1 || columns < 1 || rows > MOST_NUMBERS / columns)
        return sh_lib_misused(e, "%s: found %lld rows of %lld numbers for each head, expected at least one and at most "
                              "%d numbers together", r->path, (long long)rows, (long long)columns, MOST_NUMBERS);
    return 0;
}

int shears_record_rows(struct shears_recording *r, const struct shears_rows *rows, struct shears_error **e)
{
    struct sh_err why = {0};
    if (given(e, "shears_record_rows", r) || sh_lib_given(e, "shears_record_rows", "rows", rows))
        return -1;
    if (!rows->score == !rows->log8)
        return sh_lib_misused(e, "shears_record_rows: found %s, expected either scores or codes",
                              rows->score ? "both scores and codes" : "neither scores nor codes");
    if (check_shape(r, rows->n_row, rows->n_key, e))
        return -1;
    if (rows->window == INT_MIN || rows->first_row < 0 || rows->first_key < 0)
        return sh_lib_misused(e, "%s: found row %d, key %d and the window %d, expected numbers >= 0 and a window above "
                              "%d", r->path, rows->first_row, rows->first_key, rows->window, INT_MIN);
    const struct sh_recording_rows mine = {
        .sequence = number_of(rows->sequence), .layer = rows->layer, .first_row = rows->first_row, .n_row = rows->n_row,
        .first_key = rows->first_key, .n_key = rows->n_key, .window = rows->window, .n_head = rows->n_head,
        .form = rows->score ? SH_RECORDING_F32 : SH_RECORDING_LOG8,
        .at = rows->score ? (const void *)rows->score : rows->log8, .logit = rows->score ? rows->logit : NULL,
        .sink = rows->sink};
    return sh_recording_rows(r->recording, &mine, &why) ? sh_lib_fail(e, &why) : 0;
}

int shears_record_vectors(struct shears_recording *r, const struct shears_vectors *v, struct shears_error **e)
{
    struct sh_err why = {0};
    if (given(e, "shears_record_vectors", r) || sh_lib_given(e, "shears_record_vectors", "vectors", v) ||
        sh_lib_given(e, "shears_record_vectors", "their numbers", v->at) || check_shape(r, v->n_row, v->width, e))
        return -1;
    const struct sh_recording_vectors mine = {
        .sequence = number_of(v->sequence), .layer = v->layer,
        .kind = v->kind > 0 && v->kind < 128 ? (char)v->kind : '?',
        .n_head = v->n_head, .n_row = v->n_row, .width = v->width, .at = v->at};
    return sh_recording_vectors(r->recording, &mine, &why) ? sh_lib_fail(e, &why) : 0;
}

/* ---- the end ---- */

int shears_record_finish(struct shears_recording *r, int64_t sequence, int keep, struct shears_error **e)
{
    struct sh_err why = {0};
    if (given(e, "shears_record_finish", r))
        return -1;
    return sh_recording_finish(r->recording, number_of(sequence), keep != 0, &why) ? sh_lib_fail(e, &why) : 0;
}

int shears_record_close(struct shears_recording *r, struct shears_error **e)
{
    struct sh_err why = {0};
    int bad = 0;
    if (!r)
        return 0;
    if (r->pid == getpid())
        bad = sh_recording_close(r->recording, &why);
    else
        sh_recording_leave(r->recording);
    free(r->path);
    free(r);
    return bad ? sh_lib_fail(e, &why) : 0;
}
