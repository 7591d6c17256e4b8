/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a tile reduced to what statistics need: key sets as bits, figures, and the scores that
 * are not low. Everything is bit for bit what sh_row_bits and sh_row_figures (src/base) make of the
 * same probabilities: comparisons are exact, and sums keep the order that row_figures.h gives: score i
 * goes to partial sum i % 16, every operation rounded by itself. */
#include <float.h>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tile.cuh"

enum { THREADS = 128, WARPS = THREADS / WARP, SUM_THREADS = 512, PARTIAL = 16, DIGITS = 256 };

static __device__ float round_down(double alpha)
{
    float f = (float)alpha;
    return (double)f > alpha ? nextafterf(f, -INFINITY) : f;
}

static __device__ float round_up(double alpha)
{
    float f = (float)alpha;
    return (double)f < alpha ? nextafterf(f, INFINITY) : f;
}

/* ln x for normal x > 0; the polynomial of row_figures.c (Cephes' logf). */
static __device__ float ln(float x)
{
    const float c[9] = {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
    uint32_t u = __float_as_uint(x) - 0x3f3504f3u;
    float exponent = (float)((int32_t)u >> 23);
    float f = __fsub_rn(__uint_as_float((u & 0x7fffffu) + 0x3f3504f3u), 1.0f), z = __fmul_rn(f, f), y = c[0];
    for (int i = 1; i < 9; i++)
        y = __fadd_rn(__fmul_rn(y, f), c[i]);
    y = __fadd_rn(__fmul_rn(__fmul_rn(y, f), z), __fmul_rn(exponent, -2.12194440e-4f));
    y = __fsub_rn(y, __fmul_rn(0.5f, z));
    return __fadd_rn(__fadd_rn(f, y), __fmul_rn(exponent, 0.693359375f));
}

enum sum_kind { SUM_ENTROPY, SUM_FROM, SUM_BELOW };

/* Called by a whole warp; its first PARTIAL lanes each add every PARTIAL-th score. Lane 0 gets the total. */
static __device__ double sum_in_order(const float *p, int n, enum sum_kind kind, uint32_t from, float below)
{
    int lane = (int)threadIdx.x % WARP;
    double part = 0, total = 0;
    for (int i = lane; lane < PARTIAL && i < n; i += PARTIAL) {
        float x = p[i], term;
        if (kind == SUM_ENTROPY)
            term = x >= FLT_MIN ? __fmul_rn(x, ln(x)) : 0.0f;
        else if (kind == SUM_FROM)
            term = __float_as_uint(x) >= from ? x : 0.0f;
        else
            term = x < below ? x : 0.0f;
        part = __dadd_rn(part, (double)term);
    }
    for (int k = 0; k < PARTIAL; k++)
        total = __dadd_rn(total, __shfl_sync(ALL_LANES, part, k));
    return total;
}

/* Called by the first warp: the bin, from the highest down, at which `want` entries are reached, and how
 * many entries the bins above it hold. */
template <typename Bins> static __device__ int digit_of(Bins &bins, int want, int *above)
{
    enum { EACH = DIGITS / WARP };
    int lane = (int)threadIdx.x % WARP, own = 0;
    for (int i = 0; i < EACH; i++)
        own += (int)bins[DIGITS - 1 - EACH * lane - i];
    int sum = own;
    for (int step = 1; step < WARP; step *= 2) {
        int other = __shfl_up_sync(ALL_LANES, sum, step);
        sum += lane >= step ? other : 0;
    }
    int here = __ffs((int)__ballot_sync(ALL_LANES, sum >= want)) - 1, digit = 0, before = sum - own;
    if (lane == here)
        for (digit = DIGITS - 1 - EACH * lane; before + (int)bins[digit] < want; digit--)
            before += (int)bins[digit];
    *above = __shfl_sync(ALL_LANES, before, here);
    return __shfl_sync(ALL_LANES, digit, here);
}

/* Bits of the want-th largest score (scores are >= 0, so they order as their bits do), and how many lie
 * at or above it: a radix select, one byte at a time. */
template <typename Bins, typename State>
static __device__ uint32_t select(Bins &bins, State &state, const float *p, int n, int want, int *at_least)
{
    uint32_t prefix = 0, known = 0;
    int above = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = (int)threadIdx.x; i < DIGITS; i += THREADS)
            bins[i] = 0;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < n; i += THREADS) {
            uint32_t u = __float_as_uint(p[i]);
            if ((u & known) == prefix)
                atomicAdd(&bins[u >> shift & 255u], 1u);
        }
        __syncthreads();
        if (threadIdx.x < WARP) {
            int more, digit = digit_of(bins, want - above, &more);
            if (threadIdx.x == 0) {
                state[0] = digit;
                state[1] = above + more;
                state[2] = above + more + (int)bins[digit];
            }
        }
        __syncthreads();
        prefix |= (uint32_t)state[0] << shift;
        known |= 255u << shift;
        above = state[1];
        *at_least = state[2];
        __syncthreads();
    }
    return prefix;
}

/* The words of one row: each warp takes 32 keys at a time. Returns how many scores of this warp are not
 * low (the same for all its threads). */
template <typename Limits>
static __device__ int mark(uint32_t *bits, const struct cuda_sets &out, const float *p, int first, int n, int n_lane,
                           Limits &limit)
{
    int lane = (int)threadIdx.x % WARP, count = 0;
    for (int w = (int)threadIdx.x / WARP; w < 2 * out.n_word; w += WARPS) {
        int j = 64 * out.first_word + WARP * w + lane - first, seen = j >= 0 && j < n;
        float x = seen ? p[j] : 0.0f;
        for (int l = 0; l < n_lane; l++) {
            uint32_t set = __ballot_sync(ALL_LANES, seen && x > limit[l]);
            if (lane == 0)
                bits[(size_t)l * 2 * (size_t)out.n_word + (size_t)w] = set;
        }
        uint32_t low = __ballot_sync(ALL_LANES, seen && x < limit[n_lane]);
        if (lane == 0)
            bits[(size_t)n_lane * 2 * (size_t)out.n_word + (size_t)w] = low;
        count += __popc(__ballot_sync(ALL_LANES, seen) & ~low);
    }
    return count;
}

