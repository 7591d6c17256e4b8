/* SPDX-License-Identifier: Apache-2.0 */
/* traces/codec: what goes in comes out within the stated limits, thresholds are decided exactly, and
 * blobs that are not what they should be are refused. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/log8.h"
#include "src/base/mem.h"
#include "src/base/num.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/row_sets.h"
#include "tests/unit/sparse_blob.h"
#include "traces/codec.h"

static struct sh_err e;

/* ---- log8 ---- */

static const int lengths[] = {2, 3, 4, 5, 6, 7, 10, 11, 16, 20, 31, 64, 100, 101, 128, 199, 200, 201, 255, 333, 500,
                              512, 1000, 1023, 4096, 100000, 1 << 20, 1 << 22};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths, AT_ONCE = 512 };

struct log8_fault {
    double worst;                                       /* relative error                         */
    int side, percent, zero;                            /* wrong decisions                        */
};

/* Codes of `count` scores in a row of n keys after its largest one, as logits around `shift` that are as
 * inexact as a sum of floats; and what is read. The row is filled up with zeros. */
static void code_row(float *read, int n, float most, const float *p, int count, double shift)
{
    float lse = (float)shift, top = (float)(log((double)most) + shift);
    struct sh_log8 row = sh_log8_row(n, top, lse, most);
    static unsigned char code[1 << 22];
    static float all[1 << 22];
    int used = count + 1 < n ? count + 1 : n;
    memset(code, SH_LOG8_ZERO, (size_t)n);
    code[0] = sh_log8_code(&row, top, most);
    for (int i = 0; i + 1 < used; i++)
        code[i + 1] = sh_log8_code(&row, p[i] > 0 ? (float)(log((double)p[i]) + shift) : -INFINITY, p[i]);
    sh_log8_scores(all, code, n);
    memcpy(read, all, (size_t)used * sizeof *read);
}

static int is_near(double a, double b, double part)
{
    return fabs(a - b) <= part * b;
}

static void judge(struct log8_fault *f, int n, const float *p, const float *read, int count)
{
    static const int whole[4] = {1, 2, 5, 10};
    double most = (double)p[0], most_read = (double)read[0];
    int moved = 0;
    for (int k = 0; k < 4; k++)                         /* the cut cell of a moved edge           */
        moved |= is_near(most, 100.0 * whole[k] / n, 0.003) || is_near(most, (double)whole[k] / n, 0.003);
    for (int i = 0; i < count; i++) {
        double was = (double)p[i], is = (double)read[i];
        for (int k = 0; k < 4; k++)
            f->side += (was > (double)whole[k] / n) != (is > (double)whole[k] / n) &&
                       !(k == 3 && is_near(was, 10.0 / n, 1e-5));
        if (was >= 1e-8)
            f->worst = fmax(f->worst, fabs(is - was) / was);
        f->zero += (was == 0 && is != 0) || is > 1 || (was == 1 && is < 0.99999);
        f->zero += was > 0 && was < 8e-9 && is > 0 && n <= 1 << 20;
        f->percent += (was < 0.01 * most) != (is < 0.01 * most_read) && !moved && !is_near(was, 0.01 * most, 1e-5);
    }
}

/* Scores from the largest down beyond 1e-8, and those on and next to every threshold. The largest is below one
 * half: above it a row must sum to 1. */
static int scores_below(float *to, int n, float most, uint64_t seed)
{
    static const int whole[4] = {1, 2, 5, 10};
    int count = 0;
    for (int i = 0; i < AT_ONCE - 64; i++)
        to[count++] = most * (float)pow(10, -10 * sh_rng_uniform(seed, (uint64_t)i));
    for (int k = 0; k < 5; k++) {
        float edge = k < 4 ? (float)((double)whole[k] / n) : 0.01f * most;
        float around[] = {edge, nextafterf(edge, 0), nextafterf(edge, 2), edge * 1.001f, edge * 0.999f,
                          edge * 1.00001f, edge * 0.99999f};
        for (int i = 0; i < 7; i++)
            to[count++] = around[i] < most ? around[i] : most;
    }
    to[count++] = 0;
    to[count++] = 8e-9f < most ? 8e-9f : 0;
    return count;
}

