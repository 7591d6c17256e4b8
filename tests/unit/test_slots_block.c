/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a prompt through the KV cache on the device (kernels/slots.h) against those of the host
 * (src/engine/block.c), in random shapes: what attention gives, the rows, who is kept and in which slot, with single
 * tokens in between, sequences that are restarted and heads with budgets of their own. Each side computes its own rows,
 * so near ties may flip on a real device (near_ties.h): a shape is played up to the first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/engine/host_cache.h"
#include "src/engine/rows.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/device_policies.h"
#include "tests/unit/near_ties.h"

enum { SEQ = 2, LAYERS = 2, LAYER = 1, MOST_HEADS = 4, MOST_TOKENS = 200 };

static const struct rule { const char *policy; struct sh_slots_policy to; } rules[] = {
    {"full", {.rule = SH_SLOTS_OLDEST, .decay = 1, .look_back = 1}},
    {"window", {.rule = SH_SLOTS_OLDEST, .decay = 1, .look_back = 1}},
    {"streaming:sinks=3", {.rule = SH_SLOTS_OLDEST, .sinks = 3, .decay = 1, .look_back = 1}},
    {"h2o", {.rule = SH_SLOTS_SUM, .decay = 1, .look_back = 1}},
    {"h2o:score=mean,recent=2,sinks=1", {.rule = SH_SLOTS_MEAN, .sinks = 1, .decay = 1, .look_back = 1}},
    {"h2o:score=decay,gamma=0.9", {.rule = SH_SLOTS_SUM, .decay = 0.9f, .look_back = 1}},
    {"h2o:recent=0.5", {.rule = SH_SLOTS_SUM, .decay = 1, .look_back = 1}},
    {"scissorhands:window=9,recent=2,drop=4", {.rule = SH_SLOTS_LOW_RING, .decay = 1, .look_back = 9}},
    {"scissorhands:window=40,recent=1,drop=0.5",
     {.rule = SH_SLOTS_LOW_RING, .decay = 1, .look_back = 40}},
    {"scissorhands:window=33,recent=3,drop=1,threshold=i,counts=rate",
     {.rule = SH_SLOTS_LOW_RING, .decay = 1, .look_back = 33, .by_row = 1, .rate = 1}},
    {"scissorhands:window=8,recent=2,drop=3,counter=epochs",
     {.rule = SH_SLOTS_LOW_EPOCHS, .decay = 1, .look_back = 8}},
    {"scissorhands:window=25,recent=2,drop=1,counter=epochs,counts=rate,sinks=2",
     {.rule = SH_SLOTS_LOW_EPOCHS, .sinks = 2, .decay = 1, .look_back = 25, .rate = 1}}};
enum { N_RULES = sizeof rules / sizeof *rules };

struct shape {
    const struct rule *rule;
    int d, group, n_kv_head, bits, code_group, budget, prefill, whole, window, block, n_token;
    int alibi, is_even, looks;          /* is_even: all scores are the same, so that many are tied */
    float softcap;
    enum sh_type meta, type;            /* type: of what comes out                                */
    uint64_t seed;
};

struct world {
    const struct target *on;
    const struct shape *s;
    struct sh_policy_spec spec;
    struct sh_arch arch;
    struct sh_kv_cache *cache;          /* the host's                                             */
    struct sh_slots_head head[LAYERS * MOST_HEADS];
    float slopes[MOST_HEADS * 16];
    struct sh_slots *slots;
    int budget[LAYERS * MOST_HEADS], length[SEQ], sequence, first;
    int same_slots;                     /* no step has let several tokens go at once, in no stated order */
    float *row;                         /* [n_kv_head, rows, position]: what the host's policy was told */
    double out_off, row_off;
    int wrong, looked, left, flips;
    struct near_ties *near[SEQ];        /* what the host's policy was told                         */
};

static int one_of(const struct shape *s, int what, const int *list, int n)
{
    return list[sh_rng(s->seed, (uint64_t)what) % (uint64_t)n];
}
#define ONE_OF(s, what, ...) \
    one_of(s, what, (int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))

