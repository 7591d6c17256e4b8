/* SPDX-License-Identifier: Apache-2.0 */
/* See kv_weights.h. */
#include "planner/capacity/kv_weights.h"

#include <string.h>

const char *const sh_kv_part_names[SH_N_PART] = {
    [SH_PART_EMBED] = "token embedding", [SH_PART_POSITIONS] = "position table", [SH_PART_MIX] = "attention, states",
    [SH_PART_FEED] = "feed-forward", [SH_PART_EXPERTS] = "experts", [SH_PART_SHARED] = "shared experts",
    [SH_PART_ROUTER] = "routers", [SH_PART_NORM] = "norms", [SH_PART_HEAD] = "output head",
    [SH_PART_VISION] = "vision tower"};

/* One walk over a model's tensors fills one of these. */
struct sum {
    const struct sh_weight_types *t;
    struct sh_kv_parts *p;
    uint64_t small;                     /* bytes of a number in what is never quantised            */
    uint64_t vector;                    /* bytes of a number in norms and biases                   */
    const struct sh_kv_layer *l;        /* NULL: outside of layers                                */
};

static struct sum begin(const struct sh_weight_types *t, struct sh_kv_parts *p)
{
    uint64_t small = t->matrices.bits == 32 ? 4 : 2;
    return (struct sum){t, p, small, t->matrices.whole_file ? 4 : small, NULL};
}

static void plain(struct sum *s, enum sh_kv_part part, uint64_t n, uint64_t bytes_each)
{
    s->p->parameters[part] += n;
    s->p->bytes[part] += n * bytes_each;
}

static void vector(struct sum *s, enum sh_kv_part part, int n)
{
    plain(s, part, (uint64_t)n, s->vector);
}

static enum sh_kv_part part_of(enum sh_matrix_kind kind)
{
    return kind < SH_MATRIX_GATE ? SH_PART_MIX : kind < SH_MATRIX_EXPERT_GATE ? SH_PART_FEED
           : kind < SH_MATRIX_SHARED_GATE ? SH_PART_EXPERTS : SH_PART_SHARED;
}

/* NULL: it is not quantised. */
static const struct sh_kv_type *type_of(const struct sum *s, enum sh_kv_part part, enum sh_matrix_kind kind)
{
    int own = s->l && s->t->n_own ? s->l->format[kind] : 0;
    if (s->t->n_own)
        return own > 0 && own <= s->t->n_own ? &s->t->own[own - 1] : NULL;
    return part == SH_PART_EXPERTS ? &s->t->experts
           : part == SH_PART_MIX && s->t->attention.bits ? &s->t->attention : &s->t->matrices;
}

/* `rows` outputs of `n` inputs each. */
static void matrix(struct sum *s, enum sh_matrix_kind kind, uint64_t copies, int rows, int n)
{
    enum sh_kv_part part = part_of(kind);
    const struct sh_kv_type *t = type_of(s, part, kind);
    uint64_t numbers = copies * (uint64_t)rows * (uint64_t)n;
    s->p->parameters[part] += numbers;
    s->p->bytes[part] += t ? copies * sh_kv_type_matrix(t, (uint64_t)rows, (uint64_t)n) : numbers * s->small;
}

/* Outside of layers; type NULL: not quantised. */
static void outer(struct sum *s, enum sh_kv_part part, const struct sh_kv_type *type, int rows, int n)
{
    uint64_t numbers = (uint64_t)rows * (uint64_t)n;
    s->p->parameters[part] += numbers;
    s->p->bytes[part] += type ? sh_kv_type_matrix(type, (uint64_t)rows, (uint64_t)n) : numbers * s->small;
}

/* Token embedding and head: quantised in whole-file formats only, and the head where the facts say so. */
static void table(struct sum *s, enum sh_kv_part part, int format, int rows, int n)
{
    int is_own = s->t->n_own && format;
    outer(s, part, s->t->matrices.whole_file ? &s->t->matrices : is_own ? &s->t->own[format - 1] : NULL, rows, n);
}

static void norm(struct sum *s, const struct sh_kv_facts *f, int n, int width)
{
    vector(s, SH_PART_NORM, n * width * (f->norm == SH_KEPT_LAYER ? 2 : 1));
}

