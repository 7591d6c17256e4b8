/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings through the public header, with any arguments. The input is text; each line is one call, in order:
 *     b LAYERS HEADS KV D ATTENTION RECORD CODEC VECTORS       record_begin; "-": an empty text
 *     s N GROWS                    record_sequence of N tokens
 *     m S N                        record_more
 *     r S L ROW N KEY KEYS WINDOW FORM VALUE      record_rows; FORM 0 scores, 1 scores and logits, 2 codes, 4 more: a
 *                                  sink; all of them VALUE, or, for scores, 0: 1 / n of the row's keys
 *     v S L KIND HEADS N WIDTH VALUE              record_vectors
 *     f S KEEP                     record_finish
 * Arrays are as large as the arguments say: that is the caller's part of the contract. Nothing crashes, each failure
 * comes with a complete error, and what was recorded can be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/lib/shears.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

enum { MOST_WORDS = 12, MOST_LINES = 24, MOST_HEADS = 8, MOST_NUMBERS = 1 << 16 };

static int n_head;                      /* of what has begun */

static int check_error(int failed, struct shears_error *e)
{
    if (failed != (e != NULL) || (e && (!*shears_error_message(e) || shears_error_status(e) < SHEARS_FAILED)))
        abort();
    shears_error_free(e);
    return !failed;
}

static int number(const char *word)
{
    return (int)strtol(word, NULL, 0);
}

static const char *text(const char *word)
{
    return strcmp(word, "-") ? word : "";
}

static int begin(struct shears_recording *r, char **word)
{
    struct shears_error *e = NULL;
    const struct shears_recorded what = {
        .bytes = sizeof what, .model = "m", .family = "f", .weights = "checkpoint", .backend = "test", .device = "none",
        .dtype = "f32", .command = "", .n_layer = number(word[1]) % 64, .n_head = number(word[2]) % (MOST_HEADS + 1),
        .n_kv_head = number(word[3]), .d_head = number(word[4]) % 64, .attention = text(word[5]),
        .record = text(word[6]), .codec = text(word[7]), .vectors = text(word[8])};
    int bad = shears_record_begin(r, &what, &e), good = check_error(bad != 0, e);
    n_head = good ? what.n_head : n_head;
    return good;
}

static float *filled(size_t n, float value)
{
    float *x = xcalloc(n + 1, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = value;
    return x;
}

static int put_rows(struct shears_recording *r, char **word)
{
    struct shears_error *e = NULL;
    struct shears_rows rows = {.sequence = number(word[1]), .layer = number(word[2]), .first_row = number(word[3]),
                               .n_row = number(word[4]), .first_key = number(word[5]), .n_key = number(word[6]),
                               .window = number(word[7])};
    long long n = (long long)(n_head ? n_head : 1) * rows.n_row;
    if (n > MOST_NUMBERS || rows.n_key > MOST_NUMBERS || n * rows.n_key > MOST_NUMBERS)
        return 0;
    size_t all = rows.n_row > 0 && rows.n_key > 0 ? (size_t)(n * rows.n_key) : 0;
    float value = strtof(word[9], NULL), *x = filled(all, value), *sink = filled(all, 0.5f);
    for (size_t i = 0; i < all && value == 0; i++) {        /* causal rows without a window */
        int q = rows.first_row + (int)(i / (size_t)rows.n_key % (size_t)rows.n_row);
        x[i] = 1.0f / (float)(q >= 0 && q < rows.n_key ? q + 1 : rows.n_key);
    }
    int form = number(word[8]) & 7;
    rows.score = form & 2 ? NULL : x;
    rows.logit = form & 1 ? x : NULL;
    rows.log8 = form & 2 ? (const uint8_t *)x : NULL;
    rows.sink = form & 4 ? sink : NULL;
    int bad = shears_record_rows(r, &rows, &e), good = check_error(bad != 0, e);
    free(x);
    free(sink);
    return good;
}

static int put_vectors(struct shears_recording *r, char **word)
{
    struct shears_error *e = NULL;
    struct shears_vectors v = {.sequence = number(word[1]), .layer = number(word[2]), .kind = *word[3],
                               .n_head = number(word[4]), .n_row = number(word[5]), .width = number(word[6])};
    if (v.n_head > MOST_HEADS || v.n_row > 1024 || v.width > 64)
        return 0;
    float *x = filled(v.n_head > 0 && v.n_row > 0 && v.width > 0 ? (size_t)(v.n_head * v.n_row * v.width) : 0,
                      strtof(word[7], NULL));
    v.at = x;
    int bad = shears_record_vectors(r, &v, &e), good = check_error(bad != 0, e);
    free(x);
    return good;
}

static int add_tokens(struct shears_recording *r, char kind, char **word)
{
    static const int32_t token[1024];
    struct shears_error *e = NULL;
    size_t n = (size_t)(unsigned)number(word[kind == 's' ? 1 : 2]) % 1024;
    int64_t at = kind == 's' ? shears_record_sequence(r, "x", token, n, number(word[2]), &e)
                             : shears_record_more(r, number(word[1]), token, n, &e);
    return check_error(at < 0, e);
}

static int finish(struct shears_recording *r, char **word)
{
    struct shears_error *e = NULL;
    int bad = shears_record_finish(r, number(word[1]), number(word[2]), &e);
    return check_error(bad != 0, e);
}

static int call(struct shears_recording *r, char **word, int n)
{
    switch (*word[0]) {
    case 'b':
        return n > 8 && begin(r, word);
    case 's': case 'm':
        return n > 2 && add_tokens(r, *word[0], word);
    case 'r':
        return n > 9 && put_rows(r, word);
    case 'v':
        return n > 7 && put_vectors(r, word);
    case 'f':
        return n > 2 && finish(r, word);
    default:
        return 0;
    }
}

/* Every head of every sequence that is there. */
static void read_all(const char *path)
{
    struct shears_error *e = NULL;
    struct shears_store *s = shears_store_open(path, NULL);
    if (!s)
        return;
    struct shears_result *r = shears_store_describe(s, &e);
    check_error(!r, e);
    for (int i = 0; i < (int)shears_table_rows(shears_table(r, "sequences")); i++)
        for (int layer = 0; layer < 3; layer++) {
            size_t rows, keys;
            if (shears_store_shape(s, i, layer, 0, &rows, &keys, NULL) || rows * keys > MOST_NUMBERS)
                continue;
            float *x = xcalloc(rows * keys + 1, sizeof *x);
            e = NULL;
            int bad = shears_store_scores(s, i, layer, 0, x, rows, keys, &e);
            check_error(bad != 0, e);
            free(x);
        }
    shears_result_free(r);
    shears_store_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shears_error *e = NULL;
    char path[2048];
    int good = 1;
    snprintf(path, sizeof path, "%s", scratch_path("record.db"));
    remove(path);
    struct shears_recording *r = shears_record_open(path, &e);
    check_error(!r, e);
    n_head = 0;
    for (int line = 0; line < MOST_LINES && size; line++) {
        struct fuzz_part part = fuzz_until('\n', &data, &size);
        char *copy = xasprintf("%.*s", (int)part.bytes, (const char *)part.at), *rest = NULL, *word[MOST_WORDS];
        int n = 0;
        for (char *w = strtok_r(copy, " ", &rest); w && n < MOST_WORDS; w = strtok_r(NULL, " ", &rest))
            word[n++] = w;
        if (n)
            good &= call(r, word, n);
        free(copy);
    }
    e = NULL;
    int bad = shears_record_close(r, &e);
    check_error(bad != 0, e);
    read_all(path);
    fuzz_accepted += good;
    return 0;
}