static struct shape shape_of(int number)
{
    struct shape s = {.rule = &rules[number % N_RULES], .seed = 100 + (uint64_t)number};
    s.d = ONE_OF(&s, 0, 8, 16, 20, 40, 64, 72, 128, 256);
    s.group = ONE_OF(&s, 1, 1, 1, 2, 3, 8, 11);
    s.n_kv_head = ONE_OF(&s, 2, 1, 2, 3);
    s.bits = ONE_OF(&s, 3, 32, 32, 16, 8, 4);
    s.code_group = ONE_OF(&s, 4, 8, 16, 64);
    s.budget = ONE_OF(&s, 5, 9, 14, 31, 40);
    s.block = ONE_OF(&s, 6, 1, 3, 8, 17, 40, 64);
    s.prefill = ONE_OF(&s, 7, 0, 0, 5, 35);
    s.window = ONE_OF(&s, 8, 0, 0, 0, 6, 20);
    s.alibi = ONE_OF(&s, 9, 0, 0, 1);
    s.softcap = (float)ONE_OF(&s, 10, 0, 0, 20);
    s.looks = ONE_OF(&s, 11, 0, 1);
    s.is_even = ONE_OF(&s, 12, 0, 0, 0, 1);
    s.meta = ONE_OF(&s, 13, 0, 1) ? SH_F32 : SH_F16;
    s.type = (enum sh_type)ONE_OF(&s, 14, SH_F32, SH_F32, SH_F16, SH_BF16);
    s.n_token = MOST_TOKENS;
    s.whole = ONE_OF(&s, 15, 0, 0, 0, 1);
    if (s.whole)
        s.prefill = s.block;
    if (!strcmp(s.rule->policy, "full"))
        s.bits = s.bits < 16 ? 32 : s.bits;             /* codes of what never leaves lie otherwise */
    return s;
}

/* ---- both caches ---- */

static void open_host(struct world *w)
{
    const struct shape *s = w->s;
    struct sh_err e;
    w->arch = (struct sh_arch){.n_layer = LAYERS, .n_head = s->group * s->n_kv_head, .n_kv_head = s->n_kv_head,
                               .d_head = s->d, .window = s->window};
    for (int i = 0; i < LAYERS * s->n_kv_head; i++)
        w->budget[i] = s->budget + 3 * (i % s->n_kv_head);
    struct sh_session_setup setup = {.arch = &w->arch, .spec = &w->spec, .budget = w->budget, .n_seq = SEQ,
                                .n_token = s->n_token, .prefill = s->prefill, .whole = s->whole, .block = s->block,
                                .format = {.bits = s->bits, .group = s->code_group, .meta = s->meta}};
    w->cache = sh_kv_cache_new(&setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->cache);
}

static void open_world(struct world *w, const struct target *on, const struct shape *s)
{
    struct sh_err e;
    *w = (struct world){.on = on, .s = s, .same_slots = 1};
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(s->rule->policy, &w->spec, &e), 0);
    open_host(w);
    for (int i = 0; i < LAYERS * s->n_kv_head; i++) {
        const struct sh_kept *kept = sh_kv_cache_head(w->cache, 0, i / s->n_kv_head, i % s->n_kv_head)->kept;
        const struct sh_policy_head *h = sh_kept_cache(kept)->head;
        w->head[i] = (struct sh_slots_head){.budget = h->budget, .capacity = h->capacity,
                                            .window = s->window};
        w->head[i].recent = sh_policy_recent(&w->spec, w->head[i].budget);
        w->head[i].drop = sh_policy_drop(&w->spec, w->head[i].budget);
    }
    for (int i = 0; i < w->arch.n_head; i++)
        w->slopes[i] = 0.5f / (float)(i + 1);
    struct sh_slots_setup setup = {.n_seq = SEQ, .n_layer = LAYERS, .n_head = w->arch.n_head, .n_kv_head = s->n_kv_head,
                                   .d_head = s->d, .bits = s->bits, .group = s->code_group, .meta = s->meta,
                                   .prefill = s->prefill, .block = s->block, .keep_rows = s->looks, .head = w->head,
                                   .slopes = s->alibi ? w->slopes : NULL, .policy = s->rule->to};
    CU_ASSERT(on->b->slots->bytes(&setup).block > 0);
    w->slots = on->b->slots->make(on->d, &setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->slots);
    w->row = xcalloc((size_t)(s->n_kv_head * s->block * MOST_TOKENS), sizeof *w->row);
    for (int i = 0; i < SEQ; i++)
        w->near[i] = near_new(&w->spec, LAYERS, s->n_kv_head, s->group, s->d, MOST_TOKENS + 1);
}

static void close_world(struct world *w)
{
    w->on->b->slots->drop(w->on->d, w->slots);
    sh_kv_cache_free(w->cache);
    for (int i = 0; i < SEQ; i++)
        near_free(w->near[i]);
    free(w->row);
}

/* ---- rows ---- */

struct rows {                           /* of a piece, with rows of others around them            */
    struct matrix q, k, v, out;
    struct sh_attend what;
    float *dense[4];                    /* the host's q, k, v and what comes out: as the device's, without gaps */
};

