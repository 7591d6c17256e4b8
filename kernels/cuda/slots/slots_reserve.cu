/* SPDX-License-Identifier: Apache-2.0 */
/* Room for a token, its slot, and its key and value into it: one block a KV head of a sequence, which goes
 * through the rows that it is given in order. */
#include "kernels/cuda/slots/slots_evict.cuh"
#include "kernels/cuda/slots/slots_append.cuh"

/* Rows [first, end) of each sequence. */
template <int BITS>
__global__ void slots_admit(struct slots s, struct slots_tokens tokens, int layer, const int *start,
                            const int *position, int first, int end)
{
    SH_SHARED(unsigned long long, part, WARPS);
    SH_SHARED(int, bins, BINS);
    SH_SHARED(int, found, 2);
    SH_SHARED(unsigned, masks, WARPS);
    int head = (int)blockIdx.x, sequence = (int)blockIdx.y, row = start[sequence] + first;
    struct slots_head h = s.head[layer * s.n_kv_head + head];
    struct slots_state *at = &s.state[slots_state_at(s, sequence, layer, head)], now = *at;
    end = min(end, start[sequence + 1] - start[sequence]);
    for (int i = first; i < end; i++, row++) {
        int t = position[row];
        if (now.n >= h.budget && t >= s.prefill) {
            struct room r = room_of(s, h, sequence, &now, t);
            now.n -= leave(s, r, &now.next_free, part, bins, found, masks);
        }
        int slot = now.next_free >= 0 ? now.next_free : now.n_slot++;
        size_t to = slots_base(s, sequence, h) + (size_t)slot;
        __syncthreads();                /* what is free now can be read by all                     */
        now.next_free = now.next_free >= 0 ? -2 - s.pos[to] : -1;
        now.n++;
        __syncthreads();
        if (threadIdx.x == 0) {
            s.pos[to] = t;
            if (s.sum)
                s.sum[to] = 0;
            if (s.low)
                s.low[to] = 0;
            if (s.before)
                s.before[to] = 0;
        }
        put_token<BITS>(s, to, tokens, row, head);
        __syncthreads();
    }
    if (threadIdx.x == 0 && end > first)
        *at = now;
}

void cuda_slots_admit(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    dim3 grid((unsigned)s->at.n_kv_head, (unsigned)s->at.n_seq);
    BY_BITS(s->bits, BITS,
            SH_LAUNCH((slots_admit<BITS>), grid, dim3(SLOTS_THREADS), d->compute, s->at, slots_tokens_of(a->what),
                      a->layer, a->start, a->position, a->first, a->end));
}