/* One that borrows has no keys and values of its own. */
static void attention(struct sum *s, const struct sh_kv_facts *f, const struct sh_kv_layer *l)
{
    int heads = l->heads, width = l->width, q = heads * width, mix = l->mix, borrows = l->borrows;
    int kv = l->kv_heads * width, values = l->values, kv_values = l->kv_heads * values;
    int gate = l->format[SH_MATRIX_GATE_OF_VALUES], apart = f->query_gate && s->t->n_own && gate <= s->t->n_own;
    matrix(s, SH_MATRIX_Q, 1, f->query_gate && !apart ? 2 * q : q, f->hidden);
    if (f->head_gate || apart)          /* one for each head, or for each number */
        matrix(s, SH_MATRIX_GATE_OF_VALUES, 1, apart ? q : heads, f->hidden);
    if (!borrows)
        matrix(s, SH_MATRIX_K, 1, kv, f->hidden);
    if (!borrows && !(f->keys_are_values && mix == SH_MIX_FULL))
        matrix(s, SH_MATRIX_V, 1, kv_values, f->hidden);
    matrix(s, SH_MATRIX_O, 1, f->hidden, heads * values);
    if (f->qkv_bias)
        vector(s, SH_PART_MIX, borrows ? q : q + kv + kv_values);
    if (f->o_bias)
        vector(s, SH_PART_MIX, f->hidden);
    if (f->sinks == 1 || (f->sinks && mix == SH_MIX_WINDOW))
        vector(s, SH_PART_MIX, heads);
    if (f->qk_norm)
        vector(s, SH_PART_NORM, borrows ? width : 2 * width);
    if (f->qk_norm_wide)
        vector(s, SH_PART_NORM, q + kv);
    vector(s, SH_PART_NORM, f->norm_more);
}

/* DeepSeek-V2 (2405.04434), 2.1: queries with or without a latent of their own, keys and values through one, and a
 * rotary key that the heads share. */
static void latent_attention(struct sum *s, const struct sh_kv_shape *m, const struct sh_kv_layer *l)
{
    const struct sh_kv_facts *f = &m->f;
    int q = f->heads * m->d_k;
    if (f->q_latent) {
        matrix(s, SH_MATRIX_Q_A, 1, f->q_latent, f->hidden);
        vector(s, SH_PART_NORM, f->q_latent);
    }
    matrix(s, SH_MATRIX_Q_B, 1, q, f->q_latent ? f->q_latent : f->hidden);
    matrix(s, SH_MATRIX_KV_A, 1, f->latent + l->rope, f->hidden);
    vector(s, SH_PART_NORM, f->latent);
    matrix(s, SH_MATRIX_KV_B, 1, f->heads * (m->d_k - l->rope + f->v_dim), f->latent);
    matrix(s, SH_MATRIX_O, 1, f->hidden, f->heads * f->v_dim);
    if (f->head_gate || f->query_gate)  /* one for each head, or for each number of a value */
        matrix(s, SH_MATRIX_GATE_OF_VALUES, 1, f->query_gate ? f->heads * f->v_dim : f->heads, f->hidden);
    /* norm_more counts the bias of a latent with a rotary key. */
    vector(s, SH_PART_MIX, f->norm_more + (f->o_bias ? f->hidden - (f->rope_dim - l->rope) : 0));
}

/* What makes entries for several tokens: what is pooled and its weights, with a part for the tokens before if entries
 * overlap, a weight for each place, a norm of the result. Not quantised in the published files. */
static void pooling(struct sum *s, const struct sh_kv_facts *f, int pool, int parts, int width)
{
    plain(s, SH_PART_MIX, 2 * (uint64_t)parts * (uint64_t)width * (uint64_t)f->hidden, s->small);
    vector(s, SH_PART_MIX, pool * parts * width);
    vector(s, SH_PART_NORM, width);
}

/* DeepSeek-V4: a latent of queries; one key for all heads, which is their value, too; a latent of outputs for each
 * group of heads; and, with an index, its queries, keys and a weight for each of its heads. */