static void log8_scores(void)
{
    static const double shift[] = {0, 3.3, -20.7, 100.1};
    struct log8_fault f = {0};
    float p[AT_ONCE + 1], read[AT_ONCE + 1];
    for (int i = 0; i < N_LENGTHS * 60; i++) {
        int n = lengths[i % N_LENGTHS], turn = i / N_LENGTHS;
        float least = (float)(1.0 / n);
        if (n > 100000 && turn > 6)
            continue;
        p[0] = !turn ? 0.45f : turn == 1 ? least : (float)fmin(0.45, pow(1.0 / n, sh_rng_uniform(7, (uint64_t)i)));
        int count = scores_below(p + 1, n, p[0], (uint64_t)i);
        for (int from = 0; from < count; from += n - 1) {       /* of short rows, a few at a time */
            int now = count - from < n - 1 ? count - from : n - 1;
            float part[AT_ONCE + 1] = {p[0]};
            memcpy(part + 1, p + 1 + from, (size_t)now * sizeof *part);
            code_row(read, n, p[0], part + 1, now, shift[turn % 4]);
            judge(&f, n, part, read, now + 1);
        }
    }
    printf("# worst relative error of log8: %.3f %%; wrong sides %d, hundredths %d, zeros %d\n", 100 * f.worst, f.side,
           f.percent, f.zero);
    CU_ASSERT(f.worst > 0.03 && f.worst <= 0.04 && f.side == 0 && f.percent == 0 && f.zero == 0);
}

/* Softmax of logits that spread more and more, up to rows of one score and zeros. */
static void log8_rows(void)
{
    static const double spread[] = {0, 0.1, 1, 3, 8, 20, 60, 500};
    struct log8_fault f = {0};
    double worst_sum = 0;
    for (int i = 0; i < 8 * 400; i++) {
        int n = 2 + (int)(sh_rng(3, (uint64_t)i) % (i % 5 ? 300 : 3000));
        float s[3002], p[3002], read[3002], top = -INFINITY;
        unsigned char code[3002];
        double sum = 0, read_sum = 0;
        for (int j = 0; j < n; j++) {
            s[j] = (float)(spread[i % 8] * sh_rng_normal((uint64_t)i, (uint64_t)j));
            top = s[j] > top ? s[j] : top;
        }
        for (int j = 0; j < n; j++)
            sum += exp((double)(s[j] - top));
        struct sh_log8 row = sh_log8_row(n, top, (float)((double)top + log(sum)), (float)(1 / sum));
        for (int j = 0; j < n; j++) {
            p[j] = (float)(exp((double)(s[j] - top)) / sum);
            code[j] = sh_log8_code(&row, s[j], p[j]);
            if (s[j] == top) {                          /* to the front                           */
                float first = p[0];
                unsigned char first_code = code[0];
                p[0] = p[j], p[j] = first;
                code[0] = code[j], code[j] = first_code;
            }
        }
        sh_log8_scores(read, code, n);
        judge(&f, n, p, read, n);
        for (int j = 0; j < n; j++)
            read_sum += (double)read[j];
        worst_sum = fmax(worst_sum, fabs(read_sum - 1));
    }
    printf("# worst error of log8: %.3f %%, sum %.2e; wrong sides %d, hundredths %d, zeros %d\n", 100 * f.worst,
           worst_sum, f.side, f.percent, f.zero);
    CU_ASSERT(f.worst > 0.03 && f.worst <= 0.04 && f.side == 0 && f.percent == 0 && f.zero == 0 && worst_sum < 0.04);
}

