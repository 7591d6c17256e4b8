/* SPDX-License-Identifier: Apache-2.0 */
/* Weights to codes and back (kernels/weight_bits.h). Making them is one warp's work for a group, two
 * numbers a lane; reading them back one block's for an output, two numbers a thread. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/weight_bits.h"

enum { THREADS = 256, GROUP = SH_CODE_GROUP, PAIRS = GROUP / 2 };

static_assert(PAIRS == WARP, "a warp's lanes are a group's pairs");

/* x: rows of `cols` numbers, n groups in all, `groups` of a row; `row_groups` are between the rows of the
 * matrix. A number that a short group lacks is taken to be its first: least and most stay. */
template <typename T>
__global__ void encode(unsigned char *codes, __half *scales, const T *x, size_t cols, size_t groups, size_t row_groups,
                       size_t n, int bits)
{
    size_t step = (size_t)gridDim.x * (THREADS / WARP);
    unsigned lane = threadIdx.x % WARP;
    for (size_t i = (size_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP; i < n; i += step) {
        size_t row = i / groups, first = i % groups * GROUP, left = cols - first, place = row * row_groups + i % groups;
        const T *from = x + row * cols + first;
        float a = to_float(from[2 * lane < left ? 2 * lane : 0]);
        float b = to_float(from[2 * lane + 1 < left ? 2 * lane + 1 : 0]);
        float least = fminf(a, b), most = fmaxf(a, b);
        for (int other = WARP / 2; other; other /= 2) {
            least = fminf(least, __shfl_xor_sync(ALL_LANES, least, other));
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, other));
        }
        __half scale = __float2half_rn((most - least) / (float)((1 << bits) - 1)), low = __float2half_rn(least);
        float by = to_float(scale), from0 = to_float(low), top = sh_code_top(bits, by);
        unsigned one = sh_code(a, by, from0, top), two = sh_code(b, by, from0, top);
        unsigned char *to = codes + place * sh_code_group_bytes(bits);
        if (bits == 8)
            ((uint16_t *)to)[lane] = (uint16_t)(one | two << 8);
        else
            to[lane] = (unsigned char)(one | two << 4);
        if (!lane) {
            scales[2 * place] = scale;
            scales[2 * place + 1] = low;
        }
    }
}

/* Block i: row i of `to` [rows, cols], dense; codes and scales begin with that of row 0. */
template <typename T>
__global__ void decode(T *to, const unsigned char *codes, const __half *scales, size_t cols, size_t groups, int bits)
{
    size_t row = blockIdx.x, first = row * groups;
    T *out = to + row * cols;
    for (size_t pair = threadIdx.x; 2 * pair < cols; pair += THREADS) {
        size_t place = first + pair / PAIRS;
        float scale = to_float(scales[2 * place]), least = to_float(scales[2 * place + 1]);
        const unsigned char *code = codes + place * sh_code_group_bytes(bits);
        unsigned both = bits == 8 ? ((const uint16_t *)code)[pair % PAIRS] : code[pair % PAIRS];
        unsigned one = bits == 8 ? both & 255u : both & 15u, two = bits == 8 ? both >> 8 : both >> 4;
        out[2 * pair] = from_float<T>(sh_code_value(one, scale, least));
        if (2 * pair + 1 < cols)
            out[2 * pair + 1] = from_float<T>(sh_code_value(two, scale, least));
    }
}

static __half *scales_of(const struct sh_weight *w)
{
    return (__half *)((char *)w->at + sh_code_scales_at(w->rows, w->cols, w->bits));
}

void cuda_encode(struct sh_dev *d, struct sh_weight *w, size_t row, size_t col, const struct sh_mat *x)
{
    size_t cols = (size_t)x->cols, groups = sh_code_groups(x->cols), row_groups = sh_code_groups(w->cols);
    size_t place = row * row_groups + col / GROUP, n = (size_t)x->rows * groups;
    unsigned char *codes = (unsigned char *)w->at + place * sh_code_group_bytes(w->bits);
    __half *scales = scales_of(w) + 2 * place;
    if (cuda_has_failed(d) || !n)
        return;
    BY_TYPE(x->type, T,
            SH_LAUNCH((encode<T>), grid_for(n * WARP, THREADS), dim3(THREADS), d->load, codes, scales,
                      (const T *)x->at, cols, groups, row_groups, n, w->bits));
}

void cuda_decode(struct sh_dev *d, const struct sh_weight *w, int row, int n, void *to)
{
    size_t groups = sh_code_groups(w->cols), place = (size_t)row * groups;
    const unsigned char *codes = (const unsigned char *)w->at + place * sh_code_group_bytes(w->bits);
    const __half *scales = scales_of(w) + 2 * place;
    if (cuda_has_failed(d) || !n)
        return;
    BY_TYPE(w->type, T,
            SH_LAUNCH((decode<T>), dim3((unsigned)n), dim3(THREADS), d->compute, (T *)to, codes, scales,
                      (size_t)w->cols, groups, w->bits));
}
