/* SPDX-License-Identifier: Apache-2.0 */
/* The device memory that layers compute in (layer.h), and the rotary tables that lie there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/layers/layer.h"

enum { N_PART = 67 };

struct part { void **at; size_t bytes; };   /* bytes 0: the model does not need it */

static int widest_turn(const struct sh_arch *c)
{
    return c->n_rot > c->local_n_rot ? c->n_rot : c->local_n_rot;
}

static void parts(struct sh_activations *a, struct part part[N_PART])
{
    const struct sh_arch *c = a->arch;
    size_t n = (size_t)a->rows, operand = sh_type_bytes(a->dtype), wide = n * (size_t)sh_arch_widest_ff(c);
    size_t q = n * (size_t)c->n_head * (size_t)c->d_head, kv = n * (size_t)c->n_kv_head * (size_t)c->d_head;
    size_t hidden = n * (size_t)c->d_model, reach = (size_t)a->positions;
    size_t turns = c->pos == SH_POS_ROTARY ? reach * (size_t)(widest_turn(c) / 2) : 0;
    const struct sh_streams *s = &c->streams;
    size_t own = n * (size_t)s->d_own, streams = s->n > 1 ? (size_t)s->n : 0, plain = c->mix.next_to ? hidden : 0;
    size_t late = c->mix.late ? hidden : 0, ngram = n * (size_t)c->ngrams.d;
    size_t local = c->local_rope.base > 0 ? turns : 0, f32 = sizeof(float);
    const struct sh_latent *t = &c->latent;
    size_t values_of_latent = n * (size_t)c->n_head * (size_t)t->d_v, sub = q > values_of_latent ? q : values_of_latent;
    size_t q_rank = (size_t)t->q_rank;
    size_t experts = (size_t)c->mix.n, used = (size_t)c->mix.used, sets = c->mix.attends ? used : 0;
    size_t routes = experts + (size_t)c->mix.zero, set = sets ? hidden + q / used : 0;
    const struct sh_recurrent *r = &c->recurrent;
    size_t channels = r->n_v ? n * (size_t)sh_recurrent_channels(r) : 0, values = n * (size_t)(r->n_v * r->d_v);
    int has_wide_b = r->kind == SH_SHORT_CONV || r->kind == SH_GATED_LRU;
    size_t by_b = has_wide_b ? values : n * (size_t)(r->rank ? r->rank + 2 * r->d_k : r->n_v);
    size_t scaled = r->factor[0] > 0 ? (size_t)(r->n_v * r->d_v + sh_recurrent_channels(r) + r->n_v) : 0;
    size_t ranked = n * (size_t)(r->rank > 2 * r->gate_rank ? r->rank : 2 * r->gate_rank);
    size_t operands = ranked > values ? ranked : values;
    int f32_up = c->flags & (SH_GATED | SH_HAS_SUB_NORM) || c->act == SH_ACT_XIELU;
    int place = c->norm_place, norms = place == SH_NORM_BOTH || place == SH_NORM_OUT || place == SH_NORM_BY_KIND;
    int has_block = norms || c->rate_start > 0 || sh_arch_scales(c) || c->mix.attends || c->shared.n || s->hyper;
    const struct part all[N_PART] = {
        {&a->x, hidden * operand}, {&a->q, q * f32}, {&a->k, kv * f32}, {&a->v, kv * f32},
        {&a->mixed, q * (sh_arch_mixes_f32(c) ? f32 : operand)}, {&a->up, wide * operand},
        {&a->gate, f32_up ? wide * f32 : 0}, {&a->gated, c->flags & SH_GATED ? wide * f32 : 0},
        {&a->block, has_block ? hidden * f32 : 0}, {&a->sub, sh_arch_has_sub(c) ? sub * operand : 0},
        {&a->attn_gate, c->flags & SH_ATTENTION_GATE ? sub * f32 : 0}, {&a->temper, c->temper > 0 ? reach * f32 : 0},
        {&a->logged, c->tempers_heads ? q * f32 : 0},
        {&a->sink, c->flags & SH_HAS_SINKS ? n * (size_t)c->n_head * f32 : 0},
        {&a->value, n * (size_t)sh_dim_size(c, SH_DIM_KV_VALUES) * f32}, {&a->value_factor, (size_t)c->d_value * f32},
        {&a->narrow, n * (size_t)(c->n_head + 2 * c->n_kv_head) * (size_t)c->d_key * f32},
        {&a->key_bias, c->has_key_bias ? n * (size_t)c->n_kv_head * f32 : 0},
        {&a->latent_a, n * q_rank * f32}, {&a->latent_x, n * (size_t)sh_dim_size(c, SH_DIM_Q_RANKS) * operand},
        {&a->latent_q, t->rank ? n * (size_t)sh_dim_size(c, SH_DIM_Q_B) * operand : 0},
        {&a->latent_kv, t->rank ? n * (size_t)sh_dim_size(c, SH_DIM_KV_A) * f32 : 0},
        {&a->latent_v, c->flags & SH_ATTENTION_GATE ? values_of_latent * f32 : 0},
        {&a->mix_logits, n * routes * f32}, {&a->mix_row, n * used * sizeof(int)}, {&a->mix_share, n * used * f32},
        {&a->mix_x, experts ? hidden * operand : 0}, {&a->mix_out, experts ? hidden * f32 : 0},
        {&a->latent_in, n * (size_t)c->mix.latent * operand}, {&a->latent_out, n * (size_t)c->mix.latent * f32},
        {&a->stream_h, streams ? hidden * f32 : 0}, {&a->stream_was, streams * hidden * f32},
        {&a->stream_share, streams * (streams + 2) * n * f32}, {&a->laurel, s->laurel ? hidden * f32 : 0},
        {&a->laurel_y, n * (size_t)s->laurel * operand}, {&a->own_gate, own * f32}, {&a->own_in, own * f32},
        {&a->own_y, own * operand}, {&a->next_to, (plain + late) * f32}, {&a->next_to_x, plain * operand},
        {&a->next_to_by, plain * operand}, {&a->stream_mix, s->rank ? streams * hidden * f32 : 0},
        {&a->stream_low, n * (size_t)s->rank * f32},
        {&a->ngram, ngram * f32}, {&a->ngram_x, ngram * operand}, {&a->query_row, n * sets * sizeof(int)},
        {&a->query_share, n * sets * f32}, {&a->query_x, set * operand}, {&a->query_y, set * f32},
        {&a->recur_x, channels * f32}, {&a->recur_z, values * f32}, {&a->recur_out, values * f32},
        {&a->recur_a, n * (size_t)sh_dim_size(c, SH_DIM_RECUR_DECAYS) * f32}, {&a->recur_b, by_b * f32},
        {&a->recur_factor, scaled * f32}, {&a->gate_factor, c->gate_scale > 0 ? (size_t)sh_arch_widest_ff(c) * f32 : 0},
        {&a->recur_state, sh_arch_most_state(c) * f32}, {&a->recur_y, operands * operand},
        {&a->pair, c->shared.n ? 2 * hidden * operand : 0}, {&a->adapted, n * (size_t)c->shared.rank * operand},
        {&a->norm_y, c->norm_rank ? hidden * f32 : 0}, {&a->norm_gate, c->norm_rank ? hidden * f32 : 0},
        {&a->norm_low, n * (size_t)c->norm_rank * operand},
        {&a->turns[0].cosine, turns * f32}, {&a->turns[0].sine, turns * f32},
        {&a->turns[1].cosine, local * f32}, {&a->turns[1].sine, local * f32}};
    memcpy(part, all, sizeof all);
}

