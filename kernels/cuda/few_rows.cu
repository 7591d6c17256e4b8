/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows, as a decoding step of few sequences has them: bound by the reading of the weights, once. A warp
 * has one output or two, its lanes 16 bytes of each at a time; what they multiply by comes from the first-level cache.
 * Codes (kernels/weight_bits.h) are multiplied as codes: with the scale s and the least number m of a group,
 *
 *     x . w = sum over groups of s (x . code) + m (sum of x)
 *
 * Blocks of packed weights (packed.cuh) become numbers eight at a time. Larger products, weights in f32 and shapes that
 * do not fill 16 bytes are cuBLAS's (linear.cu). */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/packed.cuh"
#include "kernels/weight_bits.h"

enum { THREADS = 128, WARPS = THREADS / WARP, MOST_ROWS = 4 };

struct few {                            /* out (+)= act(x w^T + bias)                              */
    const void *x, *w;
    const unsigned *scales;             /* of codes: pairs of f16                                  */
    const unsigned char *apart;         /* of MXFP4_APART: scales                                  */
    enum sh_type x_type;
    void *out;
    const float *bias;
    size_t x_stride, out_stride;        /* in numbers                                              */
    enum sh_type out_type;
    int rows, in, n_out, act, add;
};

/* 8 numbers of 16 bits. */
template <typename T> static __device__ __forceinline__ void eight(uint4 from, float *x);
template <> __device__ __forceinline__ void eight<__half>(uint4 from, float *x)
{
    chunk_numbers<16>(from, x);
}
template <> __device__ __forceinline__ void eight<__nv_bfloat16>(uint4 from, float *x)
{
    bf16_numbers(from, x);
}

/* 8 numbers of a row of x from column c on. */
template <typename T> static __device__ __forceinline__ void x_eight(const struct few &a, int row, int c, float *x)
{
    eight<T>(*(const uint4 *)((const T *)a.x + (size_t)row * a.x_stride + (size_t)c), x);
}

template <typename T> static __device__ void add_to(void *at, size_t i, float y, int add)
{
    T *to = (T *)at + i;
    *to = from_float<T>(add ? to_float(*to) + y : y);
}

static __device__ void put_sum(const struct few &a, int row, int output, float sum)
{
    float y = activated(a.act, a.bias ? sum + a.bias[output] : sum);
    size_t i = (size_t)row * a.out_stride + (size_t)output;
    switch (a.out_type) {
    case SH_F32: add_to<float>(a.out, i, y, a.add); break;
    case SH_F16: add_to<__half>(a.out, i, y, a.add); break;
    case SH_BF16: add_to<__nv_bfloat16>(a.out, i, y, a.add); break;
    }
}

/* The lanes' sums of a warp's outputs, together: each is written by a lane of its own. The last of an odd number of
 * outputs is computed twice and written once. */
template <int OUTPUTS, int ROWS>
static __device__ void put_sums(const struct few &a, int first, float sum[OUTPUTS][ROWS])
{
    int lane = (int)threadIdx.x % WARP, o = lane / ROWS, r = lane % ROWS;
    float own = 0;
#pragma unroll
    for (int i = 0; i < OUTPUTS * ROWS; i++) {
        float x = sum[i / ROWS][i % ROWS];
        for (int step = WARP / 2; step; step /= 2)
            x += __shfl_xor_sync(ALL_LANES, x, step);
        own = lane == i ? x : own;
    }
    if (o < OUTPUTS && r < a.rows && first + o < a.n_out)
        put_sum(a, r, first + o, own);
}

static __device__ __forceinline__ int first_output(int outputs)
{
    return ((int)blockIdx.x * WARPS + (int)threadIdx.x / WARP) * outputs;
}

template <typename T, int ROWS> __global__ void __launch_bounds__(THREADS) few_numbers(struct few a)
{
    enum { AT_ONCE = 4, N = 8, OUTPUTS = ROWS == 1 ? 1 : 2 };
    int first = first_output(OUTPUTS), lane = (int)threadIdx.x % WARP, chunks = a.in / N;
    if (first >= a.n_out)
        return;
    const uint4 *w[OUTPUTS];
    float sum[OUTPUTS][ROWS] = {};
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++)
        w[o] = (const uint4 *)((const T *)a.w + (size_t)min(first + o, a.n_out - 1) * (size_t)a.in);
