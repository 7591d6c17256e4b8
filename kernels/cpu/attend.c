/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention that can hand out its probabilities. One (sequence, KV head) is one piece of
 * work: its keys and values are laid out once as the products want them, then every query
 * head of the group walks over blocks of BLOCK queries:
 *
 *     S = scale * Q K^T      only columns some query of the block can see
 *     S = cap(S) + slopes    when the model has them
 *     P = exp(S - row max)   not yet divided by the row's sum
 *     out = (P V) / sum      and, if tapped, each row recorded from S or P (record.c)
 *
 * The two products are those of attend_lanes.c or attend_amx.c. There is never more than BLOCK x T of scores
 * per thread, with a window not even that. The result of a row does not depend on whether it is recorded: a
 * resumed trace recomputes exactly the same hidden states. 16-bit operands are computed with as f32; only
 * `out` is rounded to their type. */
#include "kernels/cpu/attend.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kernels/cpu/floats.h"
#include "kernels/cpu/vector.h"
#include "src/base/mem.h"
#include "src/base/team.h"

/* Row i's keys are in the columns [from, to). */
static void row_columns(const struct sh_attend *a, const struct block *b, int i, int *from, int *to)
{
    *from = first_key(a, b->q0 + i) - b->first_column;
    *to = b->q0 + i + 1 - b->first_column;
}

static float to_bf16(float x)
{
    return sh_bf16_to_f32(sh_f32_to_bf16(x));
}

static void adjust_rows(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    float slope = a->slopes ? a->slopes[b->head] : 0, cap = a->softcap;
    for (int i = 0; i < b->n_rows; i++) {
        float *s = w->s + (size_t)i * (size_t)w->s_pad;
        int from, to;
        row_columns(a, b, i, &from, &to);
        if (cap > 0)
            for (int j = from; j < to; j++)
                s[j] = cap * tanh_of(s[j] / cap);
        if (a->slopes && !a->rounds_slopes)
            for (int j = from; j < to; j++)
                s[j] += slope * (float)(j + 1 - to);
        for (int j = from; j < to && a->rounds_slopes; j++)
            s[j] += a->scale * to_bf16(to_bf16(slope) * (float)(b->first_column + j));
        int hidden = a->chunk ? (b->q0 + i) / a->chunk * a->chunk - b->first_column : from;
        for (int j = from; j < hidden; j++)
            s[j] = -INFINITY;
    }
}

/* P is zero in the columns that a row does not see. */
static void softmax_row(struct scratch *w, const struct sh_attend *a, const struct block *b, int i)
{
    int from, to;
    row_columns(a, b, i, &from, &to);
    const float *s = w->s + (size_t)i * (size_t)w->s_pad + from;
    float *p = w->p + (size_t)i * (size_t)w->s_pad + from;
    int n = to - from;
    float top = s[0], sum = 0;
#pragma omp simd reduction(max : top)
    for (int j = 0; j < n; j++)
        top = s[j] > top ? s[j] : top;
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < n; j++) {
        p[j] = exp_of_negative(s[j] - top);
        sum += p[j];
    }
    float sink = a->sinks ? expf(fminf(a->sinks[b->head] - top, 80)) : 0;
    sum += sink;
    if (a->sinks && a->mass)
        a->mass[(size_t)(a->start[b->sequence] + b->q0 + i) * (size_t)a->n_head + (size_t)b->head] = sink / sum;
    memset(p - from, 0, (size_t)from * sizeof *p);
    memset(p + n, 0, (size_t)(b->width - to) * sizeof *p);
    w->top[i] = top;
    w->sum[i] = sum;
    w->faulty |= !(sum < INFINITY);
}

/* A row is recorded while it is in the nearest cache. */
static void softmax_rows(struct scratch *w, const struct sh_attend *a, const struct block *b, int wanted)
{
    unsigned long long since = sh_stage_begin(w->stages);
    for (int i = 0; i < b->n_rows; i++) {
        softmax_row(w, a, b, i);
        if (!wanted)
            continue;
        since = sh_stage_end(w->stages, SH_STAGE_SOFTMAX, since, w->sharers);
        CPU_NAME(cpu_record_row)(w, a, b, i);
        since = sh_stage_begin(w->stages);
    }
    sh_stage_end(w->stages, SH_STAGE_SOFTMAX, since, w->sharers);
}

static void store_out(const struct scratch *w, const struct sh_attend *a, int row, int head, int i)
{
    float *o = w->o + (size_t)i * (size_t)w->d_pad, inverse = 1.0f / w->sum[i];
    size_t at = (size_t)row * a->out.stride + (size_t)head * (size_t)a->d_head;
    for (int c = 0; c < a->d_head; c++)
        o[c] *= inverse;
    store_floats((char *)a->out.at + at * sh_type_bytes(a->out.type), a->out.type, o, (size_t)a->d_head);
}