static void grouped_attention(struct sum *s, const struct sh_kv_facts *f, const struct sh_kv_layer *l)
{
    int q = l->heads * l->width;
    matrix(s, SH_MATRIX_Q_A, 1, f->q_latent, f->hidden);
    matrix(s, SH_MATRIX_Q_B, 1, q, f->q_latent);
    matrix(s, SH_MATRIX_K, 1, l->width, f->hidden);
    matrix(s, SH_MATRIX_O, 1, f->o_groups * f->o_rank, q / f->o_groups);
    matrix(s, SH_MATRIX_O, 1, f->hidden, f->o_groups * f->o_rank);
    vector(s, SH_PART_NORM, f->q_latent + l->width);
    vector(s, SH_PART_MIX, f->sinks ? l->heads : 0);
    if (l->mix == SH_MIX_POOLED)
        pooling(s, f, l->pool, 1 + l->indexed, l->width);
    if (l->indexed) {
        matrix(s, SH_MATRIX_INDEX, 1, f->index_heads * f->index_dim, f->q_latent);
        pooling(s, f, l->pool, 2, f->index_dim);
        plain(s, SH_PART_MIX, (uint64_t)f->index_heads * (uint64_t)f->hidden, s->small);
    }
}

/* DeepSeek-V3.2 (2512.02556), 2.1: queries of the index from the queries' latent, one key for all its heads after a
 * layer norm, a weight for each head. Mistral Large 4 has no such latent: queries of the normed input, scaled for each
 * head by two numbers. */
static void indexer(struct sum *s, const struct sh_kv_facts *f)
{
    matrix(s, SH_MATRIX_INDEX, 1, f->index_heads * f->index_dim, f->q_latent ? f->q_latent : f->hidden);
    matrix(s, SH_MATRIX_INDEX_K, 1, f->index_dim, f->hidden);
    vector(s, SH_PART_NORM, 2 * f->index_dim);
    plain(s, SH_PART_MIX, (uint64_t)f->index_heads * (uint64_t)f->hidden, s->small);
    if (!f->q_latent)
        vector(s, SH_PART_NORM, 2 * (f->hidden + f->index_heads));
}

/* MiniMax-M3: queries and one key of the index, both normed. */
static void block_index(struct sum *s, const struct sh_kv_facts *f)
{
    matrix(s, SH_MATRIX_INDEX, 1, f->index_heads * f->index_dim, f->hidden);
    matrix(s, SH_MATRIX_INDEX_K, 1, f->index_dim, f->hidden);
    vector(s, SH_PART_NORM, 2 * f->index_dim);
}

/* Kimi Delta Attention: q, k, v and strengths; decays and a gate, which may come from ssm_rank numbers of the input. */
static void own_decays(struct sum *s, const struct sh_kv_facts *f)
{
    int decays = f->ssm_heads * f->ssm_key_dim, from = f->ssm_rank ? f->ssm_rank : f->hidden;
    int narrow = f->ssm_rank && !f->ssm_wide_gate;
    matrix(s, SH_MATRIX_STATE, 2, f->ssm_key_heads * f->ssm_key_dim, f->hidden);
    matrix(s, SH_MATRIX_STATE, 1, f->ssm_inner, f->hidden);
    matrix(s, SH_MATRIX_STATE_STRENGTHS, 1, f->ssm_heads, f->hidden);
    if (f->ssm_rank)
        matrix(s, SH_MATRIX_STATE_STEPS, 1, f->ssm_rank, f->hidden);
    if (narrow)
        matrix(s, SH_MATRIX_STATE_GATE, 1, f->ssm_rank, f->hidden);
    matrix(s, SH_MATRIX_STATE_STEPS, 1, decays, from);
    matrix(s, SH_MATRIX_STATE_GATE, 1, f->ssm_inner, narrow ? from : f->hidden);
    vector(s, SH_PART_MIX, f->ssm_heads + decays);
    vector(s, SH_PART_NORM, f->ssm_head_dim);
}