__global__ void reduce_rows(struct cuda_tile t, struct sh_lanes lanes, struct cuda_sets out)
{
    SH_SHARED(float, limit, SH_MAX_LANES + 1);
    SH_SHARED(float, part, SUM_PARTS(THREADS));
    SH_SHARED(uint32_t, bins, DIGITS);
    SH_SHARED(int, state, 3);
    SH_SHARED(double, sums, 3);
    int row = (int)blockIdx.x, head = (int)blockIdx.y, position = t.first_row + row, i = (int)threadIdx.x;
    int first = tile_first_key(position, t.window), n = position - first + 1, want = (n + 4) / 5, at_least;
    size_t at = (size_t)head * (size_t)t.n_rows + (size_t)row;
    float *p = t.s + tile_row(t, head, row), inverse = 1.0f / t.sum[at], top = t.top[at], most = 0;
    if (i < lanes.n)
        limit[i] = round_down(lanes.lane[i].per_key ? lanes.lane[i].value / n : lanes.lane[i].value);
    if (i == lanes.n)
        limit[i] = round_up(1.0 / n);
    for (int j = i; j < n; j += THREADS) {
        p[j] = tile_probability(p[j], top, inverse);
        most = fmaxf(most, p[j]);
    }
    most = block_max<THREADS>(part, most);              /* its barrier also shows p to all */
    uint32_t *bits = (uint32_t *)(out.bits + at * (size_t)(lanes.n + 1) * (size_t)out.n_word);
    float not_low = (float)mark(bits, out, p, first, n, lanes.n, limit), one_percent = round_up(0.01 * (double)most);
    int below = 0;
    for (int j = i; j < n; j += THREADS)
        below += p[j] < one_percent;
    float n_below = block_sum<THREADS>(part, (float)below);             /* whole numbers below 2^24: exact */
    not_low = block_sum<THREADS>(part, i % WARP ? 0.0f : not_low);
    uint32_t from = select(bins, state, p, n, want, &at_least);
    int warp = i / WARP;
    if (warp < 3) {
        double sum = sum_in_order(p, n, warp == 0 ? SUM_ENTROPY : warp == 1 ? SUM_FROM : SUM_BELOW, from,
                                  limit[lanes.n]);
        if (i % WARP == 0)
            sums[warp] = sum;
    }
    __syncthreads();
    if (i == 0) {
        double ties = __dmul_rn((double)(at_least - want), (double)__uint_as_float(from));
        out.figures[at].entropy = -sums[0];
        out.figures[at].mass_top = __dsub_rn(sums[1], ties);
        out.figures[at].low_mass = sums[2];
        out.figures[at].below_1pct = (uint32_t)n_below;
        out.figures[at].unused = 0;
        out.n_value[at] = (uint32_t)not_low;
    }
}

/* Counts become the sums of the counts before; one block, SUM_THREADS of them at a time. */
__global__ void add_up(uint32_t *count, int n)
{
    SH_SHARED(uint32_t, total, SUM_THREADS / WARP);
    int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    uint32_t before = 0;
    for (int at = 0; at < n; at += SUM_THREADS) {
        int i = at + (int)threadIdx.x;
        uint32_t own = i < n ? count[i] : 0, sum = own;
        for (int step = 1; step < WARP; step *= 2) {
            uint32_t other = __shfl_up_sync(ALL_LANES, sum, step);
            sum += lane >= step ? other : 0;
        }
        if (lane == WARP - 1)
            total[warp] = sum;
        __syncthreads();
        uint32_t all = 0, warps = 0;
        for (int w = 0; w < SUM_THREADS / WARP; w++) {
            warps = w == warp ? all : warps;
            all += total[w];
        }
        if (i < n)
            count[i] = before + warps + sum - own;
        before += all;
        __syncthreads();
    }
    if (threadIdx.x == 0)
        count[n] = before;
}

/* The scores that are not low, one warp a row. */
__global__ void gather(struct cuda_tile t, struct cuda_sets out)
{
    int row = (int)blockIdx.x, head = (int)blockIdx.y, position = t.first_row + row, lane = (int)threadIdx.x;
    int n = position - tile_first_key(position, t.window) + 1;
    const float *p = t.s + tile_row(t, head, row);
    float *to = out.value + out.n_value[(size_t)head * (size_t)t.n_rows + (size_t)row], least = round_up(1.0 / n);
    for (int at = 0; at < n; at += WARP) {
        int j = at + lane, kept = j < n && !(p[j] < least);
        uint32_t set = __ballot_sync(ALL_LANES, kept);
        if (kept)
            to[__popc(set & ((1u << lane) - 1u))] = p[j];
        to += __popc(set);
    }
}

void cuda_sets(const struct cuda_tile *t, const struct sh_lanes *lanes, const struct cuda_sets *out,
               cudaStream_t stream)
{
    dim3 rows((unsigned)t->n_rows, (unsigned)t->n_head);
    SH_LAUNCH(reduce_rows, rows, dim3(THREADS), stream, *t, *lanes, *out);
    if (!out->value)
        return;
    SH_LAUNCH(add_up, dim3(1), dim3(SUM_THREADS), stream, out->n_value, t->n_rows * t->n_head);
    SH_LAUNCH(gather, rows, dim3(WARP), stream, *t, *out);
}