static struct matrix normal(const struct world *w, int rows, int cols, int gap, int number, int is_zero)
{
    struct matrix x = matrix_new(w->on, SH_F32, rows, cols, gap);
    matrix_normal(w->on, &x, sh_rng(w->s->seed, 1000 + (uint64_t)(10 * w->first + number)), 0.8);
    for (int i = 0; i < rows && is_zero; i++)
        for (int j = 0; j < cols; j++)
            matrix_set(&x, i, j, 0);
    matrix_put(w->on, &x);
    return x;
}

static float *packed(const struct matrix *x)
{
    size_t cols = (size_t)x->m.cols;
    float *to = xmalloc((size_t)x->m.rows * cols * sizeof *to);
    for (size_t i = 0; i < (size_t)x->m.rows; i++)
        memcpy(to + i * cols, (float *)x->host + i * x->m.stride, cols * sizeof *to);
    return to;
}

static struct rows rows_of(const struct world *w, int n)
{
    const struct shape *s = w->s;
    int wide = w->arch.n_head * s->d, narrow = s->n_kv_head * s->d;
    struct rows r = {.q = normal(w, n, wide, 4, 0, s->is_even), .k = normal(w, n, narrow, 3, 1, 0),
                     .v = normal(w, n, narrow, 0, 2, 0), .out = matrix_new(w->on, s->type, n, wide, 8)};
    r.what = (struct sh_attend){.q = r.q.m, .k = r.k.m, .v = r.v.m, .out = r.out.m, .n_head = w->arch.n_head,
                                .n_kv_head = s->n_kv_head, .d_head = s->d, .window = s->window,
                                .scale = 1 / sqrtf((float)s->d), .softcap = s->softcap,
                                .slopes = s->alibi ? w->slopes : NULL};
    r.dense[0] = packed(&r.q);
    r.dense[1] = packed(&r.k);
    r.dense[2] = packed(&r.v);
    r.dense[3] = xcalloc((size_t)(n * wide), sizeof(float));
    return r;
}

static void free_rows(const struct world *w, struct rows *r)
{
    matrix_free(w->on, &r->q);
    matrix_free(w->on, &r->k);
    matrix_free(w->on, &r->v);
    matrix_free(w->on, &r->out);
    for (int i = 0; i < 4; i++)
        free(r->dense[i]);
}

/* ---- the host's way ---- */

static void tell(struct world *w, int head, int t, const struct sh_cache *c, const float *row)
{
    int n_row = 0;
    for (int i = 0; i < c->n_slot; i++)
        n_row += c->pos[i] >= 0 && (!w->s->window || c->pos[i] > t - w->s->window);
    near_row(w->near[w->sequence], LAYER, head, t, c->pos, row, c->n_slot, n_row);
}

static void note(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct world *w = to;
    float *into = w->row + (head * w->s->block + t - w->first) * MOST_TOKENS;
    CU_ASSERT_FATAL(sequence == w->sequence && layer == LAYER);
    tell(w, head, t, c, row);
    for (int i = 0; i < MOST_TOKENS; i++)
        into[i] = -1;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            into[c->pos[i]] = row[i];
}

static void host_block(struct world *w, const struct rows *r, int n)
{
    struct sh_err e;
    const struct sh_policy *p = w->spec.policy;
    for (int h = 0; h < w->s->n_kv_head; h++) {
        size_t bytes = 0;
        struct sh_kv_head *head = sh_kv_cache_head(w->cache, w->sequence, LAYER, h);
        int before = sh_kept_cache(head->kept)->n;
        struct sh_block b = {.what = &r->what, .sequence = w->sequence, .layer = LAYER, .head = h, .h = head,
                             .first = w->first, .n = n, .q = r->dense[0], .k = r->dense[1], .v = r->dense[2],
                             .mixed = r->dense[3], .needs = p->needs, .observes = p->observe != NULL,
                             .watch = note, .watch_to = w};
        CU_ASSERT_EQUAL_FATAL(sh_block_run(&b, &bytes, &e), 0);
        w->left += before + n - sh_kept_cache(head->kept)->n;
    }
}