static void state(struct sum *s, const struct sh_kv_facts *f)
{
    int inner = f->ssm_inner, conv = sh_kv_shape_conv(f);
    if (f->ssm == 5) {                  /* linear attention: q, k, v and gate, no convolution        */
        matrix(s, SH_MATRIX_STATE, 1, conv, f->hidden);
        matrix(s, SH_MATRIX_STATE_GATE, 1, inner, f->hidden);
        matrix(s, SH_MATRIX_STATE_OUT, 1, f->hidden, inner);
        vector(s, SH_PART_NORM, inner);
        return;
    }
    vector(s, SH_PART_MIX, conv * f->ssm_conv + f->ssm_biases + (f->ssm == 3 || f->ssm_bare ? 0 : conv));
    matrix(s, SH_MATRIX_STATE_OUT, 1, f->hidden, inner);
    if (f->ssm == 1) {                  /* Mamba as Jamba has it: norms on step and both projections */
        matrix(s, SH_MATRIX_STATE, 1, 2 * inner, f->hidden);
        matrix(s, SH_MATRIX_STATE_STEPS, 1, f->ssm_rank + 2 * f->ssm_state, inner);
        matrix(s, SH_MATRIX_STATE_STEPS, 1, inner, f->ssm_rank);
        vector(s, SH_PART_MIX, 2 * inner + inner * f->ssm_state);
        vector(s, SH_PART_NORM, f->ssm_rank + 2 * f->ssm_state);
    } else if (f->ssm == 2) {           /* Mamba-2: one projection, A, D and step bias for each head */
        matrix(s, SH_MATRIX_STATE, 1, inner + conv + f->ssm_heads, f->hidden);
        vector(s, SH_PART_MIX, 3 * f->ssm_heads);
        vector(s, SH_PART_NORM, f->ssm_unnormed ? 0 : inner);
    } else if (f->ssm == 4) {           /* short convolution: its input and two factors              */
        matrix(s, SH_MATRIX_STATE, 3, inner, f->hidden);
    } else if (f->ssm == 6) {           /* RG-LRU: its input, a gate, and two gates by blocks        */
        matrix(s, SH_MATRIX_STATE, 1, inner, f->hidden);
        matrix(s, SH_MATRIX_STATE_GATE, 1, inner, f->hidden);
        matrix(s, SH_MATRIX_STATE_STEPS, (uint64_t)f->ssm_heads, f->ssm_head_dim, f->ssm_head_dim);
        matrix(s, SH_MATRIX_STATE_STRENGTHS, (uint64_t)f->ssm_heads, f->ssm_head_dim, f->ssm_head_dim);
        vector(s, SH_PART_MIX, inner);
    } else if (f->ssm_own_decays) {
        own_decays(s, f);
    } else {                            /* gated delta rule: q, k, v and gate; two numbers a head    */
        matrix(s, SH_MATRIX_STATE, 1, conv, f->hidden);
        matrix(s, SH_MATRIX_STATE_GATE, 1, inner, f->hidden);
        matrix(s, SH_MATRIX_STATE_STEPS, 1, f->ssm_heads, f->hidden);
        matrix(s, SH_MATRIX_STATE_STRENGTHS, 1, f->ssm_heads, f->hidden);
        vector(s, SH_PART_MIX, 2 * f->ssm_heads);
        vector(s, SH_PART_NORM, f->ssm_head_dim);
    }
}

/* first: the kind of the gate, which those of the other two matrices follow. */
static void feed(struct sum *s, const struct sh_kv_facts *f, enum sh_matrix_kind first, int copies, int width)
{
    enum sh_kv_part part = part_of(first);
    uint64_t n = (uint64_t)copies;
    int outer = part == SH_PART_EXPERTS && f->latent_ffn ? f->latent_ffn : f->hidden;
    matrix(s, first, f->gated ? n : 0, width, outer);
    matrix(s, first + 1, n, width, outer);
    matrix(s, first + 2, n, outer, width);
    if (f->mlp_bias && part != SH_PART_SHARED)
        plain(s, part, n * (uint64_t)(width * (f->gated ? 2 : 1) + outer), s->vector);
}

static void experts(struct sum *s, const struct sh_kv_facts *f)
{
    feed(s, f, SH_MATRIX_EXPERT_GATE, f->experts, f->expert_ffn);
    plain(s, SH_PART_ROUTER, (uint64_t)f->experts * (uint64_t)f->hidden, s->small);
    if (f->router_bias)
        vector(s, SH_PART_ROUTER, f->experts);
    if (f->shared_ffn)
        feed(s, f, SH_MATRIX_SHARED_GATE, 1, f->shared_ffn);
    if (f->latent_ffn) {                /* down to the experts' narrower vector, and up again */
        matrix(s, SH_MATRIX_EXPERT_IN, 1, f->latent_ffn, f->hidden);
        matrix(s, SH_MATRIX_EXPERT_OUT, 1, f->hidden, f->latent_ffn);
    }
    if (f->router_scale)                /* of its input and of what each expert gives */
        vector(s, SH_PART_ROUTER, f->hidden + f->experts);
    if (f->shared_gate)
        plain(s, SH_PART_ROUTER, (uint64_t)f->hidden, s->small);
}