/* A score of 1 has code 0, 1 or 2, so nothing lies above the codes and 1e-8 not below them. */
static void log8_anchors(void)
{
    int wrong = 0;
    for (int n = 1; n < 1 << 24; n += 1 + n / 4096) {
        double one = sh_log8_anchor(n) + 0.5 - 30 * log10(n);
        wrong += one < -0.3 || one > 1.51 || sh_log8_anchor(n) > sh_log8_anchor(n + 1);
    }
    CU_ASSERT(wrong == 0);
    struct sh_log8 row = sh_log8_row(1, 5, 5, 1);
    unsigned char code = sh_log8_code(&row, 5, 1);
    float one = 0;
    sh_log8_scores(&one, &code, 1);
    CU_ASSERT(one == 1);
    sh_log8_code(&row, NAN, NAN);                       /* some code; sanitizers see nothing wrong */
}

struct seen {                                           /* rows against what they should be       */
    int q, window, wrong;                               /* the next row                           */
    const float *score;                                 /* its first score                        */
};

static int same_row(void *to, const struct sh_row *r)
{
    struct seen *s = to;
    int first = s->window && s->q >= s->window ? s->q - s->window + 1 : 0;
    s->wrong += r->q != s->q || r->first_key != first || r->n != s->q + 1 - first || r->sparse;
    s->wrong += memcmp(r->score, s->score, (size_t)(s->q + 1 - first) * sizeof(float)) != 0;
    s->score += s->q++ + 1 - first;
    return 0;
}

/* Any bytes are a packed row; what they mean is known from num.h and log8.h. */
static void dense_round_trips(void)
{
    static const struct { int first_row, n_rows, window; } block[] = {
        {0, 1, 0}, {0, 70, 0}, {33, 21, 0}, {0, 40, 7}, {5, 9, 7}, {100, 3, 1}};
    for (int i = 0; i < 6 * 3; i++) {
        enum sh_codec codec = (enum sh_codec)(i % 3);
        struct sh_block b = {.first_row = block[i / 3].first_row, .n_rows = block[i / 3].n_rows,
                             .window = block[i / 3].window, .codec = (int)codec};
        size_t n = sh_rows_scores(b.first_row, b.n_rows, b.window), width = sh_codec_width(codec), at = 0;
        unsigned char *packed = xmalloc(n * width);
        float *expected = xmalloc(n * sizeof *expected);
        for (size_t k = 0; k < n * width; k++)
            packed[k] = (unsigned char)sh_rng(5, k);
        for (size_t k = 0; k < n; k++) {
            uint16_t half;
            if (codec == SH_CODEC_F32)
                memcpy(&expected[k], packed + 4 * k, 4);
            memcpy(&half, packed + width * k, width == 1 ? 1 : 2);
            if (codec == SH_CODEC_F16)
                expected[k] = sh_f16_to_f32(half);
        }
        for (int q = b.first_row; codec == SH_CODEC_LOG8 && q < b.first_row + b.n_rows; q++) {
            int keys = q + 1 - sh_row_start(q, b.window);
            sh_log8_scores(expected + at, packed + at, keys);
            at += (size_t)keys;
        }
        b.bytes = sh_codec_dense(codec, packed, n, &b.blob);
        struct seen s = {.q = b.first_row, .window = b.window, .score = expected};
        CU_ASSERT(sh_codec_rows(&b, same_row, &s, &e) == 0);
        CU_ASSERT(s.wrong == 0 && s.q == b.first_row + b.n_rows && s.score == expected + n);
        uint64_t found[256] = {0}, wanted[256] = {0};
        for (size_t k = 0; k < n && codec == SH_CODEC_LOG8; k++)
            wanted[packed[k]]++;
        CU_ASSERT(sh_codec_histogram(&b, found, &e) == (codec == SH_CODEC_LOG8 ? 0 : -1));
        CU_ASSERT(memcmp(found, wanted, sizeof found) == 0);
        free(packed);
        free(expected);
        free(b.blob);
    }
}

