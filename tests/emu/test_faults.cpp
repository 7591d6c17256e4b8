/* SPDX-License-Identifier: Apache-2.0 */
/* Faulty kernels and hosts: each must be caught, by name. */
#include <cublas_v2.h>
#include <stdlib.h>

#include "tests/emu/test_emu.h"

enum { SIZE = 64 };

static __global__ void past_end(int *out)
{
    SH_SHARED(int, part, SIZE);
    part[threadIdx.x + (threadIdx.x == 9 ? 60 : 0)] = 1;
    __syncthreads();
    out[0] = part[0];
}

static __global__ void before_start(int *out)
{
    SH_SHARED(int, part, SIZE);
    part[(int)threadIdx.x - 1] = 1;
    out[0] = 0;
}

static __global__ void unwritten(int *out)
{
    SH_SHARED(int, part, SIZE);
    if (threadIdx.x < 32 || blockIdx.x == 0)            /* the second block must not profit by the first */
        part[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = part[threadIdx.x];
}

static __global__ void reads_early(int *out)
{
    SH_SHARED(int, part, SIZE);
    part[threadIdx.x] = 0;
    __syncthreads();
    part[threadIdx.x] = 1;
    out[threadIdx.x] = part[threadIdx.x ^ 32];
}

static __global__ void reads_neighbour(int *out)
{
    SH_SHARED(int, part, SIZE);
    part[threadIdx.x] = 1;
    out[0] = __shfl_sync(~0u, 1, 0);                    /* no barrier for memory */
    out[threadIdx.x] = part[threadIdx.x ^ 1];
}

static __global__ void writes_read(int *out)
{
    SH_SHARED(int, part, SIZE);
    part[threadIdx.x] = 1;
    __syncthreads();
    int x = part[0];
    if (threadIdx.x == 33)
        part[0] = 2;
    out[threadIdx.x] = x;
}

static __global__ void writes_twice(int *)
{
    SH_SHARED(int, part, SIZE);
    part[threadIdx.x / 2] = 1;
}

static __global__ void atomic_and_read(int *out)
{
    SH_SHARED(int, part, SIZE);
    part[threadIdx.x] = 1;
    __syncthreads();
    atomicAdd(&part[0], 1);
    out[threadIdx.x] = part[0];
}

static __global__ void warp_barrier_only(int *out)
{
    SH_SHARED(int, part, SIZE);
    part[threadIdx.x] = 0;
    __syncthreads();
    part[threadIdx.x] = 1;
    __syncwarp();
    out[threadIdx.x] = part[SIZE - 1 - threadIdx.x];    /* of the other warp */
}

static __global__ void too_much(int *)
{
    SH_SHARED(double, first, 4000);
    SH_SHARED(double, second, 4000);
    first[0] = 0;
    second[0] = 0;
}

static __global__ void returns_early(int *)
{
    if (threadIdx.x == 40)
        return;
    __syncthreads();
}

static __global__ void two_barriers(int *)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

static __global__ void barrier_and_warp(int *out)
{
    if (threadIdx.x % 32)
        __syncthreads();
    else
        out[0] = __shfl_sync(~0u, 1, 0);
    __syncthreads();
}

static __global__ void lane_returns(int *out)
{
    if (threadIdx.x == 3)
        return;
    out[0] = __shfl_sync(~0u, 1, 0);
}

static __global__ void lane_unnamed(int *out)
{
    out[0] = (int)__ballot_sync(1u, 1);
}

static __global__ void reads_unnamed(int *out)
{
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_sync(0xffffu, 1, 20);
}

static __global__ void different_functions(int *out)
{
    if (threadIdx.x & 1)
        out[0] = (int)__ballot_sync(~0u, 1);
    else
        out[1] = __any_sync(~0u, 1);
}

static __global__ void writes_at(char *out, long at)
{
    if (threadIdx.x == 7)
        out[at] = 1;
}

struct Holder { int n; const int *from; };

static __global__ void reads_holder(int *out, Holder h)
{
    out[0] = h.from[0];
}

static char *device_bytes(size_t bytes)
{
    void *at;
    EXPECT(cudaMalloc(&at, bytes) == cudaSuccess);
    return (char *)at;
}

template <long at> static void write_at()
{
    SH_LAUNCH(writes_at, dim3(1), dim3(32), 0, device_bytes(1000), at);
    cudaDeviceSynchronize();
}

static void touches_freed()
{
    char *at = device_bytes(100);
    Holder h = {1, (const int *)(const void *)at};
    cudaFree(at);
    SH_LAUNCH(reads_holder, dim3(1), dim3(32), 0, (int *)(void *)device_bytes(4), h);
    cudaDeviceSynchronize();
}

static void host_argument()
{
    static char host[100];
    SH_LAUNCH(writes_at, dim3(1), dim3(32), 0, host, 5L);
}

static void host_in_structure()
{
    int host = 0;
    SH_LAUNCH(reads_holder, dim3(1), dim3(32), 0, (int *)(void *)device_bytes(4), Holder{1, &host});
}

static void freed_argument()
{
    char *at = device_bytes(100);
    cudaFree(at);
    SH_LAUNCH(writes_at, dim3(1), dim3(32), 0, at, 5L);
}

static void foreign_argument()
{
    setenv("SH_EMU_DEVICES", "2", 1);
    char *at = device_bytes(100);
    cudaSetDevice(1);
    SH_LAUNCH(writes_at, dim3(1), dim3(32), 0, at, 5L);
}

static void host_reads()
{
    volatile char *at = device_bytes(100);
    cudaMemsetAsync((void *)at, 0, 100);
    cudaDeviceSynchronize();
    EXPECT(at[5] == 0);
}

static void long_copy()
{
    char host[200] = "";
    cudaMemcpy(device_bytes(100) + 50, host, 51, cudaMemcpyHostToDevice);
}

static void long_product()
{
    cublasHandle_t blas;
    float one = 1, *at = (float *)(void *)device_bytes(60);
    EXPECT(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS);
    cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, at, CUDA_R_32F, 2, at, CUDA_R_32F, 2, &one, at,
                 CUDA_R_32F, 14, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static void stale_stream()
{
    cudaStream_t stream;
    EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(cudaStreamDestroy(stream) == cudaSuccess);
    cudaStreamSynchronize(stream);
}

static void leak_at_exit()
{
    setenv("SH_EMU_LEAKS", "1", 1);
    device_bytes(77);
    exit(0);
}

static void bad_setting()
{
    setenv("SH_EMU_MEMORY", "lots", 1);
    device_bytes(1);
}

#define RUN(kernel)                                                                                       \
    [] {                                                                                                  \
        SH_LAUNCH(kernel, dim3(2), dim3(SIZE), 0, (int *)(void *)device_bytes(SIZE * sizeof(int)));       \
        cudaDeviceSynchronize();                                                                          \
    }
#define NO_BARRIER "with no barrier in between"

const Case fault_cases[] = {
    {"shared memory: past its end", RUN(past_end), "past_end, block (|, thread 9: shared part[69]: the array has 64"},
    {"shared memory: before its start", RUN(before_start), "before_start|thread 0: shared part[-1]"},
    {"shared memory: read before written", RUN(unwritten),
     "unwritten, block (1, 0, 0)|shared part[|is read and no thread"},
    {"race: read without a barrier", RUN(reads_early), "shared part[|thread|" NO_BARRIER},
    {"race: a shuffle is no barrier", RUN(reads_neighbour), "shared part[|reads what thread|wrote " NO_BARRIER},
    {"race: written while others read", RUN(writes_read), "shared part[0]|thread|" NO_BARRIER},
    {"race: two write", RUN(writes_twice), "shared part[|overwrites what thread|wrote " NO_BARRIER},
    {"race: an atomic and a read", RUN(atomic_and_read), "shared part[0]|atomic|" NO_BARRIER},
    {"race: a warp barrier orders one warp", RUN(warp_barrier_only), "shared part[|thread|" NO_BARRIER},
    {"shared memory: more than there is", RUN(too_much), "shared second|64000 bytes"},
    {"barrier: after a thread has returned", RUN(returns_early), "thread|__syncthreads"},
    {"barrier: threads in two of them", RUN(two_barriers), "__syncthreads|waits in another"},
    {"barrier: nobody can go on", RUN(barrier_and_warp), "no thread can go on|__s"},
    {"warp: a lane has returned", RUN(lane_returns), "thread 3|__shfl_sync"},
    {"warp: a lane that its mask leaves out", RUN(lane_unnamed), "leaves its own lane out"},
    {"warp: reads a lane outside the mask", RUN(reads_unnamed), "reads lane 20, which the mask 0000ffff leaves out"},
    {"warp: different functions meet", RUN(different_functions), "of lanes ffffffff|waits in"},
#ifndef __SANITIZE_ADDRESS__            /* the sanitizer finds these by itself */
    {"memory: a byte after an allocation", write_at<1000>, "writes_at has written after an allocation of 1000"},
    {"memory: a byte before an allocation", write_at<-1>, "writes_at has written before an allocation of 1000"},
#endif
    {"memory: far after an allocation", write_at<2000>, "writes_at, block (0, 0, 0), thread 7: it touches byte 2000"},
    {"memory: freed", touches_freed, "reads_holder|it touches byte 0 of freed device memory of 100 bytes"},
    {"memory: read by the host", host_reads, "it touches byte 5 of device memory|outside of all kernels"},
    {"an argument of the host's memory", host_argument, "kernel writes_at: argument 1"},
    {"an argument that is freed", freed_argument, "kernel writes_at: argument 1"},
    {"an argument of another device", foreign_argument, "kernel writes_at: argument 1 points to memory of device 0"},
    {"a structure that points to the host's memory", host_in_structure,
     "kernel reads_holder: argument 2: the word at byte 8"},
    {"a copy past an allocation", long_copy, "cudaMemcpy: 51 bytes from byte 50 on of an allocation of 100"},
    {"a product past an allocation", long_product, "cublasGemm, c: 64 bytes from byte 0 on of an allocation of 60"},
    {"a stream that is destroyed", stale_stream, "stream|does not exist"},
    {"a leak at the end of the process", leak_at_exit, "77 bytes of device memory are not freed|emu: 1 things"},
    {"a setting that is none", bad_setting, "SH_EMU_MEMORY=lots: a whole number is expected"},
    {NULL, NULL, NULL},
};