/* The type of the last layer that has either kind of matrix; unchanged if they are not quantised. */
static void last_type(const struct sh_kv_facts *f, enum sh_matrix_kind kind, enum sh_matrix_kind other,
                      const struct sh_weight_types *t, struct sh_kv_type *out)
{
    for (int i = f->layers - 1; i >= 0; i--) {
        int a = f->format[i][kind], b = f->format[i][other], format = a <= t->n_own ? a : b;
        if (format > t->n_own)
            continue;
        if (format)
            *out = t->own[format - 1];
        return;
    }
}

int sh_weight_types_published(const struct sh_kv_facts *f, struct sh_weight_types *out, struct sh_err *e)
{
    if (sh_kv_type_parse(f->published[0] ? f->published : "f16", &out->matrices, e) ||
        sh_kv_type_parse(f->published_experts[0] ? f->published_experts : out->matrices.name, &out->experts, e) ||
        sh_kv_type_parse(f->published_attention[0] ? f->published_attention : out->matrices.name, &out->attention, e))
        return sh_err_prefix(e, "%s: published", f->name);
    out->n_own = f->n_format;
    for (int i = 0; i < f->n_format; i++)
        if (sh_kv_type_parse(f->formats[i], &out->own[i], e))
            return sh_err_prefix(e, "%s: published", f->name);
    if (f->n_format) {
        last_type(f, SH_MATRIX_UP, SH_MATRIX_SHARED_UP, out, &out->matrices);
        if (!f->experts)
            out->experts = out->matrices;
        last_type(f, SH_MATRIX_EXPERT_UP, SH_MATRIX_EXPERT_UP, out, &out->experts);
        last_type(f, SH_MATRIX_O, SH_MATRIX_STATE_OUT, out, &out->attention);
    }
    return 0;
}

static void one_layer(const struct sh_kv_shape *m, int layer, const struct sh_weight_types *t, struct sh_kv_parts *p)
{
    struct sum s = begin(t, p);
    const struct sh_kv_facts *f = &m->f;
    const struct sh_kv_layer *l = s.l = &m->layer[layer];
    if (f->apart) {
        state(&s, f);
        norm(&s, f, 1, f->hidden);
        return;
    }
    if (l->mix == SH_MIX_INDEXED)
        indexer(&s, f);
    if (l->mix == SH_MIX_BLOCKS)
        block_index(&s, f);
    if (l->mix == SH_MIX_LATENT || l->mix == SH_MIX_INDEXED)
        latent_attention(&s, m, l);
    else if (f->o_rank && l->mix != SH_MIX_STATE && l->mix != SH_MIX_NONE)
        grouped_attention(&s, f, l);
    else if (l->mix != SH_MIX_STATE && l->mix != SH_MIX_NONE)
        attention(&s, f, l);
    if (l->products & SH_FACTS_ATTENTION)
        matrix(&s, SH_MATRIX_O, 1, f->hidden, f->hidden);
    if (l->products & SH_FACTS_FEED)
        matrix(&s, SH_MATRIX_UP, 1, f->hidden, f->hidden);
    if (l->state)
        state(&s, f);
    plain(&s, SH_PART_FEED, (uint64_t)f->layer_more, s.small);
    plain(&s, SH_PART_NORM, (uint64_t)f->vectors_more, s.vector);
    if (l->feed == SH_FEED_PLAIN)
        feed(&s, f, SH_MATRIX_GATE, 1, l->ffn);
    else if (l->feed == SH_FEED_EXPERTS)
        experts(&s, f);
    /* A layer that is a mixer alone or a feed-forward block alone has one norm. */
    int blocks = (l->mix != SH_MIX_NONE || l->products & SH_FACTS_ATTENTION) +
                 (l->feed != SH_FEED_NONE || l->products & SH_FACTS_FEED);
    norm(&s, f, blocks == 2 ? f->norms : blocks, f->hidden);
}

/* Add a sum of the layers [first, last), its bytes as the file has them where that counts. The ends come after the
 * layers. */
static void put(const struct sh_kv_shape *m, const struct sh_weight_types *t, int first, int last,
                const struct sh_kv_parts *sum, struct sh_kv_parts *p)
{
    for (int i = 0; i < SH_N_PART; i++) {
        p->parameters[i] += sum->parameters[i];
        if (!t->stored || !m->stored)
            p->bytes[i] += sum->bytes[i];
        for (int k = first; t->stored && m->stored && k < last; k++)
            p->bytes[i] += m->stored[k][i];
    }
}