/* A row that sums to about 1: a few large scores, many small ones, exact zeros, and scores at K/n and
 * right next to it. */
static void make_row(float *row, int n, uint64_t seed)
{
    double sum = 0;
    for (int j = 0; j < n; j++) {
        double x = sh_rng_normal(seed, (uint64_t)j) * (double)(1 + seed % 4);
        row[j] = (float)(sh_rng(seed, (uint64_t)(n + j)) % 5 ? exp(x) : 0);
        sum += (double)row[j];
    }
    for (int j = 0; j < n; j++)
        row[j] = sum > 0 ? (float)(row[j] / sum) : 0;
    for (int j = 0; j < n; j += 3) {
        float edge = (float)((double)(1 + sh_rng(seed, (uint64_t)(2 * n + j)) % 12) / n);
        float around[4] = {edge, nextafterf(edge, 0), nextafterf(edge, 2), (float)(1.0 / n)};
        if (edge < 1)
            row[j] = around[sh_rng(seed, (uint64_t)(3 * n + j)) % 4];
    }
}

/* Rows to a sparse block, `at_once` rows in each set of words, as a backend may hand them out. */
static void encode_sets(struct sh_codec_sparse *s, const struct sh_block *b, const float *rows, int at_once)
{
    static const struct sh_lanes lanes = {.values = 1};
    for (int i = 0, n; i < b->n_rows; i += n) {
        int first_row = b->first_row + i;
        n = at_once < b->n_rows - i ? at_once : b->n_rows - i;
        struct sh_row_sets sets;
        row_sets_make(&lanes, rows, first_row, n, b->window, &sets);
        const float *value = sets.value;
        const uint64_t *low = sets.bits;                /* the only set: there are no lanes       */
        for (int k = 0; k < n; k++, low += sets.n_word) {
            int start = sh_row_start(first_row + k, b->window);
            value = sh_codec_sparse_row(s, start, first_row + k + 1 - start, low, sets.first_word, value,
                                        sets.figures[k].low_mass);
        }
        rows += sh_rows_scores(first_row, n, b->window);
        row_sets_free(&sets);
    }
}

static void encode_sparse(struct sh_block *b, const float *rows)
{
    struct sh_codec_sparse *s = sh_codec_sparse_new((enum sh_codec)b->codec);
    encode_sets(s, b, rows, 7);
    b->bytes = sh_codec_sparse_end(s, &b->blob);
    b->codec |= SH_CODEC_SPARSE;
    sh_codec_sparse_free(s);
}

struct compared {
    const float *score;                                 /* the next row as it was                 */
    int window, q, exact, stored;
    int wrong_thresholds, wrong_scores, wrong_rest;
};

static int compare_row(void *to, const struct sh_row *r)
{
    struct compared *c = to;
    int n = r->n, at = 0;
    double rest = 0;
    c->wrong_rest += r->q != c->q || r->first_key != sh_row_start(r->q, c->window) || !r->sparse;
    for (int j = 0; j < n; j++) {
        int stored = at < r->n_stored && r->key[at] == r->first_key + j;
        double was = c->score[j], is = stored ? r->score[at++] : 0;
        c->wrong_thresholds += (was < 1.0 / n) != (stored ? is < 1.0 / n : 1);
        for (int k = 1; k <= 100; k++)
            c->wrong_thresholds += (was > (double)k / n) != (is > (double)k / n);
        if (!stored)
            rest += was;
        else
            c->wrong_scores += c->exact ? is != was : fabs(is - was) > 0.04 * was;
    }
    c->stored += at;
    c->wrong_rest += at != r->n_stored || fabs((double)r->residual - rest) > 1e-6 * rest;
    c->score += n;
    c->q++;
    return 0;
}

