/* SPDX-License-Identifier: Apache-2.0 */
/* A token's key and value of f32 into its slot, in the cache's format, by a block of SLOTS_THREADS threads. */
#ifndef SH_KERNELS_CUDA_SLOTS_APPEND_CUH
#define SH_KERNELS_CUDA_SLOTS_APPEND_CUH

#include "kernels/cuda/slots/slots.cuh"

static __device__ __forceinline__ char *place(const struct slots &s, bool is_key, size_t slot, int byte, int bits)
{
    return is_key ? s.k + slots_key_at(s, slot, byte) : s.v + slot * (size_t)(s.units * bits) + (size_t)byte;
}

template <int BITS> static __device__ void put_plain(const struct slots &s, bool is_key, size_t slot, const float *x)
{
    for (int c = (int)threadIdx.x; c < s.d; c += SLOTS_THREADS) {
        char *to = place(s, is_key, slot, c * BITS / 8, BITS);
        if constexpr (BITS == 32)
            *(float *)to = x[c];
        else
            *(__half *)to = __float2half_rn(x[c]);
    }
}

static __device__ __forceinline__ float stored(float x, int is_f32)
{
    return is_f32 ? x : __half2float(__float2half_rn(fminf(fmaxf(x, -65504.0f), 65504.0f)));
}

static __device__ __forceinline__ unsigned code_of(float x, float least, float scale, float most)
{
    float c = scale > 0 ? rintf(__fdiv_rn(__fsub_rn(x, least), scale)) : 0.0f;
    return (unsigned)fminf(fmaxf(c, 0.0f), most);
}

/* One group of n numbers from channel c on, by a warp. */
template <int BITS>
static __device__ void put_group(const struct slots &s, bool is_key, size_t slot, const float *x, int c, int n)
{
    int lane = (int)threadIdx.x % WARP;
    float low = INFINITY, high = -INFINITY, most = (float)((1 << BITS) - 1);
    for (int i = lane; i < n; i += WARP) {
        low = fminf(low, x[c + i]);
        high = fmaxf(high, x[c + i]);
    }
    for (int step = WARP / 2; step; step /= 2) {
        low = fminf(low, __shfl_xor_sync(ALL_LANES, low, step));
        high = fmaxf(high, __shfl_xor_sync(ALL_LANES, high, step));
    }
    float scale = stored(__fdiv_rn(__fsub_rn(high, low), most), s.meta_is_f32), least = stored(low, s.meta_is_f32);
    for (int i = 2 * lane; i < n; i += 2 * WARP) {
        unsigned one = code_of(x[c + i], least, scale, most);
        unsigned two = i + 1 < n ? code_of(x[c + i + 1], least, scale, most) : 0;
        unsigned char *to = (unsigned char *)place(s, is_key, slot, (c + i) * BITS / 8, BITS);
        to[0] = (unsigned char)(BITS == 4 ? one | two << 4 : one);
        if (BITS == 8 && i + 1 < n)
            to[1] = (unsigned char)two;
    }
    if (lane)
        return;
    size_t at = slot * (size_t)s.n_code_group + (size_t)(c / s.code_group);
    void *meta = is_key ? s.k_meta : s.v_meta;
    if (s.meta_is_f32) {
        ((float2 *)meta)[at] = make_float2(scale, least);
    } else {
        ((__half *)meta)[2 * at] = __float2half_rn(scale);
        ((__half *)meta)[2 * at + 1] = __float2half_rn(least);
    }
}

template <int BITS> static __device__ void put_row(const struct slots &s, bool is_key, size_t slot, const float *x)
{
    if constexpr (BITS >= 16)
        put_plain<BITS>(s, is_key, slot, x);
    else
        for (int g = (int)threadIdx.x / WARP; g < s.n_code_group; g += SLOTS_THREADS / WARP)
            put_group<BITS>(s, is_key, slot, x, g * s.code_group, min(s.d - g * s.code_group, s.code_group));
}

struct slots_tokens {                   /* the caller's: [rows, n_kv_head * d], strides in numbers  */
    const float *k, *v;
    size_t k_stride, v_stride;
};

static inline struct slots_tokens slots_tokens_of(const struct sh_attend *a)
{
    struct slots_tokens t = {(const float *)a->k.at, (const float *)a->v.at, a->k.stride, a->v.stride};
    return t;
}

template <int BITS>
static __device__ void put_token(const struct slots &s, size_t slot, const struct slots_tokens &t, int row, int head)
{
    size_t c = (size_t)(head * s.d);
    put_row<BITS>(s, true, slot, t.k + (size_t)row * t.k_stride + c);
    put_row<BITS>(s, false, slot, t.v + (size_t)row * t.v_stride + c);
}

#endif