#pragma unroll 1
    for (int i = lane; i < chunks; i += AT_ONCE * WARP) {
        uint4 from[AT_ONCE][OUTPUTS];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
            for (int o = 0; o < OUTPUTS; o++)
                if (i + k * WARP < chunks)
                    from[k][o] = __ldcs(&w[o][i + k * WARP]);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            float y[OUTPUTS][N], x[N];
            if (i + k * WARP >= chunks)
                break;
#pragma unroll
            for (int o = 0; o < OUTPUTS; o++)
                eight<T>(from[k][o], y[o]);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (r >= a.rows)
                    break;
                x_eight<T>(a, r, (i + k * WARP) * N, x);
#pragma unroll
                for (int o = 0; o < OUTPUTS; o++)
#pragma unroll
                    for (int c = 0; c < N; c++)
                        sum[o][r] += y[o][c] * x[c];
            }
        }
    }
    put_sums<OUTPUTS, ROWS>(a, first, sum);
}

/* A lane has 16 bytes of codes of each output, which are a part of one group. */
template <typename T, int BITS, int ROWS> __global__ void __launch_bounds__(THREADS) few_codes(struct few a)
{
    enum { AT_ONCE = 2, N = 128 / BITS, EIGHT = 8, OUTPUTS = 2 };
    int first = first_output(OUTPUTS), lane = (int)threadIdx.x % WARP, chunks = a.in / N;
    if (first >= a.n_out)
        return;
    float sum[OUTPUTS][ROWS] = {};
    size_t row[OUTPUTS];
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++)
        row[o] = (size_t)min(first + o, a.n_out - 1);
#pragma unroll 1
    for (int i = lane; i < chunks; i += AT_ONCE * WARP) {
        uint4 from[AT_ONCE][OUTPUTS];
        unsigned scale[AT_ONCE][OUTPUTS];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
            for (int o = 0; o < OUTPUTS; o++)
                if (i + k * WARP < chunks) {
                    from[k][o] = ((const uint4 *)a.w)[row[o] * (size_t)chunks + (size_t)(i + k * WARP)];
                    scale[k][o] = a.scales[row[o] * (size_t)(a.in / SH_CODE_GROUP) +
                                           (size_t)((i + k * WARP) * N / SH_CODE_GROUP)];
                }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            float code[OUTPUTS][N];
            if (i + k * WARP >= chunks)
                break;
#pragma unroll
            for (int o = 0; o < OUTPUTS; o++)
                chunk_numbers<BITS>(from[k][o], code[o]);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float x[EIGHT], all = 0, part[OUTPUTS] = {};
                if (r >= a.rows)
                    break;
#pragma unroll
                for (int u = 0; u < N; u += EIGHT) {
                    x_eight<T>(a, r, (i + k * WARP) * N + u, x);
#pragma unroll
                    for (int c = 0; c < EIGHT; c++) {
                        all += x[c];
                        x[c] *= code_unit<BITS>(c);
                    }
#pragma unroll
                    for (int o = 0; o < OUTPUTS; o++)
#pragma unroll
                        for (int c = 0; c < EIGHT; c++)
                            part[o] += code[o][u + c] * x[c];
                }
#pragma unroll
                for (int o = 0; o < OUTPUTS; o++)
                    sum[o][r] += half_of(scale[k][o], 0) * part[o] + half_of(scale[k][o], 1) * all;
            }
        }
    }
    put_sums<OUTPUTS, ROWS>(a, first, sum);
}

/* 8 numbers of a row of x of any type. */
static __device__ __forceinline__ void any_eight(const struct few &a, int row, int c, float *x)
{
    if (a.x_type == SH_F16) {
        x_eight<__half>(a, row, c, x);
    } else if (a.x_type == SH_BF16) {
        x_eight<__nv_bfloat16>(a, row, c, x);
    } else {
        const float4 *from = (const float4 *)((const float *)a.x + (size_t)row * a.x_stride + (size_t)c);
        float4 two[2] = {from[0], from[1]};
        for (int i = 0; i < 2; i++) {
            x[4 * i] = two[i].x;
            x[4 * i + 1] = two[i].y;
            x[4 * i + 2] = two[i].z;
            x[4 * i + 3] = two[i].w;
        }
    }
}