static void sparse_decides_exactly(void)
{
    static const struct { int first_row, n_rows, window; } block[] = {
        {0, 300, 0}, {1000, 40, 0}, {2040, 20, 0}, {0, 150, 64}, {500, 50, 100}, {3, 5, 1}};
    for (int i = 0; i < 6 * 2; i++) {
        struct sh_block b = {.first_row = block[i / 2].first_row, .n_rows = block[i / 2].n_rows,
                             .window = block[i / 2].window, .codec = i % 2 ? SH_CODEC_LOG8 : SH_CODEC_F32};
        size_t n = sh_rows_scores(b.first_row, b.n_rows, b.window);
        float *rows = xmalloc(n * sizeof *rows), *at = rows;
        for (int q = b.first_row; q < b.first_row + b.n_rows; q++) {
            int keys = q + 1 - sh_row_start(q, b.window);
            make_row(at, keys, (uint64_t)q);
            at += keys;
        }
        size_t width = sh_codec_width((enum sh_codec)b.codec);
        encode_sparse(&b, rows);
        CU_ASSERT(b.bytes < n * width + 12 * (size_t)b.n_rows + 200);
        struct compared c = {.score = rows, .window = b.window, .q = b.first_row, .exact = i % 2 == 0};
        CU_ASSERT(sh_codec_rows(&b, compare_row, &c, &e) == 0);
        CU_ASSERT(c.q == b.first_row + b.n_rows && c.stored >= b.n_rows && c.wrong_thresholds == 0);
        CU_ASSERT(c.wrong_scores == 0 && c.wrong_rest == 0);
        free(rows);
        free(b.blob);
    }
}

/* One large score, far from the one before it: gaps of 254, 255, 256, 510 keys and none at all; rows
 * without any score; the largest score there can be. */
static void sparse_gaps(void)
{
    static const int place[] = {0, 1, 254, 255, 256, 509, 510, 511, 999};
    enum { N = 1000, ROWS = 12 };
    float *rows = xcalloc(ROWS * (N + ROWS), sizeof *rows), *at = rows;
    for (int i = 0; i < ROWS; at += N + i++) {
        if (i < 9)
            at[place[i]] = 1;
        for (int k = 0; i == 9 && k < 9; k++)
            at[place[k]] = 0.1f;
        for (int k = 0; i == 10 && k < N + i; k++)
            at[k] = (float)(1.0 / (N + i));
    }
    for (int codec = 0; codec < 2; codec++) {
        struct sh_block b = {.first_row = N - 1, .n_rows = ROWS, .codec = codec ? SH_CODEC_LOG8 : SH_CODEC_F32};
        encode_sparse(&b, rows);
        struct compared c = {.score = rows, .q = b.first_row, .exact = !codec};
        CU_ASSERT(sh_codec_rows(&b, compare_row, &c, &e) == 0);
        CU_ASSERT(c.wrong_thresholds == 0 && c.wrong_scores == 0 && c.wrong_rest == 0 && c.q == N - 1 + ROWS);
        free(b.blob);
    }
    free(rows);
}

/* A block does not depend on how many rows came at once, nor on the blocks that were made before. */
static void sparse_blocks_stand_alone(void)
{
    enum { FIRST = 200, ROWS = 150 };
    struct sh_block b = {.first_row = FIRST, .n_rows = ROWS, .window = 130, .codec = SH_CODEC_LOG8}, other = b;
    float *rows = xcalloc(sh_rows_scores(FIRST, ROWS, 130), sizeof *rows);
    for (int i = 0; i < ROWS; i++)
        make_row(rows + 130 * i, 130, (uint64_t)i);
    struct sh_codec_sparse *s = sh_codec_sparse_new(SH_CODEC_LOG8);
    unsigned char *empty;
    encode_sets(s, &b, rows, ROWS);
    b.bytes = sh_codec_sparse_end(s, &b.blob);
    size_t n = sh_codec_sparse_end(s, &empty);
    encode_sets(s, &other, rows, 1);
    other.bytes = sh_codec_sparse_end(s, &other.blob);
    CU_ASSERT(n < 100 && n < b.bytes);
    CU_ASSERT(other.bytes == b.bytes && !memcmp(other.blob, b.blob, b.bytes));
    sh_codec_sparse_free(s);
    free(empty);
    free(b.blob);
    free(other.blob);
    free(rows);
}