static void host_step(struct world *w, const struct rows *r)
{
    const struct shape *s = w->s;
    int most = MOST_TOKENS, group = s->group, d = s->d;
    float *probs = xcalloc((size_t)((group + 1) * most + SH_ROWS_AT_ONCE * d), sizeof *probs);
    for (int h = 0; h < s->n_kv_head; h++) {
        struct sh_kv_head *head = sh_kv_cache_head(w->cache, w->sequence, LAYER, h);
        int n = sh_kept_make_room(head->kept, w->first, NULL, NULL), slot = sh_kept_admit(head->kept, w->first);
        const struct sh_cache *c = sh_kept_cache(head->kept);
        sh_kv_head_put(head, slot, r->dense[1] + h * d, r->dense[2] + h * d);
        struct sh_slots_attend a = {
            .k = &head->k, .v = &head->v, .pos = c->pos, .n_slot = c->n_slot, .group = group,
            .q = r->dense[0] + h * group * d, .position = w->first, .window = s->window, .scale = r->what.scale,
            .softcap = s->softcap, .slopes = s->alibi ? w->slopes + h * group : NULL,
            .out = r->dense[3] + h * group * d, .probs = probs, .chunk = probs + (group + 1) * most};
        struct sh_step step = {.t = w->first, .n_row = sh_slots_attend(&a), .row = probs + group * most};
        sh_slots_mean(probs, group, c->n_slot, probs + group * most);
        tell(w, h, w->first, c, step.row);
        sh_kept_observe(head->kept, &step);
        w->same_slots &= n < 2;
        w->left += n;
    }
    free(probs);
}

/* ---- the device's, and both compared ---- */

static void see(void *to, int head, int t, const struct sh_slots_look *seen)
{
    struct world *w = to;
    const float *told = w->row + (head * w->s->block + t - w->first) * MOST_TOKENS;
    int live = 0, expected = 0;
    for (int i = 0; i < seen->n_slot; i++) {
        int pos = seen->pos[i];
        live += pos >= 0;
        if (pos >= 0)
            w->row_off = fmax(w->row_off, fabs((double)(seen->row[i] - told[pos])));
    }
    for (int i = 0; i < MOST_TOKENS; i++)
        expected += told[i] >= 0;
    w->wrong += live != expected || live != seen->n;
    w->looked++;
}

