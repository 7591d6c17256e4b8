/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a KV cache on the device, and the operations of kernels/slots.h. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/slots/slots.cuh"

enum { LEAST_SPLIT = 64, BLOCKS_WANTED = 512 };         /* enough to keep every multiprocessor busy */

/* Sizes and places that follow from the setup; head and host_head are filled when they are not NULL. */
static void measure(const struct sh_slots_setup *a, struct slots *s, struct slots_head *head)
{
    memset(s, 0, sizeof *s);
    s->n_seq = a->n_seq;
    s->n_layer = a->n_layer;
    s->n_head = a->n_head;
    s->n_kv_head = a->n_kv_head;
    s->d = a->d_head;
    s->units = (a->d_head + SLOTS_UNIT - 1) / SLOTS_UNIT;
    s->chunks = (s->units * a->bits + SLOTS_CHUNK - 1) / SLOTS_CHUNK;
    s->code_group = a->bits < 16 ? a->group : a->d_head;
    s->n_code_group = (a->d_head + s->code_group - 1) / s->code_group;
    s->meta_is_f32 = a->meta == SH_F32;
    s->prefill = a->prefill;
    s->keep_rows = a->keep_rows;
    s->policy = a->policy;
    for (int i = 0; i < a->n_layer * a->n_kv_head; i++) {
        const struct sh_slots_head *from = &a->head[i];
        int words = a->policy.rule == SH_SLOTS_LOW_RING ? (from->capacity + WARP - 1) / WARP : 0;
        if (head) {
            head[i].slot_at = s->slots_each;
            head[i].budget = from->budget;
            head[i].capacity = from->capacity;
            head[i].recent = from->recent;
            head[i].drop = from->drop;
            head[i].window = from->window;
            head[i].ring_at = s->ring_each;
            head[i].ring_words = words;
        }
        s->slots_each += (from->capacity + SLOTS_TILE - 1) / SLOTS_TILE * SLOTS_TILE;
        s->ring_each += words * a->policy.look_back;
        s->most_slots = from->capacity > s->most_slots ? from->capacity : s->most_slots;
    }
    int heads = a->n_seq * a->n_kv_head, split = SLOTS_SPLIT;
    while (split > LEAST_SPLIT && heads * ((s->most_slots + split - 1) / split) < BLOCKS_WANTED)
        split /= 2;
    s->split = split;
    s->n_split = (s->most_slots + split - 1) / split;
}

enum part {
    HEAD, STATE, K, V, K_META, V_META, POS, SUM, LOW, BEFORE, RING, SCORES, ROWS, TOP, TOTAL, PART, SLOPES,
    WIDE, PARTS = WIDE + SLOTS_WIDE_PARTS
};

static void sizes(const struct sh_slots_setup *a, const struct slots *s, struct slots_wide *wide, size_t bytes[PARTS])
{
    size_t slots = (size_t)s->n_seq * (size_t)s->slots_each, seq = (size_t)s->n_seq;
    size_t heads = (size_t)(s->n_layer * s->n_kv_head), queries = seq * (size_t)s->n_head;
    size_t meta = a->bits < 16 ? slots * (size_t)s->n_code_group * 2 * sh_type_bytes(a->meta) : 0;
    enum sh_slots_rule rule = a->policy.rule;
    int sums = rule == SH_SLOTS_SUM || rule == SH_SLOTS_MEAN;
    int sees = rule != SH_SLOTS_OLDEST || a->keep_rows;
    bytes[HEAD] = heads * sizeof(struct slots_head);
    bytes[STATE] = seq * heads * sizeof(struct slots_state);
    bytes[K] = slots * (size_t)s->chunks * SLOTS_CHUNK;
    bytes[V] = slots * (size_t)s->units * (size_t)a->bits;
    bytes[K_META] = bytes[V_META] = meta;
    bytes[POS] = slots * sizeof(int);
    bytes[SUM] = sums ? slots * sizeof(float) : 0;
    bytes[LOW] = slots_counts_low(s) ? slots * sizeof(uint16_t) : 0;
    bytes[BEFORE] = rule == SH_SLOTS_LOW_EPOCHS ? slots * sizeof(uint16_t) : 0;
    bytes[RING] = seq * (size_t)s->ring_each * sizeof(uint32_t);
    bytes[SCORES] = sees ? queries * (size_t)s->most_slots * sizeof(float) : 0;
    bytes[ROWS] = a->keep_rows ? seq * (size_t)s->n_kv_head * (size_t)s->most_slots * sizeof(float) : 0;
    bytes[TOP] = bytes[TOTAL] = queries * (size_t)s->n_split * sizeof(float);
    bytes[PART] = bytes[TOP] * (size_t)s->d;
    bytes[SLOPES] = a->slopes ? (size_t)s->n_head * sizeof(float) : 0;
    cuda_slots_wide_sizes(s, a->block, wide, bytes + WIDE);
}