size_t sh_activations_bytes(const struct sh_arch *arch, int rows, enum sh_type dtype)
{
    struct sh_activations a = {.arch = arch, .dtype = dtype, .rows = rows, .positions = rows};
    struct part part[N_PART];
    size_t sum = 0;
    parts(&a, part);
    for (int i = 0; i < N_PART; i++)
        sum += part[i].bytes;
    return sum;
}

/* Fills n numbers. Returns their end. */
static float *same(float *at, int n, float value)
{
    for (int i = 0; i < n; i++)
        at[i] = value;
    return at + n;
}

/* The factor of values narrower than keys, and the zeros after them (values.c). */
static void put_values(struct sh_activations *a)
{
    const struct sh_arch *c = a->arch;
    size_t n = (size_t)a->rows * (size_t)c->n_kv_head * (size_t)c->d_head;
    if (!c->d_value)
        return;
    float *all = xcalloc(n + (size_t)c->d_value, sizeof *all);
    same(all + n, c->d_value, c->value_scale);
    a->backend->put(a->device, a->v, all, n * sizeof *all);
    a->backend->put(a->device, a->value_factor, all + n, (size_t)c->d_value * sizeof *all);
    free(all);
}

/* Zeros after queries and keys of half the width (differential.c), or before them in queries the factor of what a key
 * adds to its scores (key_bias.c). */