/* ---- what must be refused ---- */

struct looked {
    int bad;
    uint64_t hash;                                      /* of all keys and scores                 */
};

static int look(void *to, const struct sh_row *r)       /* no row may leave what the block says   */
{
    struct looked *l = to;
    int before = r->first_key - 1;
    l->bad |= r->n != r->q + 1 - r->first_key || r->n_stored > r->n;
    for (int i = 0; i < (r->sparse ? r->n_stored : r->n); i++) {
        int key = r->sparse ? r->key[i] : r->first_key + i;
        l->bad |= key <= before || key > r->q;
        l->hash = (l->hash ^ sh_bits(r->score[i]) ^ (uint64_t)key << 32) * 0x100000001b3u;
        before = key;
    }
    return 0;
}

static int status_hash(const struct sh_block *b, uint64_t *hash)
{
    struct looked l = {0};
    e.text[0] = '\0';
    int got = sh_codec_rows(b, look, &l, &e);
    CU_ASSERT(!l.bad && (got == 0 || e.text[0]));
    *hash = l.hash;
    return got;
}

static int status(const struct sh_block *b)
{
    uint64_t ignored;
    return status_hash(b, &ignored);
}

/* A block of 3 rows, 2 + 1 + 3 stored scores, with one part replaced. */
static int refuses_part(int which, const void *part, size_t bytes, const char *why)
{
    const uint32_t counts[3] = {2, 1, 3};
    const float residual[3] = {0, 0.5f, 0};
    struct sparse_part parts[4] = {{counts, 12}, {residual, 12}, {"\0\2" "\1" "\0\0\4", 6}, {"\1\2\3\4\5\6", 6}};
    struct sh_block b = {.first_row = 4, .n_rows = 3, .codec = SH_CODEC_SPARSE | SH_CODEC_LOG8};
    if (which >= 0)
        parts[which] = (struct sparse_part){part, bytes};
    b.bytes = sparse_blob(parts, &b.blob);
    int got = status(&b);
    free(b.blob);
    return got == -1 && (!why || tap_says(e.text, why));
}

static void damaged_sparse_blocks(void)
{
    CU_ASSERT(!refuses_part(-1, NULL, 0, NULL));
    CU_ASSERT(refuses_part(0, (uint32_t[]){2, 1, 4}, 12, "row 6"));            /* more than there are */
    CU_ASSERT(refuses_part(0, (uint32_t[]){2, 1, 2}, 12, "more scores"));      /* fewer               */
    CU_ASSERT(refuses_part(0, (uint32_t[]){2, 1, 8}, 12, "row 6"));            /* more than keys      */
    CU_ASSERT(refuses_part(0, (uint32_t[]){2, UINT32_MAX, 2}, 12, "row 5"));
    CU_ASSERT(refuses_part(0, (uint32_t[]){2, 1}, 8, "2 rows, expected 3"));
    CU_ASSERT(refuses_part(0, (uint32_t[]){2, 1, 3, 0}, 16, "16 bytes, expected at most 12"));
    CU_ASSERT(refuses_part(0, "", 0, "0 rows"));
    CU_ASSERT(refuses_part(1, "", 0, "counts"));
    CU_ASSERT(refuses_part(2, "\0\3" "\1" "\0\0\4", 6, NULL) == 0);            /* up to the last key  */
    CU_ASSERT(refuses_part(2, "\0\4" "\1" "\0\0\4", 6, "row 4"));              /* and one after it    */
    CU_ASSERT(refuses_part(2, "\0\2" "\1" "\0\0\5", 6, "row 6"));
    CU_ASSERT(refuses_part(2, "\0\2" "\1" "\0\0\377", 6, "row 6"));            /* ends in a long gap  */
    CU_ASSERT(refuses_part(2, "\377\377\377\377\377\377", 6, "row 4"));
    CU_ASSERT(refuses_part(2, "\0\2" "\1" "\0\0", 5, "row 6"));
    CU_ASSERT(refuses_part(2, "\0\2" "\1" "\0\0\4" "\1", 7, "more scores"));
    CU_ASSERT(refuses_part(3, "\1\2\3\4\5", 5, "row 6"));
    CU_ASSERT(refuses_part(3, "\1\2\3\4\5\6\7", 7, "more scores"));
}

