/* SPDX-License-Identifier: Apache-2.0 */
/* See packer.h. */
#include "src/tracer/packer.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/row_figures.h"
#include "traces/codec.h"

enum { WORD = 64 };                     /* keys */

struct sh_packer {
    const struct sh_tap *tap;
    enum sh_codec codec;
    int sequence;
    int q0, n, done, window;            /* the block, and how many of its rows have come           */
    unsigned char *packed, *at;         /* [SH_PACKER_ROWS, most_keys] scores; where the next go   */
    float *padded, *value, *value_end;  /* these four: for sets                                    */
    uint64_t *bits;
    struct sh_row_figures *figures;
};

struct sh_packer *sh_packer_new(const struct sh_tap *tap, int sequence, enum sh_codec codec, int most_keys)
{
    struct sh_packer *p = xcalloc(1, sizeof *p);
    size_t keys = (size_t)most_keys, words = keys / WORD + 3;       /* of any block */
    p->tap = tap;
    p->sequence = sequence;
    p->codec = codec;
    if (tap->pack == SH_PACK_SETS) {
        p->padded = xcalloc(words * WORD, sizeof *p->padded);
        p->value = xcalloc(SH_PACKER_ROWS * keys, sizeof *p->value);
        p->bits = xcalloc(SH_PACKER_ROWS * words * ((size_t)tap->lanes[sequence].n + 1), sizeof *p->bits);
        p->figures = xcalloc(SH_PACKER_ROWS, sizeof *p->figures);
    } else {
        p->packed = xcalloc(SH_PACKER_ROWS * keys, sh_codec_width(codec));
    }
    return p;
}

void sh_packer_free(struct sh_packer *p)
{
    if (!p)
        return;
    free(p->packed);
    free(p->padded);
    free(p->value);
    free(p->bits);
    free(p->figures);
    free(p);
}

void sh_packer_begin(struct sh_packer *p, int q0, int n, int window)
{
    p->q0 = q0;
    p->n = n;
    p->done = 0;
    p->window = window;
    p->at = p->packed;
    p->value_end = p->value;
}

/* The words of the block's sets. */
static int first_word(const struct sh_packer *p)
{
    return sh_row_start(p->q0, p->window) / WORD;
}

static int words_of(const struct sh_packer *p)
{
    return (p->q0 + p->n - 1) / WORD - first_word(p) + 1;
}

/* One row into sets, as kernels/cpu/record.c makes them. */
static void put_sets(struct sh_packer *p, const float *score)
{
    const struct sh_lanes *lanes = &p->tap->lanes[p->sequence];
    int q = p->q0 + p->done, start = sh_row_start(q, p->window), n = q + 1 - start;
    int n_word = words_of(p), first = start - WORD * first_word(p);
    uint64_t *bits = p->bits + (size_t)p->done * (size_t)n_word * ((size_t)lanes->n + 1);
    const uint64_t *low = bits + (size_t)n_word * (size_t)lanes->n;
    float limit[SH_MAX_LANES];
    for (int l = 0; l < lanes->n; l++)
        limit[l] = sh_round_down(lanes->lane[l].per_key ? lanes->lane[l].value / n : lanes->lane[l].value);
    for (int k = 0; k < n_word * WORD; k++)
        p->padded[k] = k < first || k >= first + n ? NAN : score[k - first];
    sh_row_bits(p->padded, (size_t)n_word, limit, lanes->n, sh_round_up(1.0 / n), bits, (size_t)n_word);
    sh_row_figures(score, n, &p->figures[p->done]);
    for (int k = first; k < first + n && lanes->values; k++)
        if (!(low[k / WORD] >> k % WORD & 1))
            *p->value_end++ = p->padded[k];
}

void sh_packer_row(struct sh_packer *p, const float *score)
{
    int keys = sh_row_keys(p->q0 + p->done, p->window);
    if (p->tap->pack == SH_PACK_SETS) {
        put_sets(p, score);
    } else {
        sh_codec_pack(p->codec, p->at, score, keys);
        p->at += (size_t)keys * sh_codec_width(p->codec);
    }
    p->done++;
}

void sh_packer_end(struct sh_packer *p, int head)
{
    if (p->tap->pack == SH_PACK_SETS) {
        const struct sh_row_sets sets = {.first_word = first_word(p), .n_word = words_of(p), .bits = p->bits,
                                         .figures = p->figures, .value = p->value};
        p->tap->rows(p->tap->to, p->sequence, head, p->q0, p->n, &sets);
    } else {
        p->tap->rows(p->tap->to, p->sequence, head, p->q0, p->n, p->packed);
    }
}