static struct sh_slots_bytes slots_bytes(const struct sh_slots_setup *a)
{
    struct slots s;
    struct slots_wide wide;
    struct sh_slots_bytes b;
    size_t part[PARTS];
    measure(a, &s, NULL);
    sizes(a, &s, &wide, part);
    b.rows = part[K] + part[V];
    b.meta = part[K_META] + part[V_META];
    b.positions = part[POS] + part[STATE] + part[HEAD];
    b.policy = part[SUM] + part[LOW] + part[BEFORE] + part[RING];
    b.scratch = part[SCORES] + part[ROWS] + part[TOP] + part[TOTAL] + part[PART] + part[SLOPES];
    b.block = 0;
    for (int i = WIDE; i < PARTS; i++)
        b.block += part[i];
    return b;
}

static void drop_slots(struct sh_dev *d, struct sh_slots *s)
{
    if (!s)
        return;
    for (int i = 0; i < PARTS; i++)
        cuda_discard(d, s->memory[i]);
    free(s->host_head);
    free(s);
}

__global__ void clear(struct slots_state *state, int n)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x)) {
        state[i].n_slot = state[i].n = 0;
        state[i].next_free = -1;
    }
}

/* Empty: no slot is in use. */
static void restart(struct sh_dev *d, struct sh_slots *s, int sequence)
{
    if (cuda_begin(d, "slots"))
        return;
    size_t heads = (size_t)(s->at.n_layer * s->at.n_kv_head), first = (size_t)sequence * heads;
    size_t ring = (size_t)s->at.ring_each;
    SH_LAUNCH(clear, grid_for(heads, SLOTS_THREADS), dim3(SLOTS_THREADS), d->compute, s->at.state + first, (int)heads);
    if (s->at.ring)
        cuda_check(d, "slots", cudaMemsetAsync(s->at.ring + (size_t)sequence * ring, 0, ring * sizeof *s->at.ring,
                                               d->compute));
    cuda_end(d, "slots");
}

static void place(struct sh_slots *s)
{
    struct slots *at = &s->at;
    void **m = s->memory;
    at->head = (struct slots_head *)m[HEAD];
    at->state = (struct slots_state *)m[STATE];
    at->k = (char *)m[K];
    at->v = (char *)m[V];
    at->k_meta = m[K_META];
    at->v_meta = m[V_META];
    at->pos = (int *)m[POS];
    at->sum = (float *)m[SUM];
    at->low = (uint16_t *)m[LOW];
    at->before = (uint16_t *)m[BEFORE];
    at->ring = (uint32_t *)m[RING];
    at->scores = (float *)m[SCORES];
    at->rows = (float *)m[ROWS];
    at->top = (float *)m[TOP];
    at->total = (float *)m[TOTAL];
    at->part = (float *)m[PART];
    at->slopes = (const float *)m[SLOPES];
    cuda_slots_wide_place(&s->wide, m + WIDE);
}

static struct sh_slots *make(struct sh_dev *d, const struct sh_slots_setup *a, struct sh_err *e)
{
    size_t heads = (size_t)(a->n_layer * a->n_kv_head);
    struct slots_head *head = (struct slots_head *)calloc(heads, sizeof *head);
    struct sh_slots *s = (struct sh_slots *)calloc(1, sizeof *s);
    int bad = !head || !s;
    if (bad)
        cuda_fail(d, "slots: out of memory");
    if (!bad) {
        s->host_head = head;
        s->bits = a->bits;
        s->block = a->block;
        measure(a, &s->at, head);
        sizes(a, &s->at, &s->wide, s->bytes);
        for (int i = 0; i < PARTS && !bad; i++)
            bad = s->bytes[i] && !(s->memory[i] = cuda_alloc(d, s->bytes[i], e));
    }
    if (!bad && !cuda_begin(d, "slots")) {
        place(s);
        cuda_put(d, s->memory[HEAD], head, s->bytes[HEAD]);
        if (a->slopes)
            cuda_put(d, s->memory[SLOPES], a->slopes, s->bytes[SLOPES]);
        for (int i = K; i <= BEFORE; i++)           /* also the padding after a row's numbers         */
            if (s->bytes[i])
                cuda_check(d, "slots", cudaMemsetAsync(s->memory[i], 0, s->bytes[i], d->compute));
        for (int i = 0; i < a->n_seq; i++)
            restart(d, s, i);
    }
    if (bad || cuda_has_failed(d)) {
        if (cuda_has_failed(d))
            *e = d->error;
        if (!s || !s->host_head)
            free(head);
        drop_slots(d, s);
        return NULL;
    }
    return s;
}

