/* SPDX-License-Identifier: Apache-2.0 */
/* The device memory that layers compute in (layer.h), and the rotary tables that lie there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/layer.h"

enum { N_PART = 26 };

struct part { void **at; size_t bytes; };   /* bytes 0: the model does not need it */

static void parts(struct sh_activations *a, struct part part[N_PART])
{
    const struct sh_arch *c = a->arch;
    size_t n = (size_t)a->rows, operand = sh_type_bytes(a->dtype), wide = n * (size_t)sh_arch_widest_ff(c);
    size_t q = n * (size_t)c->n_head * (size_t)c->d_head, kv = n * (size_t)c->n_kv_head * (size_t)c->d_head;
    size_t hidden = n * (size_t)c->d_model, reach = (size_t)a->positions;
    size_t turns = c->pos == SH_POS_ROTARY ? reach * (size_t)(c->n_rot / 2) : 0;
    size_t local = c->local_rope.base > 0 ? turns : 0, f32 = sizeof(float);
    const struct sh_latent *t = &c->latent;
    size_t q_rank = (size_t)t->q_rank;
    size_t experts = (size_t)c->mix.n, used = (size_t)c->mix.used;
    int f32_up = c->flags & (SH_GATED | SH_HAS_SUB_NORM) || c->act == SH_ACT_XIELU;
    int has_block = c->norm_place == SH_NORM_BOTH || c->norm_place == SH_NORM_OUT || sh_arch_scales(c);
    const struct part all[N_PART] = {
        {&a->x, hidden * operand}, {&a->q, q * f32}, {&a->k, kv * f32}, {&a->v, kv * f32},
        {&a->mixed, q * (sh_arch_mixes_f32(c) ? f32 : operand)}, {&a->up, wide * operand},
        {&a->gate, f32_up ? wide * f32 : 0}, {&a->gated, c->flags & SH_GATED ? wide * f32 : 0},
        {&a->block, has_block ? hidden * f32 : 0}, {&a->sub, sh_arch_has_sub(c) ? q * operand : 0},
        {&a->attn_gate, c->flags & SH_ATTENTION_GATE ? q * f32 : 0}, {&a->temper, c->temper > 0 ? reach * f32 : 0},
        {&a->sink, c->flags & SH_HAS_SINKS ? n * (size_t)c->n_head * f32 : 0},
        {&a->latent_a, n * q_rank * f32}, {&a->latent_x, n * q_rank * operand},
        {&a->latent_q, t->rank ? n * (size_t)sh_dim_size(c, SH_DIM_Q_B) * operand : 0},
        {&a->latent_kv, t->rank ? n * (size_t)sh_dim_size(c, SH_DIM_KV_A) * f32 : 0},
        {&a->mix_logits, n * experts * f32}, {&a->mix_row, n * used * sizeof(int)}, {&a->mix_share, n * used * f32},
        {&a->mix_x, experts ? hidden * operand : 0}, {&a->mix_out, experts ? hidden * f32 : 0},
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

int sh_activations_new(struct sh_activations *a, const struct sh_backend *b, struct sh_dev *d,
                       const struct sh_arch *arch, int rows, enum sh_type dtype, struct sh_err *e)
{
    *a = (struct sh_activations){.backend = b, .device = d, .arch = arch, .dtype = dtype, .rows = rows,
                                  .positions = rows};
    struct part part[N_PART];
    parts(a, part);
    for (int i = 0; i < N_PART; i++)
        if (part[i].bytes && !(*part[i].at = b->alloc(d, part[i].bytes, e))) {
            sh_activations_free(a);
            return -1;
        }
    a->slopes = sh_arch_slopes(arch);
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
    *a = (struct sh_activations){0};
}

int sh_activations_reach(struct sh_activations *a, int positions, struct sh_err *e)
{
    const struct sh_arch *c = a->arch;
    size_t bytes = (size_t)positions * (size_t)(c->n_rot / 2) * sizeof(float);
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
        a->turns[i].length = 0;
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
static void fill(struct sh_activations *a, struct sh_turns *t, const struct sh_rope *rope, int length, int first,
                 int last)
{
    if (t->length == length && t->first <= first && last <= t->last)
        return;
    int is_passing = rope->kind == SH_ROPE_DYNAMIC && length > rope->original;
    *t = (struct sh_turns){t->cosine, t->sine, length, is_passing ? first : 0, is_passing ? last : a->positions - 1};
    size_t half = (size_t)(a->arch->n_rot / 2), n = (size_t)(t->last + 1 - t->first) * half,
           at = (size_t)t->first * half * sizeof(float);
    float *cosine = xcalloc(n, sizeof *cosine), *sine = xcalloc(n, sizeof *sine);
    sh_rope_table(rope, a->arch->n_rot, length, t->first, t->last + 1 - t->first, cosine, sine);
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
        host[p] = 1 + c->temper * logf(1 + floorf((float)(p + c->temper_offset) / c->temper_length));
    if (host)
        a->backend->put(a->device, a->temper, host, (size_t)a->positions * sizeof *host);
    a->tempered = 1;
    free(host);
    return a->temper;
}

/* Queries, then keys. Layers that do not turn may still scale their queries. */
static void turn(struct sh_activations *a, int layer, int n_rows, struct sh_rotary *r)
{
    const struct sh_arch *c = a->arch;
    for (int i = 0; i < 2; i++) {
        int cols = (i ? c->n_kv_head : c->n_head) * c->d_head;
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
            fill(a, t, rope, length, first, last);
        struct sh_rotary r = {.d_head = c->d_head, .n_rot = turns ? c->n_rot : 0, .cos = t->cosine, .sin = t->sine,
                              .n_seq = end - s, .start = start + s, .first = own ? own->first + s : NULL,
                              .position = own ? own->position : NULL};
        turn(a, layer, n_rows, &r);
    }
}