static int compare_positions(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Sets that differ may do so by a near tie, decided for token t. */
static int is_flip(struct world *w, int head, int t, const int *pos, const int *expected, int n_slot)
{
    unsigned char here[MOST_TOKENS + 1] = {0}, there[MOST_TOKENS + 1] = {0};
    struct near_ties *n = w->near[w->sequence];
    int before = n->n_flip;
    for (int i = 0; i < n_slot; i++) {
        if (expected[i] >= 0)
            here[expected[i]] = 1;
        if (pos[i] >= 0)
            there[pos[i]] = 1;
    }
    int ok = near_judge(n, LAYER, head, t, here, there);
    w->flips += n->n_flip - before;
    return ok && n->n_flip > before;
}

static void check_kept(struct world *w, int t)
{
    for (int h = 0; h < w->s->n_kv_head; h++) {
        const struct sh_cache *c = sh_kept_cache(sh_kv_cache_head(w->cache, w->sequence, LAYER, h)->kept);
        int pos[MOST_TOKENS], expected[MOST_TOKENS], bytes = c->n_slot * (int)sizeof *pos;
        struct sh_slots_look look = {.pos = pos};
        w->on->b->slots->look(w->on->d, w->slots, w->sequence, LAYER, h, &look);
        int wrong = look.n != c->n || look.n_slot != c->n_slot;
        memcpy(expected, c->pos, (size_t)bytes);
        if (!w->same_slots && !wrong) {
            qsort(pos, (size_t)c->n_slot, sizeof *pos, compare_positions);
            qsort(expected, (size_t)c->n_slot, sizeof *pos, compare_positions);
        }
        wrong = wrong || memcmp(pos, expected, (size_t)bytes) != 0;
        w->wrong += wrong && !(look.n_slot == c->n_slot && is_flip(w, h, t, pos, expected, c->n_slot));
    }
}

static void check_out(struct world *w, struct rows *r)
{
    matrix_get(w->on, &r->out);
    for (int i = 0; i < r->out.m.rows; i++)
        for (int j = 0; j < r->out.m.cols; j++) {
            double x = (double)r->dense[3][i * r->out.m.cols + j];
            double off = fabs(matrix_at(&r->out, i, j) - x) - 2 * rounding(w->s->type, x);
            w->out_off = fmax(w->out_off, isnan(off) ? INFINITY : off / 4);     /* values are up to 4 */
        }
    CU_ASSERT_EQUAL(matrix_gap_touched(&r->out), 0);
}

static void block(struct world *w, int n)
{
    struct rows r = rows_of(w, n);
    struct sh_slots_block a = {.what = &r.what, .layer = LAYER, .sequence = w->sequence, .n = n, .first = w->first,
                               .look = w->s->looks ? see : NULL, .to = w};
    host_block(w, &r, n);
    w->on->b->slots->block(w->on->d, w->slots, &a);
    check_out(w, &r);
    check_kept(w, w->first + n);
    free_rows(w, &r);
}

static void step(struct world *w)
{
    struct sh_err e;
    struct rows r = rows_of(w, 1);
    int numbers[SEQ + 2] = {0}, *at = w->on->b->alloc(w->on->d, sizeof numbers, &e);
    for (int i = w->sequence; i < SEQ; i++)
        numbers[i + 1] = 1;
    numbers[SEQ + 1] = w->first;
    w->on->b->put(w->on->d, at, numbers, sizeof numbers);
    struct sh_slots_step a = {.what = &r.what, .layer = LAYER, .start = at, .position = at + SEQ + 1, .end = 1};
    host_step(w, &r);
    w->on->b->slots->attend(w->on->d, w->slots, &a);
    check_kept(w, w->first);
    if (!w->flips)                      /* else it attended over another set */
        check_out(w, &r);
    w->on->b->release(w->on->d, at);
    free_rows(w, &r);
}

/* Blocks of different lengths and single tokens, now of one sequence, now of the other. */
static void play(struct world *w)
{
    const struct shape *s = w->s;
    for (int piece = 0; piece < 14 && !w->flips; piece++) {
        uint64_t dice = sh_rng(s->seed, 50 + (uint64_t)piece);
        w->sequence = (int)(dice % SEQ);
        int *length = &w->length[w->sequence], is_step = dice >> 8 & 1;
        int n = 1 + (int)((dice >> 16) % (uint64_t)s->block);
        if (piece == 9) {
            *length = 0;
            sh_kv_cache_restart(w->cache, w->sequence);
            near_free(w->near[w->sequence]);
            w->near[w->sequence] = near_new(&w->spec, LAYERS, s->n_kv_head, s->group, s->d, MOST_TOKENS + 1);
            w->on->b->slots->restart(w->on->d, w->slots, w->sequence);
        }
        if (s->whole) {                 /* one block, then tokens */
            is_step = *length > 0;
            n = s->block;
        }
        n = is_step ? 1 : n;
        w->first = *length;
        if (*length + n > s->n_token)
            continue;
        if (is_step)
            step(w);
        else
            block(w, n);
        *length += n;
    }
}

static void all(const struct target *on)
{
    int looked = 0, left = 0, flips = 0, n = on->small ? N_RULES : 6 * N_RULES;
    for (int i = 0; i < n; i++) {
        struct world w;
        struct shape s = shape_of(i);
        open_world(&w, on, &s);
        play(&w);
        int ok = !w.wrong && w.out_off <= 3e-6 && w.row_off <= 2e-6;
        if (!ok)
            printf("# shape %d, %s, d %d, %d heads of %d, %d bits, blocks of %d: %d sets wrong, out off by %.1e, "
                   "rows by %.1e\n", i, s.rule->policy, s.d, s.group, s.n_kv_head, s.bits, s.block, w.wrong, w.out_off,
                   w.row_off);
        CU_ASSERT(ok);
        looked += w.looked;
        left += w.left;
        flips += w.flips;
        close_world(&w);
    }
    CU_ASSERT(looked > 100 && left > 100);
    printf("# near ties that flipped: %d of %d shapes\n", flips, n);
    CU_ASSERT(!flips || (!target_is_emulated() && flips <= n / 4));
}

static void too_long(const struct target *on)
{
    struct target own = {.which = on->which};
    struct world w;
    struct sh_err e;
    struct shape s = shape_of(1);
    if (target_open(&own, on->which, 1))
        return;
    s.block = 3;
    s.whole = 0;
    open_world(&w, &own, &s);
    struct rows r = rows_of(&w, 4);
    struct sh_slots_block a = {.what = &r.what, .layer = LAYER, .n = 4};
    own.b->slots->block(own.d, w.slots, &a);
    CU_ASSERT_EQUAL(own.b->sync(own.d, &e), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "a block of 4 rows, expected at most 3"));
    free_rows(&w, &r);
    close_world(&w);
    target_close(&own);
}

static void every_policy(void)
{
    const char *given[N_RULES];
    for (int i = 0; i < N_RULES; i++)
        given[i] = rules[i].policy;
    check_device_policies(given, N_RULES);
}

static void shapes(void) { target_run(ON_MODULE, all); }
static void refused(void) { target_run(ON_MODULE, too_long); }

int main(void)
{
    static const struct tap_test tests[] = {
        {"every policy with a rule for devices has a case", every_policy},
        {"blocks in random shapes: attention, rows, who is kept and where, as on the host (module)", shapes},
        {"a block longer than there is room for (module)", refused},
        {0}};
    return tap_run("slots_block", tests);
}