/* Every part that is kept for a sequence is in one piece. */
static void copy(struct sh_dev *d, struct sh_slots *s, int to, const struct sh_slots *other, int from)
{
    if (cuda_begin(d, "slots"))
        return;
    for (int i = STATE; i <= RING; i++) {
        size_t each = s->bytes[i] / (size_t)s->at.n_seq;
        if (each)
            cuda_check(d, "slots", cudaMemcpyAsync((char *)s->memory[i] + (size_t)to * each,
                                                   (const char *)other->memory[i] + (size_t)from * each, each,
                                                   cudaMemcpyDeviceToDevice, d->compute));
    }
    cuda_end(d, "slots");
}

/* A layer may have fewer heads than others; what is kept has room for as many as any has. */
static int begin_layer(struct sh_dev *d, struct sh_slots *s, const struct sh_attend *what)
{
    if (cuda_begin(d, "slots"))
        return -1;
    s->at.n_own = what->n_kv_head;
    s->at.group = what->n_head / what->n_kv_head;
    return 0;
}

static void store(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    if (begin_layer(d, s, a->what))
        return;
    cuda_stage_begin(d, SH_STAGE_EVICTION);
    cuda_slots_admit(d, s, a);
    cuda_stage_end(d);
    cuda_end(d, "slots");
}

static void attend(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    if (begin_layer(d, s, a->what))
        return;
    cuda_stage_begin(d, SH_STAGE_EVICTION);
    cuda_slots_admit(d, s, a);
    cuda_stage_end(d);
    cuda_stage_begin(d, SH_STAGE_ATTENTION);    /* softmax and all: one kernel */
    cuda_slots_scores(d, s, a);
    cuda_stage_end(d);
    cuda_stage_begin(d, SH_STAGE_EVICTION);
    cuda_slots_see(d, s, a);
    cuda_stage_end(d);
    cuda_end(d, "slots");
}

static void block(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_block *a)
{
    if (begin_layer(d, s, a->what))
        return;
    cuda_slots_block(d, s, a);
    cuda_end(d, "slots");
}

static void look(struct sh_dev *d, struct sh_slots *s, int sequence, int layer, int head, struct sh_slots_look *out)
{
    struct slots_state state = {0, 0, -1};
    const struct slots *at = &s->at;
    size_t heads = (size_t)(at->n_layer * at->n_kv_head), i = (size_t)(layer * at->n_kv_head + head);
    out->n_slot = out->n = 0;
    cuda_get(d, &state, at->state + (size_t)sequence * heads + i, sizeof state);
    if (cuda_has_failed(d))
        return;
    out->n_slot = state.n_slot;
    out->n = state.n;
    size_t base = (size_t)sequence * (size_t)at->slots_each + (size_t)s->host_head[i].slot_at, n = (size_t)state.n_slot;
    if (out->pos && n)
        cuda_get(d, out->pos, at->pos + base, n * sizeof *out->pos);
    for (size_t k = 0; k < n && out->pos; k++)
        out->pos[k] = out->pos[k] < 0 ? -1 : out->pos[k];
    if (out->row && n)
        cuda_get(d, out->row, at->rows + ((size_t)sequence * (size_t)at->n_kv_head + (size_t)head) *
                                             (size_t)at->most_slots, n * sizeof *out->row);
}

static void count(struct sh_dev *d, const struct sh_slots *s, int first, int n, struct sh_slots_count *out)
{
    size_t heads = (size_t)(s->at.n_layer * s->at.n_kv_head), all = (size_t)n * heads;
    struct slots_state *state = (struct slots_state *)calloc(all, sizeof *state);
    if (!state)
        cuda_fail(d, "slots: out of memory");
    else
        cuda_get(d, state, s->at.state + (size_t)first * heads, all * sizeof *state);
    int bad = cuda_has_failed(d);
    for (size_t i = 0; i < all; i++)
        out[i] = bad ? sh_slots_count{0, 0} : sh_slots_count{state[i].n_slot, state[i].n};
    free(state);
}

const struct sh_slots_ops cuda_slots_ops = {slots_bytes, make, drop_slots, restart, copy, store, attend, block, look,
                                            count};