static void put_zeros(struct sh_activations *a)
{
    const struct sh_arch *c = a->arch;
    size_t n = (size_t)a->rows * (size_t)c->n_head * (size_t)c->d_head;
    if (!c->d_key)
        return;
    float *zeros = xcalloc(n, sizeof *zeros);
    a->backend->put(a->device, a->k, zeros, n / (size_t)(c->n_head / c->n_kv_head) * sizeof *zeros);
    for (size_t i = 0; c->has_key_bias && i < n; i += (size_t)c->d_head)
        zeros[i + (size_t)c->d_key] = 1 / c->scale;
    a->backend->put(a->device, a->q, zeros, n * sizeof *zeros);
    free(zeros);
}

/* What is the same for every layer: the factors of columns. */
static void put_factors(struct sh_activations *a)
{
    const struct sh_arch *c = a->arch;
    const struct sh_recurrent *r = &c->recurrent;
    int values = r->n_v * r->d_v, keys = r->n_k * r->d_k, ff = sh_arch_widest_ff(c);
    int both = 2 * values + 2 * keys + r->n_v;
    if (!a->recur_factor && !a->gate_factor)
        return;
    float *all = xcalloc((size_t)(both > ff ? both : ff), sizeof *all), *at = all;
    if (a->recur_factor) {
        const int widths[] = {values, values, keys, keys, r->n_v};
        for (int i = 0; i < 5; i++)
            at = same(at, widths[i], r->factor[i]);
        a->backend->put(a->device, a->recur_factor, all, (size_t)both * sizeof *all);
    }
    if (a->gate_factor) {
        same(all, ff, c->gate_scale);
        a->backend->put(a->device, a->gate_factor, all, (size_t)ff * sizeof *all);
    }
    free(all);
}

int sh_activations_new(struct sh_activations *a, const struct sh_backend *b, struct sh_dev *d,
                       const struct sh_arch *arch, int rows, enum sh_type dtype, struct sh_err *e)
{
    *a = (struct sh_activations){.backend = b, .device = d, .arch = arch, .dtype = dtype, .rows = rows,
                                  .positions = rows, .turns = {{.last = -1}, {.last = -1}}};
    struct part part[N_PART];
    parts(a, part);
    for (int i = 0; i < N_PART; i++)
        if (part[i].bytes && !(*part[i].at = b->alloc(d, part[i].bytes, e))) {
            sh_activations_free(a);
            return -1;
        }
    put_factors(a);
    put_values(a);
    put_zeros(a);
    a->slopes = sh_arch_slopes(arch);
    if (arch->mix.attends)
        a->query_first = xcalloc((size_t)arch->mix.used * (size_t)arch->mix.n + 1, sizeof *a->query_first);
    return 0;
}

void sh_activations_free(struct sh_activations *a)
{
    if (a->backend) {
        struct part part[N_PART];
        parts(a, part);
        for (int i = 0; i < N_PART; i++)
            a->backend->release(a->device, *part[i].at);
    }
    free(a->slopes);
    free(a->query_first);
    *a = (struct sh_activations){0};
}

int sh_activations_reach(struct sh_activations *a, int positions, struct sh_err *e)
{
    const struct sh_arch *c = a->arch;
    size_t bytes = (size_t)positions * (size_t)(widest_turn(c) / 2) * sizeof(float);
    if ((c->pos != SH_POS_ROTARY && !(c->temper > 0)) || positions <= a->positions)
        return 0;
    a->positions = positions;
    a->tempered = 0;
    a->backend->release(a->device, a->temper);
    a->temper = NULL;
    if (c->temper > 0 && !(a->temper = a->backend->alloc(a->device, (size_t)positions * sizeof(float), e))) {
        sh_activations_free(a);
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        void **at[] = {&a->turns[i].cosine, &a->turns[i].sine};
        a->turns[i].last = -1;
        for (int k = 0; k < 2 && *at[k]; k++) {
            a->backend->release(a->device, *at[k]);
            *at[k] = a->backend->alloc(a->device, bytes, e);
            if (!*at[k]) {
                sh_activations_free(a);
                return -1;
            }
        }
    }
    return 0;
}

/* The angles of positions first to last. With dynamic scaling each token changes them all, so only these are computed;
 * otherwise all positions are, once. */