template <int FORMAT, int ROWS> __global__ void __launch_bounds__(THREADS) few_packed(struct few a)
{
    enum { AT_ONCE = 2, ELEMENTS = packing<FORMAT>::ELEMENTS };
    int first = first_output(1), lane = (int)threadIdx.x % WARP, units = a.in / PACKED_EIGHT;
    if (first >= a.n_out)
        return;
    size_t blocks = (size_t)(a.in / ELEMENTS);
    const unsigned char *w = (const unsigned char *)a.w + (size_t)first * blocks * packing<FORMAT>::BYTES;
    const unsigned char *apart = FORMAT == SH_PACKED_MXFP4_APART ? a.apart + (size_t)first * blocks : NULL;
    float sum[1][ROWS] = {};
#pragma unroll 1
    for (int i = lane; i < units; i += AT_ONCE * WARP) {
        float y[AT_ONCE][PACKED_EIGHT], x[PACKED_EIGHT];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k * WARP < units)
                eight_numbers<FORMAT>(w, apart, i + k * WARP, y[k]);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            if (i + k * WARP >= units)
                break;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (r >= a.rows)
                    break;
                any_eight(a, r, (i + k * WARP) * PACKED_EIGHT, x);
#pragma unroll
                for (int c = 0; c < PACKED_EIGHT; c++)
                    sum[0][r] += y[k][c] * x[c];
            }
        }
    }
    put_sums<1, ROWS>(a, first, sum);
}

template <int FORMAT> static void launch_packed(struct sh_dev *d, const struct few *a)
{
    dim3 grid((unsigned)((a->n_out + WARPS - 1) / WARPS));
    if (a->rows == 1)
        SH_LAUNCH((few_packed<FORMAT, 1>), grid, dim3(THREADS), d->compute, *a);
    else
        SH_LAUNCH((few_packed<FORMAT, MOST_ROWS>), grid, dim3(THREADS), d->compute, *a);
}

static void by_format(struct sh_dev *d, const struct few *a, enum sh_packing format)
{
    switch (format) {
#define FORMAT(name, elements, bytes, span, less) \
    case SH_PACKED_##name: launch_packed<SH_PACKED_##name>(d, a); break;
    SH_PACKED_FORMATS(FORMAT)
#undef FORMAT
    default: break;
    }
}

template <typename T, int ROWS> static void launch(struct sh_dev *d, const struct few *a, int bits)
{
    int each = WARPS * (bits == 16 && ROWS == 1 ? 1 : 2);       /* outputs of a block */
    dim3 grid((unsigned)((a->n_out + each - 1) / each));
    if (bits == 16)
        SH_LAUNCH((few_numbers<T, ROWS>), grid, dim3(THREADS), d->compute, *a);
    else if (bits == 8)
        SH_LAUNCH((few_codes<T, 8, ROWS>), grid, dim3(THREADS), d->compute, *a);
    else
        SH_LAUNCH((few_codes<T, 4, ROWS>), grid, dim3(THREADS), d->compute, *a);
}

template <typename T> static void by_rows(struct sh_dev *d, const struct few *a, int bits)
{
    if (a->rows == 1)
        launch<T, 1>(d, a, bits);
    else if (a->rows == 2)
        launch<T, 2>(d, a, bits);
    else
        launch<T, MOST_ROWS>(d, a, bits);
}

static int is_whole(const struct sh_linear *a)
{
    int least = a->w->bits == 16 ? 8 : SH_CODE_GROUP;
    return a->w->cols % least == 0 && a->x.stride % 8 == 0 && (size_t)a->x.at % 16 == 0;
}

int cuda_few_rows(struct sh_dev *d, const struct sh_linear *a)
{
    const struct sh_weight *w = a->w;
    const char *at = (const char *)w->at;
    int is_packed = w->packing != SH_PACKED_OTHER;
    if (a->x.rows > MOST_ROWS || (w->type == SH_F32 && !is_packed) || !is_whole(a))
        return 0;
    struct few few = {};
    few.x = a->x.at;
    few.x_type = a->x.type;
    few.x_stride = a->x.stride;
    few.w = at;
    few.scales = w->bits < 16 ? (const unsigned *)(at + sh_code_scales_at(w->rows, w->cols, w->bits)) : NULL;
    few.apart = (const unsigned char *)at + w->apart_at;
    few.out = a->out.at;
    few.out_type = a->out.type;
    few.out_stride = a->out.stride;
    few.bias = a->bias;
    few.rows = a->x.rows;
    few.in = w->cols;
    few.n_out = w->rows;
    few.act = a->act;
    few.add = a->add;
    if (is_packed)
        by_format(d, &few, w->packing);
    else if (w->type == SH_F16)
        by_rows<__half>(d, &few, w->bits);
    else
        by_rows<__nv_bfloat16>(d, &few, w->bits);
    return 1;
}