/* again: of the layers that have the weights of earlier ones among these; 0: of the others. A stage of a pipeline may
 * begin within a loop: the first pass there needs weights, whichever pass of the model it is. */
static void add_layers(const struct sh_kv_shape *m, int first, int last, const struct sh_weight_types *t, int again,
                       struct sh_kv_parts *sum)
{
    int past = last - first > m->f.loop ? first + m->f.loop : last;
    for (int i = first; i < last;) {
        struct sh_kv_alike alike[SH_MOST_ALIKE];
        int is_past = i >= past, groups = sh_kv_shape_alike(m, &i, is_past ? last : past, alike);
        for (int k = 0; k < groups; k++) {
            struct sh_kv_parts one = {{0}, {0}};
            int is_again = is_past && m->layer[alike[k].layer].again;
            uint64_t n = is_again == again ? (uint64_t)alike[k].n : 0;
            one_layer(m, alike[k].layer, t, &one);
            for (int part = 0; part < SH_N_PART; part++) {
                sum->parameters[part] += n * one.parameters[part];
                sum->bytes[part] += n * one.bytes[part];
            }
        }
    }
}

void sh_kv_weights_again(const struct sh_kv_shape *m, int first, int last, const struct sh_weight_types *t,
                         struct sh_kv_parts *p)
{
    add_layers(m, first, last, t, 1, p);
}

void sh_kv_weights_layers(const struct sh_kv_shape *m, int first, int last, const struct sh_weight_types *t,
                          struct sh_kv_parts *p)
{
    struct sh_kv_parts sum = {{0}, {0}};
    add_layers(m, first, last, t, 0, &sum);
    put(m, t, first, last, &sum, p);
}

void sh_kv_weights_first(const struct sh_kv_shape *m, const struct sh_weight_types *t, struct sh_kv_parts *p)
{
    struct sh_kv_parts own = {{0}, {0}};
    struct sum s = begin(t, &own);
    const struct sh_kv_facts *f = &m->f;
    table(&s, SH_PART_EMBED, 0, f->vocab, f->embed_width);
    if (f->embed_width != f->hidden)
        outer(&s, SH_PART_EMBED, t->n_own ? NULL : &t->matrices, f->hidden, f->embed_width);
    if (f->positions)
        plain(&s, SH_PART_POSITIONS, (uint64_t)f->positions * (uint64_t)f->hidden, s.small);
    if (f->embed_norm)
        norm(&s, f, 1, f->hidden);
    plain(&s, SH_PART_EMBED, (uint64_t)f->ends_more, s.small);
    if (f->vision)
        plain(&s, SH_PART_VISION, (uint64_t)f->vision, s.small);
    put(m, t, f->layers, f->layers + 1, &own, p);
}

void sh_kv_weights_last(const struct sh_kv_shape *m, const struct sh_weight_types *t, int copied, struct sh_kv_parts *p)
{
    struct sh_kv_parts own = {{0}, {0}};
    struct sum s = begin(t, &own);
    const struct sh_kv_facts *f = &m->f;
    if (!f->post_norm)
        norm(&s, f, 1, f->hidden);
    if (f->embed_width != f->hidden)
        outer(&s, SH_PART_HEAD, t->n_own ? NULL : &t->matrices, f->embed_width, f->hidden);
    if (!f->tied || copied)
        table(&s, SH_PART_HEAD, f->head_format, f->head_rows ? f->head_rows : f->vocab, f->embed_width);
    if (f->head_bias)
        vector(&s, SH_PART_HEAD, f->vocab);
    put(m, t, f->layers + 1, f->layers + 2, &own, p);
    if (t->stored && m->stored && f->tied && copied)
        p->bytes[SH_PART_HEAD] += m->stored[f->layers][SH_PART_EMBED];
}

struct sh_kv_parts sh_kv_weights_all(const struct sh_kv_shape *m, const struct sh_weight_types *t)
{
    struct sh_kv_parts p = {{0}, {0}};
    sh_kv_weights_first(m, t, &p);
    sh_kv_weights_layers(m, 0, m->f.layers, t, &p);
    sh_kv_weights_last(m, t, 0, &p);
    return p;
}

uint64_t sh_kv_parts_sum(const uint64_t part[SH_N_PART])
{
    uint64_t sum = 0;
    for (int i = 0; i < SH_N_PART; i++)
        sum += part[i];
    return sum;
}
