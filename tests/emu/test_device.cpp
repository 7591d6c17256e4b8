/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel sees: indices, barriers, warp functions, atomics, numbers. Expected values are computed
 * here in another way, or known. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

#include "tests/emu/test_emu.h"

static __global__ void write_indices(uint3 *out)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    out[block * blockDim.x + threadIdx.x] = {blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z, threadIdx.x, blockDim.x};
}

static void indices()
{
    enum { THREADS = 70, BLOCKS = 3 * 2 * 4 };
    std::vector<uint3> out(THREADS * BLOCKS);
    uint3 *at = (uint3 *)device_copy(out.data(), out.size() * sizeof out[0]);
    SH_LAUNCH(write_indices, dim3(3, 2, 4), dim3(THREADS), 0, at);
    EXPECT(cudaGetLastError() == cudaSuccess);
    host_copy(out.data(), at, out.size() * sizeof out[0]);
    for (unsigned i = 0; i < out.size(); i++) {
        unsigned block = i / THREADS;
        EXPECT(out[i].x == block % 3 + 10 * (block / 3 % 2) + 100 * (block / 6));
        EXPECT(out[i].y == i % THREADS && out[i].z == THREADS);
    }
}

/* Each thread's sum over the block, by a tree in shared memory. */
template <int N> static __global__ void sum_tree(const int *in, int *out)
{
    SH_SHARED(int, part, N);
    part[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
    __syncthreads();
    for (unsigned half = N / 2; half; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    out[blockIdx.x * N + threadIdx.x] = part[0];
}

static void barriers()
{
    enum { N = 256, BLOCKS = 5 };
    std::vector<int> in(N * BLOCKS), out(in.size());
    for (size_t i = 0; i < in.size(); i++)
        in[i] = (int)(i * i % 1009);
    int *from = (int *)device_copy(in.data(), in.size() * sizeof(int)), *to;
    EXPECT(cudaMalloc(&to, in.size() * sizeof(int)) == cudaSuccess);
    SH_LAUNCH((sum_tree<N>), dim3(BLOCKS), dim3(N), 0, from, to);
    host_copy(out.data(), to, out.size() * sizeof(int));
    for (int block = 0; block < BLOCKS; block++) {
        int sum = 0;
        for (int i = 0; i < N; i++)
            sum += in[(size_t)(block * N + i)];
        for (int i = 0; i < N; i++)
            EXPECT(out[(size_t)(block * N + i)] == sum);
    }
}

struct Shuffled {
    int one, up, down, exclusive, up8, down8, exclusive8;
    double wide;
    unsigned odd;
    int any, none, all, not_all;
};

static __global__ void shuffle(Shuffled *out)
{
    int own = 100 + (int)threadIdx.x, lane = (int)threadIdx.x % 32;
    Shuffled s;
    s.one = __shfl_sync(~0u, own, 5);
    s.up = __shfl_up_sync(~0u, own, 3);
    s.down = __shfl_down_sync(~0u, own, 3);
    s.exclusive = __shfl_xor_sync(~0u, own, 17);
    s.up8 = __shfl_up_sync(~0u, own, 3, 8);
    s.down8 = __shfl_down_sync(~0u, own, 3, 8);
    s.exclusive8 = __shfl_xor_sync(~0u, own, 8, 8);
    s.wide = __shfl_sync(~0u, own + 1e-9, 31);
    s.odd = __ballot_sync(~0u, lane & 2);
    s.any = __any_sync(~0u, lane == 9);
    s.none = __any_sync(~0u, lane > 31);
    s.all = __all_sync(~0u, lane >= 0);
    s.not_all = __all_sync(~0u, lane != 9);
    out[threadIdx.x] = s;
}

static void warp_functions()
{
    Shuffled s[64], *at;
    EXPECT(cudaMalloc(&at, sizeof s) == cudaSuccess);
    SH_LAUNCH(shuffle, dim3(1), dim3(64), 0, at);
    host_copy(s, at, sizeof s);
    for (int i = 0; i < 64; i++) {
        int first = 100 + i / 32 * 32, lane = i % 32, own = first + lane;
        EXPECT(s[i].one == first + 5);
        EXPECT(s[i].up == (lane < 3 ? own : own - 3));
        EXPECT(s[i].down == (lane > 28 ? own : own + 3));
        EXPECT(s[i].exclusive == first + (lane ^ 17));
        EXPECT(s[i].up8 == (lane % 8 < 3 ? own : own - 3));
        EXPECT(s[i].down8 == (lane % 8 > 4 ? own : own + 3));
        EXPECT(s[i].exclusive8 == (lane & 8 ? own - 8 : own));     /* lower segments may be read */
        EXPECT(s[i].wide == first + 31 + 1e-9);
        EXPECT(s[i].odd == 0xccccccccu);
        EXPECT(s[i].any == 1 && s[i].none == 0 && s[i].all == 1 && s[i].not_all == 0);
    }
}

/* Two halves of a warp go separate ways, each with its own mask; pairs of a third of the lanes. */
static __global__ void part_ways(int *out)
{
    int lane = (int)threadIdx.x, x;
    if (lane < 16) {
        x = __shfl_sync(0xffffu, lane, 3);
        x += (int)__ballot_sync(0xffffu, lane == 1);
    } else {
        x = __shfl_xor_sync(0xffff0000u, lane, 1);
        __syncwarp(0xffff0000u);
        x += __shfl_sync(0xffff0000u, lane, 20);
    }
    out[lane] = x;
}

static void partial_warps()
{
    int out[32], *at;
    EXPECT(cudaMalloc(&at, sizeof out) == cudaSuccess);
    SH_LAUNCH(part_ways, dim3(1), dim3(32), 0, at);
    host_copy(out, at, sizeof out);
    for (int i = 0; i < 32; i++)
        EXPECT(out[i] == (i < 16 ? 3 + 2 : (i ^ 1) + 20));
}

/* Neighbours of a warp pass values on through shared memory, with __syncwarp between. */
static __global__ void pass_on(int *out)
{
    SH_SHARED(int, hand, 64);
    unsigned i = threadIdx.x, next = i / 32 * 32 + (i + 1) % 32;
    hand[i] = (int)i;
    for (int turn = 0; turn < 5; turn++) {
        __syncwarp();
        int x = hand[next];
        __syncwarp();
        hand[i] = x;
    }
    out[i] = hand[i];
}

static void warp_barriers()
{
    int out[64], *at;
    EXPECT(cudaMalloc(&at, sizeof out) == cudaSuccess);
    SH_LAUNCH(pass_on, dim3(1), dim3(64), 0, at);
    host_copy(out, at, sizeof out);
    for (int i = 0; i < 64; i++)
        EXPECT(out[i] == i / 32 * 32 + (i + 5) % 32);
}

static __global__ void count_all(int *sum, unsigned *shared_sum, float *f, unsigned long long *wide, int *most)
{
    SH_SHARED(unsigned, bins, 4);
    if (threadIdx.x < 4)
        bins[threadIdx.x] = 0;
    __syncthreads();
    unsigned before = atomicAdd(&bins[threadIdx.x % 4], threadIdx.x);
    __syncthreads();
    if (threadIdx.x < 4)
        atomicAdd(&shared_sum[threadIdx.x], bins[threadIdx.x]);
    atomicAdd(sum, (int)(before < 5000));
    atomicAdd(f, 0.5f);
    atomicAdd(wide, 1ull << 33);
    atomicMax(most, (int)(blockIdx.x * 1000 + threadIdx.x));
}

static void atomics()
{
    struct { int sum, most; unsigned bins[4]; float f; unsigned long long wide; } s = {}, *at;
    at = (decltype(at))device_copy(&s, sizeof s);
    SH_LAUNCH(count_all, dim3(3), dim3(100), 0, &at->sum, at->bins, &at->f, &at->wide, &at->most);
    host_copy(&s, at, sizeof s);
    EXPECT(s.sum == 300 && s.f == 150 && s.wide == 300ull << 33 && s.most == 2099);
    for (unsigned b = 0; b < 4; b++)
        EXPECT(s.bins[b] == 3 * (25 * b + 4 * 300));
}

/* Of the numbers between two neighbours of the format the nearer one, of two equally near the even one. */
template <typename To, typename From> static void check_format(To to, From from, int digits, float least)
{
    for (unsigned u = 0; u < 0x7f800000u; u += 977) {
        float x = __uint_as_float(u), y = from(to(x));
        EXPECT(from(to(-x)) == -y);
        if (isinf(y))
            continue;
        int exponent;
        frexpf(x, &exponent);
        float unit = fmaxf(ldexpf(1, exponent - digits), least);
        EXPECT((double)rintf(x / unit) * (double)unit == (double)y);
    }
    EXPECT(isnan(from(to(NAN))) && from(to(INFINITY)) == INFINITY && from(to(-INFINITY)) == -INFINITY);
    EXPECT(from(to(0.0f)) == 0 && signbit(from(to(-0.0f))));
}

static void formats()
{
    check_format(__float2half_rn, __half2float, 11, 0x1p-24f);
    check_format(__float2bfloat16_rn, __bfloat162float, 8, 0x1p-133f);
    EXPECT(__half2float(__float2half_rn(65519.0f)) == 65504 && isinf(__half2float(__float2half_rn(65520.0f))));
    EXPECT(isinf(__bfloat162float(__float2bfloat16_rn(3.4e38f))));
    EXPECT(sizeof(__half) == 2 && sizeof(__nv_bfloat16) == 2);
}

static void numbers()
{
    EXPECT(__popc(0xf0f1u) == 9 && __popcll(1ull << 40 | 3) == 3 && __ffs(0) == 0 && __ffs(8) == 4);
    EXPECT(__clz(0) == 32 && __clz(1) == 31 && __clz(-1) == 0);
    EXPECT(__float_as_uint(1.0f) == 0x3f800000u && __int_as_float(0x40000000) == 2);
    EXPECT(__fmaf_rn(0x1.001p0f, 0x1.001p0f, -1.0f) == 0x1.0008p-11f);
    EXPECT(__fadd_rn(__fmul_rn(0x1.001p0f, 0x1.001p0f), -1.0f) == 0x1p-11f);    /* rounded in between */
    EXPECT(max(-1, 1) == 1 && min(1u, 2u) == 1 && max(1.5f, 2.5f) == 2.5f && rsqrtf(4) == 0.5f);
}

const Case device_cases[] = {
    {"every thread of every block has its indices", indices, NULL},
    {"barriers: a sum over a block", barriers, NULL},
    {"shuffles and votes", warp_functions, NULL},
    {"parts of a warp go separate ways", partial_warps, NULL},
    {"warp barriers order shared memory", warp_barriers, NULL},
    {"atomics, on device and shared memory", atomics, NULL},
    {"half and bfloat16 round to nearest even", formats, NULL},
    {"bits and single roundings", numbers, NULL},
    {NULL, NULL, NULL},
};