/* A frame that states this size and holds nothing. */
static size_t empty_frame(unsigned char to[16], uint64_t size)
{
    memcpy(to, "\x28\xb5\x2f\xfd\xe0", 5);
    memcpy(to + 5, &size, 8);
    memcpy(to + 13, "\1\0\0", 3);
    return 16;
}

static void damaged_blocks(void)
{
    unsigned char frame[16], *blob;
    struct sh_block b = {.first_row = 4194000, .n_rows = 4194304, .codec = SH_CODEC_F32, .blob = frame};
    static const uint64_t sizes[] = {0, 1, 1 << 20, (uint64_t)1 << 44, (uint64_t)1 << 62, UINT64_MAX};
    for (int i = 0; i < 6; i++) {
        b.bytes = empty_frame(frame, sizes[i]);
        b.codec = SH_CODEC_F32;
        CU_ASSERT(status(&b) == -1);
        b.codec |= SH_CODEC_SPARSE;
        CU_ASSERT(status(&b) == -1);
    }
    size_t n = sh_codec_dense(SH_CODEC_LOG8, "\0\1\2\3\4\5", 6, &blob);
    b = (struct sh_block){.n_rows = 3, .codec = SH_CODEC_LOG8, .blob = blob, .bytes = n};
    CU_ASSERT(status(&b) == 0);
    static const struct sh_block wrong[] = {
        {.n_rows = 2, .codec = 2}, {.n_rows = 4, .codec = 2}, {.n_rows = 0, .codec = 2}, {.n_rows = -3, .codec = 2},
        {.first_row = -1, .n_rows = 3, .codec = 2}, {.first_row = INT_MAX, .n_rows = 3, .codec = 2},
        {.n_rows = INT_MAX, .codec = 2}, {.n_rows = 3, .window = -1, .codec = 2},
        {.n_rows = 3, .window = 1, .codec = 2},
        {.n_rows = 3, .codec = 0}, {.n_rows = 3, .codec = 1}, {.n_rows = 3, .codec = 3}, {.n_rows = 3, .codec = -1},
        {.n_rows = 3, .codec = 18}, {.n_rows = 3, .codec = 32}, {.n_rows = 3, .codec = INT_MIN}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t histogram[256] = {0};
        b = wrong[i];
        b.blob = blob;
        b.bytes = n;
        CU_ASSERT(status(&b) == -1);
        CU_ASSERT(sh_codec_histogram(&b, histogram, &e) == -1);
    }
    for (size_t cut = 0; cut < n; cut++) {
        b = (struct sh_block){.n_rows = 3, .codec = SH_CODEC_LOG8, .blob = blob, .bytes = cut};
        CU_ASSERT(status(&b) == -1);
    }
    free(blob);
}

static int codec_of(int i)
{
    return (i % 2 ? SH_CODEC_LOG8 : SH_CODEC_F32) + (i < 2 ? 0 : SH_CODEC_SPARSE);
}

/* Seeded damage to whole blobs, caught by the frames' checksums (unless it hits the one bit of a frame
 * that means nothing), or to the parts inside of them. */
