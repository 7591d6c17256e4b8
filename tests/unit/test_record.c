/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: how recorded attention leaves an attend, on every backend. test_attend.c compares scores in
 * f32 with double precision; here the other packs are compared with the f32 scores of the same backend:
 * f16 is their rounding; a code of log8 is on their side of 1/n, 2/n and 5/n and else exact unless its cell's
 * edge is within 1e-3 cells; sets, figures and values are exactly what src/base makes of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/log8.h"
#include "src/base/mem.h"
#include "src/base/row_figures.h"
#include "tests/tap.h"
#include "tests/unit/attention.h"

static const int lengths[MAX_SEQ] = {7, 129, 1, 33}, few[MAX_SEQ] = {5, 70, 1, 33}, many[MAX_SEQ] = {1, 1100, 2, 1};

static const struct shape shapes[] = {                  /* heads, KV heads, d_head, window, softcap, slopes, type */
    {4, 4, 8, 0, 0, 0, SH_F32, 1},     {4, 1, 64, 0, 0, 1, SH_F32, 1},  {2, 2, 40, 0, 0, 0, SH_F16, 1},
    {2, 1, 80, 0, 0, 0, SH_BF16, 1},   {2, 2, 64, 5, 0, 0, SH_F32, 1},  {2, 1, 40, 64, 20, 0, SH_F16, 1},
    {2, 2, 129, 70, 0, 0, SH_F32, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* One more of more rows than a backend takes at once. */
static void attention_at(const struct target *t, struct attention *c, int i)
{
    if (i < N_SHAPES)
        attention_new(t, c, &shapes[i], t->small ? few : lengths, MAX_SEQ);
    else
        attention_new(t, c, &(struct shape){1, 1, 8, 100, 0, 0, SH_F32, 1}, many, MAX_SEQ);
}

/* The code of p by definition (src/base/log8.h), with its logarithm off by `nudge` cells. */
static int code_of(double p, int n, double most, int lowest, double nudge)
{
    static const struct { int whole, cell; } edge[] = {{1, 0}, {2, 9}, {5, 21}};
    if (p == 0)
        return SH_LOG8_ZERO;
    int cell = (int)ceil(log(p * n) / log(10) * 30 + nudge) - 1;
    for (int k = 0; k < 3; k++)
        if (p > (double)edge[k].whole / n)
            cell = cell > edge[k].cell ? cell : edge[k].cell;
        else
            cell = cell < edge[k].cell ? cell : edge[k].cell - 1;
    int code = sh_log8_anchor(n) - cell;
    code = code < SH_LOG8_LAST ? code : SH_LOG8_LAST;
    return code + (p < 0.01 * most && code >= lowest + 60);
}

/* A row's codes against its f32 scores. Where a logarithm lies within 1e-3 of an edge that is not decided
 * by the score, either side will do. */
static int wrong_codes(const unsigned char *code, const float *p, int n)
{
    int wrong = 0, lowest = 255;
    double most = 0;
    for (int j = 0; j < n; j++) {
        most = fmax(most, (double)p[j]);
        lowest = code[j] < lowest ? code[j] : lowest;
    }
    for (int j = 0; j < n; j++)
        wrong += code[j] != code_of((double)p[j], n, most, lowest, 1e-3) &&
                 code[j] != code_of((double)p[j], n, most, lowest, -1e-3);
    return wrong;
}

static void packs(const struct target *t)
{
    for (int i = 0; i <= N_SHAPES; i += t->small ? 3 : 1) {
        struct attention c;
        attention_at(t, &c, i);
        struct recording *f32 = attention_record(t, &c, SH_PACK_F32, NULL, NULL);
        struct recording *f16 = attention_record(t, &c, SH_PACK_F16, NULL, NULL);
        struct recording *log8 = attention_record(t, &c, SH_PACK_LOG8, NULL, NULL);
        int halves = 0, codes = 0;
        for (int h = 0; h < MAX_SEQ * c.a.n_head; h++) {
            const float *p = (const float *)(const void *)f32->head[h].packed;
            int length = attention_length(&c, h / c.a.n_head);
            for (size_t at = 0; at < attention_scores(&c, length); at++)
                halves += host_at(SH_F16, f16->head[h].packed, at) != rounded(SH_F16, (double)p[at]);
            for (int q = 0; q < length; q++) {
                size_t at = attention_scores(&c, q);
                codes += wrong_codes(log8->head[h].packed + at, p + at, q + 1 - attention_first(&c, q));
            }
        }
        if (halves || codes)
            printf("# shape %d: %d wrong in f16, %d in log8\n", i, halves, codes);
        CU_ASSERT(!halves && !codes);
        recording_free(f32);
        recording_free(f16);
        recording_free(log8);
        attention_free(t, &c);
    }
}
EACH_BACKEND(packs)

/* Limits around what the scores are: `on` is one of them, that no comparison may count. */
static void lanes_new(struct sh_lanes lanes[MAX_SEQ], float on)
{
    static const struct sh_lane all[SH_MAX_LANES] = {
        {0.01, 0}, {1, 1}, {0, 0}, {-1, 0}, {1, 0}, {0.5, 1}, {3, 1}, {1.0 / 65, 0}, {1e-3, 0}, {0, 1}, {0.2, 0},
        {1e-30, 0}, {2, 0}, {1.0 / 3, 1}};
    static const int count[MAX_SEQ] = {1, SH_MAX_LANES, 3, 9};
    for (int s = 0; s < MAX_SEQ; s++) {
        lanes[s] = (struct sh_lanes){.n = count[s], .values = s % 2};
        for (int k = 0; k < count[s]; k++)
            lanes[s].lane[k] = all[(k + s) % 14];
    }
    lanes[1].lane[14] = (struct sh_lane){(double)on, 0};
    lanes[1].lane[15] = (struct sh_lane){(double)nextafterf(on, 0), 0};
}

/* The entropy may be taken from logits and their sum, which is rounded as the scores are: good to about 1e-7. */
static int same_figures(const struct sh_row_figures *a, const struct sh_row_figures *b, int values)
{
    return fabs(a->entropy - b->entropy) <= 2e-7 * (b->entropy + 1) && a->mass_top == b->mass_top &&
           (!values || a->low_mass == b->low_mass) && a->below_1pct == b->below_1pct;
}

struct wrong {
    int bits, figures, values;
};

/* One row of n scores from key `first` on. What the row does not see is NaN: it is in no set. */
static void check_row(struct wrong *w, const struct sh_lanes *lanes, const float *p, int first, int n, int words,
                      const uint64_t *bits, const struct sh_row_figures *figures)
{
    float *row = xcalloc((size_t)words * 64, sizeof *row), limit[SH_MAX_LANES];
    uint64_t *expected = xcalloc((size_t)((lanes->n + 1) * words), sizeof *expected);
    struct sh_row_figures f;
    for (int j = 0; j < words * 64; j++)
        row[j] = j >= first && j < first + n ? p[j - first] : NAN;
    for (int k = 0; k < lanes->n; k++)
        limit[k] = sh_round_down(lanes->lane[k].per_key ? lanes->lane[k].value / n : lanes->lane[k].value);
    sh_row_bits(row, (size_t)words, limit, lanes->n, sh_round_up(1.0 / n), expected, (size_t)words);
    sh_row_figures(p, n, &f);
    w->bits += memcmp(expected, bits, (size_t)((lanes->n + 1) * words) * sizeof *bits) != 0;
    w->figures += !same_figures(&f, figures, lanes->values);
    free(row);
    free(expected);
}

static void check_head(struct wrong *w, const struct recording *f32, const struct recording *sets, int sequence,
                       int head)
{
    const struct attention *c = sets->c;
    const struct sh_lanes *lanes = &sets->tap.lanes[sequence];
    const struct recorded *found = &sets->head[sequence * c->a.n_head + head];
    const float *p = (const float *)(const void *)f32->head[sequence * c->a.n_head + head].packed;
    int words = recording_words(sets, sequence);
    size_t n_value = 0;
    for (int row = 0; row < attention_length(c, sequence); row++) {
        int first = attention_first(c, row), n = row + 1 - first;
        check_row(w, lanes, p, first, n, words, found->bits + (size_t)(row * (lanes->n + 1)) * (size_t)words,
                  &found->figures[row]);
        for (int i = 0; i < n && lanes->values; i++)
            if (!(p[i] < sh_round_up(1.0 / n))) {
                w->values += n_value >= found->n_value || found->value[n_value] != p[i];
                n_value++;
            }
        p += n;
    }
    w->values += found->n_value != n_value;
}

static void sets(const struct target *t)
{
    for (int i = 0; i <= N_SHAPES; i += t->small && i < N_SHAPES - 1 ? 2 : 1) {
        struct attention c;
        struct sh_lanes lanes[MAX_SEQ];
        struct wrong w = {0};
        attention_at(t, &c, i);
        struct recording *f32 = attention_record(t, &c, SH_PACK_F32, NULL, NULL);
        lanes_new(lanes, ((const float *)(const void *)f32->head[c.a.n_head].packed)[attention_scores(&c, 60) - 2]);
        struct recording *r = attention_record(t, &c, SH_PACK_SETS, lanes, NULL);
        for (int h = 0; h < MAX_SEQ * c.a.n_head; h++)
            check_head(&w, f32, r, h / c.a.n_head, h % c.a.n_head);
        if (w.bits || w.figures || w.values)
            printf("# shape %d: %d rows with wrong sets, %d with wrong figures, %d wrong values\n", i, w.bits,
                   w.figures, w.values);
        CU_ASSERT(!w.bits && !w.figures && !w.values);
        recording_free(f32);
        recording_free(r);
        attention_free(t, &c);
    }
}
EACH_BACKEND(sets)

/* A call with one head of width 1 whose last row has these logits. */
static void attention_of(const struct target *t, struct attention *c, const float *logits, int n)
{
    attention_new(t, c, &(struct shape){1, 1, 1, 0, 0, 0, SH_F32, 1}, &n, 1);
    for (int j = 0; j < n; j++) {
        matrix_set(&c->q, j, 0, 1);
        matrix_set(&c->k, j, 0, (double)logits[j]);
    }
    matrix_put(t, &c->q);
    matrix_put(t, &c->k);
}

static void last_row(const struct target *t, enum sh_pack pack, const float *logits, int n, void *packed)
{
    struct attention c;
    attention_of(t, &c, logits, n);
    struct recording *r = attention_record(t, &c, pack, NULL, NULL);
    size_t bytes = pack_bytes(pack);
    memcpy(packed, r->head[0].packed + attention_scores(&c, n - 1) * bytes, (size_t)n * bytes);
    matrix_get(t, &c.out);
    int broken = 0;
    for (int j = 0; j < n; j++)
        broken += !isfinite(matrix_at(&c.out, j, 0));
    CU_ASSERT(broken == 0);
    recording_free(r);
    attention_free(t, &c);
}

/* One logit far above all others, which are equal. */
static void extremes(const struct target *t)
{
    enum { N = 77 };
    static const float above[] = {0, 88, 1e4f, 1e30f, 3e38f};
    float logits[N], p[N];
    uint16_t half[N];
    unsigned char codes[N];
    for (int far = 0; far < 5; far++) {
        int wrong = 0;
        for (int j = 0; j < N; j++)
            logits[j] = j ? -above[far] : 0;
        last_row(t, SH_PACK_F32, logits, N, p);
        last_row(t, SH_PACK_F16, logits, N, half);
        last_row(t, SH_PACK_LOG8, logits, N, codes);
        for (int j = 0; j < N; j++) {
            double expected = !far ? 1.0 / N : j ? 0 : 1;
            wrong += !(fabs((double)p[j] - expected) <= (far ? 1e-37 : 1e-7 * expected));
            wrong += host_at(SH_F16, half, (size_t)j) != rounded(SH_F16, (double)p[j]);
        }
        wrong += wrong_codes(codes, p, N);
        if (wrong)
            printf("# %d of %d scores wrong with the first logit %g above the others\n", wrong, N, (double)above[far]);
        CU_ASSERT(wrong == 0);
    }
    for (int j = 0; j < N; j++)                         /* all of them far from 0: the same as around it */
        logits[j] = 1e6f * (j == N - 1 ? -1.0f : -2.0f);
    last_row(t, SH_PACK_F32, logits, N, p);
    CU_ASSERT(p[N - 1] == 1 && p[0] == 0);
}
EACH_BACKEND(extremes)

static void ignore(void *to, int sequence, int head, int first_row, int n_rows, const void *packed)
{
    (void)to, (void)sequence, (void)head, (void)first_row, (void)n_rows, (void)packed;
}

/* Scores that are no numbers: a broken row must not look like a sure one. The device says so at the next
 * sync, and which sequence it was. Whether rows are handed out before is open. */
static void refuse(const struct target *t, float q, float k, const struct sh_tap *tap)
{
    struct target other;
    struct attention c;
    struct sh_err e = {.text = ""};
    if (target_open(&other, t->which, 1))
        return;
    attention_new(&other, &c, &(struct shape){2, 1, 8, 0, 0, 0, SH_F32, 1}, (const int[]){9, 40, 12}, 3);
    matrix_set(&c.q, c.start[1] + 30, 3, (double)q);
    matrix_set(&c.k, c.start[1] + 25, 3, (double)k);
    matrix_put(&other, &c.q);
    matrix_put(&other, &c.k);
    c.a.tap = *tap;
    other.b->attend(other.d, &c.a);
    CU_ASSERT(other.b->sync(other.d, &e) == -1 && strstr(e.text, "sequence 1") != NULL);
    attention_free(&other, &c);
    target_close(&other);
}

static void refused(const struct target *t)
{
    const struct sh_lanes lane = {.n = 1, .lane = {{0.01, 0}}, .values = 1}, lanes[3] = {lane, lane, lane};
    refuse(t, 1, NAN, &(struct sh_tap){0});
    refuse(t, 1, INFINITY, &(struct sh_tap){.pack = SH_PACK_SETS, .lanes = lanes, .rows = ignore});
    refuse(t, 1, -INFINITY, &(struct sh_tap){.pack = SH_PACK_LOG8, .rows = ignore});
    refuse(t, 1e20f, 1e20f, &(struct sh_tap){.pack = SH_PACK_F32, .rows = ignore});
}
EACH_BACKEND(refused)

/* Three tiles, a sequence each, with one worker, who holds the first until all are queued. */
struct line {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    emulated_count *done;
    int is_queued, handed_out;
    unsigned long at[3];                /* work that the device had done when the tile came out   */
};

static void hand_out(void *to, int sequence, int head, int first_row, int n_rows, const void *packed)
{
    struct line *l = to;
    (void)head, (void)first_row, (void)n_rows, (void)packed;
    pthread_mutex_lock(&l->lock);
    while (!l->is_queued)
        pthread_cond_wait(&l->changed, &l->lock);
    l->at[sequence] = l->done();
    l->handed_out++;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* The values of a tile's sets are a copy of their own, made when their number is known. It waits for that tile alone:
 * the device has not run those after it when the second tile comes out. */
static void values_do_not_wait(void)
{
    static const struct sh_lanes lane = {.n = 1, .lane = {{0.01, 0}}, .values = 1};
    const struct sh_lanes lanes[3] = {lane, lane, lane};
    struct line l = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct target t;
    struct attention c;
    if (!(l.done = target_emulated("emu_done")))
        return;
    setenv("SH_EMU_STREAMS", "lazy", 1);
    if (target_open(&t, ON_MODULE, 1))
        return;
    attention_new(&t, &c, &(struct shape){1, 1, 8, 0, 0, 0, SH_F32, 1}, (const int[]){40, 40, 40}, 3);
    target_sync(&t);
    c.a.tap = (struct sh_tap){.pack = SH_PACK_SETS, .lanes = lanes, .rows = hand_out, .to = &l};
    t.b->attend(t.d, &c.a);
    pthread_mutex_lock(&l.lock);
    l.is_queued = 1;
    pthread_cond_broadcast(&l.changed);
    while (l.handed_out < 3)
        pthread_cond_wait(&l.changed, &l.lock);
    pthread_mutex_unlock(&l.lock);
    unsigned long second = l.at[1] - l.at[0], third = l.at[2] - l.at[1];
    if (second < 2 || third != second)
        printf("# work done when the tiles came out: %lu, %lu, %lu\n", l.at[0], l.at[1], l.at[2]);
    CU_ASSERT(second > 1 && third == second);           /* more than its copy: the tile itself */
    attention_free(&t, &c);
    target_close(&t);
}

int main(void)
{
    static const struct tap_test tests[] = {
        LIST_BACKENDS("record: f16 and log8 are the f32 scores, packed", packs),
        LIST_BACKENDS("record: sets, figures and values are those of the f32 scores", sets),
        LIST_BACKENDS("record: equal, huge and very negative scores", extremes),
        LIST_BACKENDS("record: broken scores are refused, with the sequence", refused),
        {"record: the copy of a tile's values waits for no later tile (module)", values_do_not_wait},
        {0}};
    return tap_run("record", tests);
}
