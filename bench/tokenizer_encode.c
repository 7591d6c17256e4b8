/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a text with one thread and says how long it took; bench/tokenizer_speed.py runs it.
 *
 *     tokenizer_encode FOLDER TEXT LENGTHS TIMES [IDS [BACK]]
 *
 * LENGTHS: a file of uint64, the bytes of each document in TEXT; "-": it is one. Prints "<bytes>
 * <tokens> <seconds, the best of TIMES> <seconds to open>". IDS: the ids are written there as
 * int32; BACK: the text that they decode to. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/mem.h"
#include "src/tokenizer/tokenizer.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    size_t cap = 1 << 20, got;
    char *at = xmalloc(cap);
    *n = 0;
    while (f && (got = fread(at + *n, 1, cap - *n, f)) > 0) {
        *n += got;
        if (*n == cap) {
            cap *= 2;
            at = xreallocarray(at, cap, 1);
        }
    }
    if (!f || ferror(f)) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return at;
}

static void write_all(const char *path, const void *at, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(at, 1, bytes, f) != bytes || fclose(f)) {
        perror(path);
        exit(1);
    }
}

struct texts { char *at; size_t n; uint64_t *length; size_t n_text; };

static struct texts read_texts(const char *path, const char *lengths)
{
    struct texts t = {.n_text = 1};
    size_t bytes, sum = 0;
    t.at = read_all(path, &t.n);
    if (strcmp(lengths, "-")) {
        t.length = (uint64_t *)(void *)read_all(lengths, &bytes);
        t.n_text = bytes / sizeof *t.length;
    } else {
        t.length = xmalloc(sizeof *t.length);
        t.length[0] = t.n;
    }
    for (size_t i = 0; i < t.n_text; i++)
        sum += t.length[i];
    if (sum != t.n) {
        fprintf(stderr, "%s: the lengths sum to %zu, not %zu\n", lengths, sum, t.n);
        exit(1);
    }
    return t;
}

/* Seconds for all documents; -1: error. */
static double encode(const struct sh_tokenizer *t, const struct texts *texts, struct sh_ids *ids,
                     struct sh_err *e)
{
    double begin = now();
    const char *at = texts->at;
    ids->n = 0;
    for (size_t i = 0; i < texts->n_text; at += texts->length[i++])
        if (sh_tokenizer_encode(t, at, texts->length[i], 0, ids, e))
            return -1;
    return now() - begin;
}

int main(int argc, char **argv)
{
    struct sh_err e = {0};
    struct sh_ids ids = {0};
    double best = 1e30, took = 0, begin = now();
    if (argc < 5) {
        fprintf(stderr, "usage: %s FOLDER TEXT LENGTHS TIMES [IDS [BACK]]\n", argv[0]);
        return 2;
    }
    struct sh_tokenizer *t = sh_tokenizer_open(argv[1], &e);
    double opened = now() - begin;
    struct texts texts = read_texts(argv[2], argv[3]);
    for (long i = strtol(argv[4], NULL, 10); t && i > 0 && took >= 0; i--)
        if ((took = encode(t, &texts, &ids, &e)) < best)
            best = took;
    if (!t || took < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    printf("%zu %zu %.6f %.6f\n", texts.n, ids.n, best, opened);
    if (argc > 5)
        write_all(argv[5], ids.at, ids.n * sizeof *ids.at);
    if (argc > 6) {
        size_t n;
        char *back = sh_tokenizer_decode(t, ids.at, ids.n, &n);
        write_all(argv[6], back, n);
        free(back);
    }
    free(texts.at);
    free(texts.length);
    free(ids.at);
    sh_tokenizer_free(t);
    return 0;
}