static void mutations(void)
{
    enum { ROUNDS = 6000 };
    float rows[50 * 51 / 2], *at = rows;
    unsigned char *whole[4], damaged[4 * sizeof rows];
    size_t n[4];
    uint64_t sound[4], hash;
    int refused = 0, changed = 0;
    for (int q = 0; q < 50; at += ++q)
        make_row(at, q + 1, (uint64_t)q);
    for (int i = 0; i < 4; i++) {
        struct sh_block b = {.n_rows = 50, .codec = i % 2 ? SH_CODEC_LOG8 : SH_CODEC_F32};
        if (i < 2)
            b.bytes = sh_codec_dense((enum sh_codec)b.codec, rows, 1275, &b.blob);
        else
            encode_sparse(&b, rows);
        whole[i] = b.blob;
        n[i] = b.bytes;
    }
    for (int i = 0; i < 4; i++)
        CU_ASSERT(status_hash(&(struct sh_block){.n_rows = 50, .blob = whole[i], .bytes = n[i], .codec = codec_of(i)},
                              &sound[i]) == 0);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int i = (int)(round % 4), changes = 1 + (int)(sh_rng(round, 0) % 3);
        struct sh_block b = {.n_rows = 50, .blob = damaged, .bytes = n[i], .codec = codec_of(i)};
        memcpy(damaged, whole[i], n[i]);
        for (int k = 0; k < changes; k++)
            damaged[sh_rng(round, 2 * (uint64_t)k + 1) % n[i]] ^=
                (unsigned char)(1 + sh_rng(round, 9 + (uint64_t)k) % 255);
        if (round % 5 == 0)
            b.bytes = sh_rng(round, 20) % n[i];
        for (size_t k = 0; round % 11 == 0 && k < b.bytes; k++)
            damaged[k] = (unsigned char)sh_rng(round, 30 + k);
        int got = status_hash(&b, &hash);
        refused += got == -1;
        changed += got == 0 && hash != sound[i];
    }
    CU_ASSERT(changed == 0 && refused > ROUNDS * 99 / 100);
    for (uint64_t round = 0; round < ROUNDS; round++) { /* sound frames of any contents               */
        unsigned char counts[20], gaps[40], values[40];
        for (size_t k = 0; k < 40; k++) {
            gaps[k] = (unsigned char)(sh_rng(round, k) % (round % 2 ? 4 : 256));
            values[k] = (unsigned char)sh_rng(round, 40 + k);
            counts[k / 2] = k % 8 ? 0 : (unsigned char)(sh_rng(round, 80 + k) % 7);
        }
        struct sparse_part parts[4] = {
            {counts, 20}, {values, 20}, {gaps, sh_rng(round, 200) % 41}, {values, sh_rng(round, 201) % 41}};
        struct sh_block b = {.first_row = 2, .n_rows = 5, .codec = SH_CODEC_SPARSE + (round % 3 ? SH_CODEC_LOG8 : 0)};
        b.bytes = sparse_blob(parts, &b.blob);
        status(&b);
        free(b.blob);
    }
    for (int i = 0; i < 4; i++)
        free(whole[i]);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"log8: within 4 % from 1e-8 to 1, thresholds decided as by f32, 0 exact", log8_scores},
        {"log8: rows of attention likewise, and they sum to 1", log8_rows},
        {"log8: every length of row has room for all scores", log8_anchors},
        {"dense: f32, f16, log8 come back, with windows", dense_round_trips},
        {"sparse: thresholds up to 100/n are decided exactly, scores within 4 %", sparse_decides_exactly},
        {"sparse: long gaps, empty and full rows", sparse_gaps},
        {"sparse: blocks stand alone, however many rows come at once", sparse_blocks_stand_alone},
        {"sparse: counts, gaps and values that do not fit are refused", damaged_sparse_blocks},
        {"blocks: impossible rows and sizes are refused", damaged_blocks},
        {"blocks: seeded damage never gets through", mutations},
        {0}};
    return tap_run("codec", tests);
}