static void fill(struct sh_activations *a, struct sh_turns *t, int layer, int length, int first, int last)
{
    const struct sh_rope *rope = sh_arch_rope(a->arch, layer);
    int n_rot = sh_arch_n_rot(a->arch, layer);
    if (t->length == length && t->first <= first && last <= t->last)
        return;
    int is_passing = rope->kind == SH_ROPE_DYNAMIC && length > rope->original;
    *t = (struct sh_turns){t->cosine, t->sine, length, is_passing ? first : 0, is_passing ? last : a->positions - 1};
    size_t half = (size_t)(n_rot / 2), n = (size_t)(t->last + 1 - t->first) * half,
           at = (size_t)t->first * half * sizeof(float);
    float *cosine = xcalloc(n, sizeof *cosine), *sine = xcalloc(n, sizeof *sine);
    sh_rope_table(rope, n_rot, length, t->first, t->last + 1 - t->first, cosine, sine);
    a->backend->put(a->device, (char *)t->cosine + at, cosine, n * sizeof *cosine);
    a->backend->put(a->device, (char *)t->sine + at, sine, n * sizeof *sine);
    free(cosine);
    free(sine);
}

/* What a sequence's table depends on: its positions so far, or those that it is known to come to. */
static int length_of(const struct sh_rope *rope, const int *start, const struct sh_own_attention *own, int s)
{
    int so_far = start[s + 1] - start[s] + (own ? own->first[s] : 0);
    return sh_rope_length(rope, own && own->length > so_far ? own->length : so_far);
}

/* The factors of queries by position. */
static const float *factors(struct sh_activations *a)
{
    const struct sh_arch *c = a->arch;
    float *host = a->tempered ? NULL : xcalloc((size_t)a->positions, sizeof *host);
    for (int p = 0; host && p < a->positions; p++)
        host[p] = c->tempers_heads ? logf((float)(p + 1))
                                   : 1 + c->temper * logf(1 + floorf((float)(p + c->temper_offset) / c->temper_length));
    if (host)
        a->backend->put(a->device, a->temper, host, (size_t)a->positions * sizeof *host);
    a->tempered = 1;
    free(host);
    return a->temper;
}

/* Queries, then keys, unless these come turned from another layer. Layers that do not turn may still scale their
 * queries. */
static void turn(struct sh_activations *a, int layer, int n_rows, struct sh_rotary *r)
{
    const struct sh_arch *c = a->arch;
    for (int i = 0; i < 2 - sh_arch_borrows(c, layer); i++) {
        int cols = (i ? sh_arch_kv_heads(c, layer) : sh_arch_query_heads(c, layer)) * r->d_head;
        r->x = sh_dense(i ? a->k : a->q, SH_F32, n_rows, cols);
        r->factor = !i && sh_arch_tempers(c, layer) ? factors(a) : NULL;
        if (r->n_rot || r->factor)
            a->backend->rotary(a->device, r);
    }
}

/* Sequences that share a table go together; a table is made again when another one is needed. */
void sh_activations_turn(struct sh_activations *a, int layer, int n_rows, int n_seq, const int *start,
                         const struct sh_own_attention *own)
{
    const struct sh_arch *c = a->arch;
    const struct sh_rope *rope = sh_arch_rope(c, layer);
    struct sh_turns *t = &a->turns[rope == &c->local_rope];
    int turns = sh_arch_turns(c, layer);
    for (int s = 0, end; s < n_seq; s = end) {
        int length = turns ? length_of(rope, start, own, s) : 0, first = a->positions, last = -1;
        for (end = s; end < n_seq && (!turns || length_of(rope, start, own, end) == length); end++) {
            int from = own ? own->first[end] : 0, rows = start[end + 1] - start[end];
            first = rows && from < first ? from : first;
            last = rows && from + rows - 1 > last ? from + rows - 1 : last;
        }
        if (last < 0)
            continue;                   /* none of them has a row */
        if (turns)
            fill(a, t, layer, length, first, last);
        struct sh_rotary r = {.d_head = sh_arch_d_head(c, layer), .n_rot = turns ? sh_arch_n_rot(c, layer) : 0,
                              .cos = t->cosine, .sin = t->sine, .n_seq = end - s, .start = start + s,
                              .first = own ? own->first + s : NULL,
                              .position = own ? own->position : NULL};
        turn(a, layer, n_rows, &r);
    }
}

void sh_activations_temper(struct sh_activations *a, struct sh_mat x, int n_seq, const int *start,
                           const struct sh_own_attention *own)
{
    struct sh_rotary r = {.x = x, .d_head = x.cols, .factor = factors(a), .n_seq = n_seq, .start = start,
                          .first = own ? own->first : NULL, .position = own ? own->position : NULL};
    a->backend->rotary(a->device, &r);
}