static void attend_head(struct scratch *w, const struct sh_attend *a, int sequence, int head)
{
    int n = a->start[sequence + 1] - a->start[sequence];
    for (int q0 = 0; q0 < n; q0 += BLOCK) {
        struct block b = {.sequence = sequence, .head = head, .q0 = q0, .n_rows = n - q0 < BLOCK ? n - q0 : BLOCK};
        b.first_column = first_key(a, q0) / COLS * COLS;
        b.width = padded(q0 + b.n_rows) - b.first_column;
        unsigned long long since = sh_stage_begin(w->stages);
        CPU_NAME(cpu_multiply_keys)(w, a, &b);
        since = sh_stage_end(w->stages, SH_STAGE_ATTENTION, since, w->sharers);
        if (a->softcap > 0 || a->slopes || a->chunk)
            adjust_rows(w, a, &b);
        sh_stage_end(w->stages, SH_STAGE_SOFTMAX, since, w->sharers);
        softmax_rows(w, a, &b, is_wanted(a, sequence));
        since = sh_stage_begin(w->stages);
        if (a->out.at)
            CPU_NAME(cpu_multiply_values)(w, a, &b);
        for (int i = 0; i < b.n_rows && a->out.at; i++)
            store_out(w, a, a->start[sequence] + b.q0 + i, b.head, i);
        sh_stage_end(w->stages, SH_STAGE_ATTENTION, since, w->sharers);
        if (is_wanted(a, sequence))
            CPU_NAME(cpu_record_block)(w, a, &b);
    }
}

/* Lay the scratch out in `base`, or only count its bytes. */
static size_t lay_out(struct scratch *w, const struct sh_attend *a, char *base)
{
    int longest = 0;
    for (int s = 0; s < a->n_seq; s++)
        if (a->start[s + 1] - a->start[s] > longest)
            longest = a->start[s + 1] - a->start[s];
    int wide = a->window && a->window < longest - BLOCK - COLS ? a->window + BLOCK + COLS : longest;
    /* One register tile more than needed: rows 4096 bytes apart would share their cache sets. */
    size_t d = (size_t)(w->d_pad = padded(a->d_head)), s = (size_t)(w->s_pad = padded(wide) + COLS), at = 0;
    w->n_pad = padded(longest) + COLS;
    CPU_NAME(cpu_operands_lay_out)(w, a, base, &at);
    w->s = carve(base, &at, BLOCK * s * sizeof(float));
    w->p = carve(base, &at, BLOCK * s * sizeof(float));
    w->o = carve(base, &at, BLOCK * d * sizeof(float));
    w->top = carve(base, &at, BLOCK * sizeof(float));
    w->sum = carve(base, &at, BLOCK * sizeof(float));
    CPU_NAME(cpu_record_lay_out)(&w->record, a, wide, base, &at);
    return at;
}

size_t CPU_NAME(cpu_attend_bytes)(const struct sh_attend *a)
{
    struct scratch w = {0};
    return lay_out(&w, a, NULL);
}

struct work {
    const struct sh_attend *a;
    size_t bytes;
    struct sh_stages *stages;
    atomic_int faulty;                                  /* 1 + the first faulty sequence          */
};

/* One sequence's queries that share a KV head. */
static void attend_group(struct scratch *w, const struct sh_attend *a, int sequence, int kv_head)
{
    int group = a->n_head / a->n_kv_head;
    unsigned long long since = sh_stage_begin(w->stages);
    CPU_NAME(cpu_load_keys_values)(w, a, a->start[sequence], a->start[sequence + 1] - a->start[sequence], kv_head);
    sh_stage_end(w->stages, SH_STAGE_ATTENTION, since, w->sharers);
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
        attend_head(w, a, sequence, head);
}

static void take_groups(void *arg, struct sh_member *me)
{
    struct work *work = arg;
    const struct sh_attend *a = work->a;
    struct scratch w = {.stages = work->stages, .sharers = sh_stage_sharers(work->stages, me->n_threads)};
    char *base = xaligned(work->bytes);
    lay_out(&w, a, base);
    memset(w.p, 0, BLOCK * (size_t)w.s_pad * sizeof(float));    /* tiles read whole ROWS */
    CPU_NAME(cpu_operands_begin)(&w);
    for (int i; sh_member_take(me, &i);) {
        int sequence = i / a->n_kv_head, known = atomic_load(&work->faulty);
        w.faulty = 0;
        attend_group(&w, a, sequence, i % a->n_kv_head);
        while (w.faulty && (!known || known > sequence + 1) &&
               !atomic_compare_exchange_weak(&work->faulty, &known, sequence + 1))
            ;
    }
    CPU_NAME(cpu_operands_end)(&w);
    free(base);
}

int CPU_NAME(cpu_attend)(const struct sh_attend *a, int n_threads, struct sh_stages *stages)
{
    struct work w = {.a = a, .bytes = CPU_NAME(cpu_attend_bytes)(a), .stages = stages};
    sh_team_run(n_threads, a->n_seq * a->n_kv_head, take_groups, &w);
    return atomic_load(&w.faulty);
}
