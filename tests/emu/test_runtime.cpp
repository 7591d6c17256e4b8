/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, memory, errors, the environment's faults, and cuBLAS. */
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "tests/emu/emu.h"
#include "tests/emu/test_emu.h"

static __global__ void fill(float *at, float x)
{
    at[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static void devices()
{
    int n = -1;
    cudaDeviceProp about;
    EXPECT(cudaGetDeviceCount(&n) == cudaSuccess && n == 1);
    EXPECT(cudaGetDeviceProperties(&about, 0) == cudaSuccess && about.name[0] && about.totalGlobalMem == 1u << 30);
    EXPECT(cudaSetDevice(1) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() == cudaSuccess);
    setenv("SH_EMU_DEVICES", "3", 1);
    EXPECT(cudaGetDeviceCount(&n) == cudaSuccess && n == 3);
    EXPECT(cudaSetDevice(2) == cudaSuccess && cudaGetDevice(&n) == cudaSuccess && n == 2);
    setenv("SH_EMU_DEVICES", "0", 1);
    EXPECT(cudaGetDeviceCount(&n) == cudaErrorNoDevice && n == 0 && cudaSetDevice(0) == cudaErrorNoDevice);
    setenv("SH_EMU_DEVICES", "driver", 1);
    EXPECT(cudaGetDeviceCount(&n) == cudaErrorInsufficientDriver);
    EXPECT(!strcmp(cudaGetErrorName(cudaErrorInsufficientDriver), "cudaErrorInsufficientDriver"));
}

static void little_memory()
{
    void *a, *b;
    size_t left, all;
    setenv("SH_EMU_MEMORY", "1M", 1);
    EXPECT(cudaMalloc(&a, 1 << 19) == cudaSuccess && cudaMalloc(&b, (1 << 19) + 1) == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
    EXPECT(cudaMalloc(&b, 1 << 18) == cudaSuccess);
    EXPECT(cudaMemGetInfo(&left, &all) == cudaSuccess && left == 1 << 18 && all == 1 << 20);
    EXPECT(cudaFree(a) == cudaSuccess && cudaMalloc(&a, 3 << 18) == cudaSuccess);
    EXPECT(cudaFree(a) == cudaSuccess && cudaFree(b) == cudaSuccess && cudaFree(NULL) == cudaSuccess);
    EXPECT(cudaMemGetInfo(&left, &all) == cudaSuccess && left == all);
    EXPECT(cudaFree(&left) == cudaErrorInvalidValue);
}

static void little_pinned_memory()
{
    void *a, *b;
    setenv("SH_EMU_PINNED", "1M", 1);
    EXPECT(cudaHostAlloc(&a, 3 << 18, 0) == cudaSuccess && cudaHostAlloc(&b, 1 << 19, 0) == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation && cudaMalloc(&b, 1 << 21) == cudaSuccess);
    EXPECT(cudaFreeHost(a) == cudaSuccess && cudaHostAlloc(&a, 1 << 20, 0) == cudaSuccess);
}

static void fresh_memory()
{
    std::vector<unsigned char> bytes(5 << 20);
    void *at, *pinned;
    EXPECT(cudaMalloc(&at, bytes.size()) == cudaSuccess && (uintptr_t)at % 256 == 0);
    host_copy(bytes.data(), at, bytes.size());
    for (unsigned char byte : bytes)
        EXPECT(byte == 0xff);
    EXPECT(cudaHostAlloc(&pinned, 1000, cudaHostAllocDefault) == cudaSuccess && ((unsigned char *)pinned)[999] == 0xff);
    EXPECT(cudaMemsetAsync(at, 7, 100) == cudaSuccess);
    host_copy(bytes.data(), at, bytes.size());
    EXPECT(bytes[99] == 7 && bytes[100] == 0xff);
}

static void leaks()
{
    void *at;
    cudaStream_t stream;
    cudaEvent_t event;
    cublasHandle_t blas;
    EXPECT(emu_leaks() == 0);
    EXPECT(cudaMalloc(&at, 10) == cudaSuccess && emu_leaks() == 1);
    EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess && emu_leaks() == 2);
    EXPECT(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess && emu_leaks() == 3);
    EXPECT(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS && emu_leaks() == 4);
    EXPECT(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS && cudaEventDestroy(event) == cudaSuccess);
    EXPECT(cudaStreamDestroy(stream) == cudaSuccess && cudaFree(at) == cudaSuccess && emu_leaks() == 0);
}

/* The launch that fails and everything after it; what is given back is given back. */
static void fails_for_good(const char *variable, cudaError_t error)
{
    float *at;
    cublasHandle_t blas;
    cudaStream_t stream;
    EXPECT(cudaMalloc(&at, 128) == cudaSuccess && cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS);
    EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    setenv(variable, "2", 1);
    SH_LAUNCH(fill, dim3(1), dim3(32), stream, at, 1.0f);
    EXPECT(emu_launches() == 1 && cudaStreamSynchronize(stream) == cudaSuccess);
    SH_LAUNCH(fill, dim3(1), dim3(32), stream, at, 2.0f);
    EXPECT(cudaGetLastError() == error && cudaGetLastError() == error);
    EXPECT(cudaStreamSynchronize(stream) == error && cudaMemsetAsync(at, 0, 4, stream) == error);
    float x = 1;
    EXPECT(cudaMemcpy(&x, at, 4, cudaMemcpyDeviceToHost) == error && x == 1);
    EXPECT(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &x, at, CUDA_R_32F, 1, at, CUDA_R_32F, 1, &x, at,
                        CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_EXECUTION_FAILED);
    EXPECT(cudaFree(at) == error && cudaStreamDestroy(stream) == error);
    EXPECT(cublasDestroy(blas) == CUBLAS_STATUS_EXECUTION_FAILED && emu_leaks() == 0);
}

static void fault()
{
    fails_for_good("SH_EMU_FAIL", cudaErrorIllegalAddress);
}

static void lost()
{
    fails_for_good("SH_EMU_LOST", cudaErrorDevicesUnavailable);
}

static void impossible_launches()
{
    float *at;
    EXPECT(cudaMalloc(&at, 128) == cudaSuccess);
    SH_LAUNCH(fill, dim3(0), dim3(32), 0, at, 1.0f);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    SH_LAUNCH(fill, dim3(1, 65536), dim3(32), 0, at, 1.0f);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    SH_LAUNCH(fill, dim3(1), dim3(1025), 0, at, 1.0f);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaSuccess);
}

enum { M = 5, N = 7, K = 11, GAP = 3, BATCHES = 2 };

static float value(int i)
{
    return (float)((i * 37 + 11) % 101 - 50) / 16;      /* exact in every format */
}

static size_t put_value(char *at, size_t i, cudaDataType_t type, float x)
{
    if (type == CUDA_R_32F)
        ((float *)(void *)at)[i] = x;
    else
        ((uint16_t *)(void *)at)[i] = type == CUDA_R_16F ? __float2half_rn(x).bits : __float2bfloat16_rn(x).bits;
    return type == CUDA_R_32F ? 4 : 2;
}

static float rounded(float x, cudaDataType_t type)
{
    return type == CUDA_R_32F   ? x
           : type == CUDA_R_16F ? __half2float(__float2half_rn(x))
                                : __bfloat162float(__float2bfloat16_rn(x));
}

/* Element (i, j) of op(matrix) that is stored with `lead`. */
static int place(int i, int j, int lead, bool is_turned)
{
    return is_turned ? i * lead + j : j * lead + i;
}

struct Product {
    cudaDataType_t type, out;
    bool turn_a, turn_b;
    float beta;
    int lda, ldb, ldc, stride[3];
};

static double expected(const Product &p, int batch, int i, int j)
{
    double sum = 0;
    for (int l = 0; l < K; l++)
        sum += (double)value(batch * p.stride[0] + place(i, l, p.lda, p.turn_a)) *
               (double)value(batch * p.stride[1] + place(l, j, p.ldb, p.turn_b));
    int at = batch * p.stride[2] + place(i, j, p.ldc, false);
    return 0.5 * sum + (p.beta != 0 ? (double)p.beta * (double)value(at) : 0.0);
}

static void check_product(cublasHandle_t blas, cudaDataType_t type, cudaDataType_t out, int turns, float beta)
{
    Product p = {type, out, turns % 2 != 0, turns / 2 != 0, beta, 0, 0, M + GAP, {0, 0, 0}};
    p.lda = (p.turn_a ? K : M) + GAP;
    p.ldb = (p.turn_b ? N : K) + GAP;
    int count[3] = {p.lda * (p.turn_a ? M : K), p.ldb * (p.turn_b ? K : N), p.ldc * N};
    const cudaDataType_t types[3] = {type, type, out};
    void *at[3];
    std::vector<char> bytes;
    for (int o = 0; o < 3; o++) {
        p.stride[o] = count[o] + 1;
        size_t width = 4, n = (size_t)(p.stride[o] * BATCHES);
        bytes.assign(n * width, 0);
        for (size_t i = 0; i < n; i++)
            width = put_value(bytes.data(), i, types[o], o == 2 && beta == 0 ? NAN : value((int)i));
        at[o] = device_copy(bytes.data(), n * width);
    }
    float alpha = 0.5f;
    EXPECT(cublasGemmStridedBatchedEx(blas, p.turn_a ? CUBLAS_OP_T : CUBLAS_OP_N, p.turn_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                      M, N, K, &alpha, at[0], type, p.lda, p.stride[0], at[1], type, p.ldb,
                                      p.stride[1], &beta, at[2], out, p.ldc, p.stride[2], BATCHES, CUBLAS_COMPUTE_32F,
                                      CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    alpha = -1;                         /* it was read at the call */
    std::vector<float> wide((size_t)(p.stride[2] * BATCHES));
    std::vector<uint16_t> narrow(wide.size());
    bool is_wide = out == CUDA_R_32F;
    host_copy(is_wide ? (void *)wide.data() : narrow.data(), at[2], wide.size() * (is_wide ? 4 : 2));
    for (int batch = 0; batch < BATCHES; batch++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < M; i++) {
                size_t c = (size_t)(batch * p.stride[2] + j * p.ldc + i);
                float x = out == CUDA_R_32F   ? wide[c]
                          : out == CUDA_R_16F ? __half2float(__half{narrow[c]})
                                              : __bfloat162float(__nv_bfloat16{narrow[c]});
                EXPECT(x == rounded((float)expected(p, batch, i, j), out));
            }
    for (void *operand : at)
        EXPECT(cudaFree(operand) == cudaSuccess);
}

static void products()
{
    static const cudaDataType_t type[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};
    cublasHandle_t blas;
    EXPECT(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS &&
           cublasSetMathMode(blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == CUBLAS_STATUS_SUCCESS);
    for (cudaDataType_t t : type)
        for (int turns = 0; turns < 4; turns++)
            for (int beta = 0; beta < 3; beta++) {
                check_product(blas, t, t, turns, (float)beta / 2);
                check_product(blas, t, CUDA_R_32F, turns, (float)beta / 2);
            }
}

static void refused_products()
{
    cublasHandle_t blas;
    float one = 1, *at;
    EXPECT(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS && cudaMalloc(&at, 1024) == cudaSuccess);
    auto product = [&](cublasOperation_t op, int m, int k, int lda, int ldc, cudaDataType_t a, cudaDataType_t b,
                       cudaDataType_t c, cublasComputeType_t compute) {
        return cublasGemmEx(blas, op, CUBLAS_OP_N, m, 2, k, &one, at, a, lda, at, b, 4, &one, at, c, ldc, compute,
                            CUBLAS_GEMM_DEFAULT);
    };
    const cudaDataType_t f = CUDA_R_32F, h = CUDA_R_16F, b = CUDA_R_16BF;
    const cublasComputeType_t c = CUBLAS_COMPUTE_32F;
    EXPECT(product(CUBLAS_OP_N, 3, 4, 3, 3, f, f, f, c) == CUBLAS_STATUS_SUCCESS);
    EXPECT(product(CUBLAS_OP_N, 3, 4, 2, 3, f, f, f, c) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(product(CUBLAS_OP_T, 3, 4, 3, 3, f, f, f, c) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(product(CUBLAS_OP_N, 3, 4, 3, 2, f, f, f, c) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(product(CUBLAS_OP_N, -3, 4, 3, 3, f, f, f, c) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(product(CUBLAS_OP_N, 3, 4, 3, 3, h, h, f, c) == CUBLAS_STATUS_SUCCESS);
    EXPECT(product(CUBLAS_OP_N, 3, 4, 3, 3, h, h, h, c) == CUBLAS_STATUS_NOT_SUPPORTED);     /* by default */
    EXPECT(product(CUBLAS_OP_N, 3, 4, 3, 3, h, b, f, c) == CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(product(CUBLAS_OP_N, 3, 4, 3, 3, f, f, h, c) == CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(product(CUBLAS_OP_N, 3, 4, 3, 3, h, h, b, c) == CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(product(CUBLAS_OP_N, 3, 4, 3, 3, f, f, f, CUBLAS_COMPUTE_32F_FAST_TF32) == CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH) == CUBLAS_STATUS_NOT_SUPPORTED);
}

const Case runtime_cases[] = {
    {"devices: how many, which, none, no driver", devices, NULL},
    {"memory ends, without lasting harm", little_memory, NULL},
    {"pinned memory ends, too", little_pinned_memory, NULL},
    {"new memory is full of NaN", fresh_memory, NULL},
    {"leaks are counted", leaks, NULL},
    {"a fault lasts", fault, NULL},
    {"a lost device stays lost", lost, NULL},
    {"launches that CUDA refuses", impossible_launches, NULL},
    {"products of all types and layouts", products, NULL},
    {"products that cuBLAS refuses", refused_products, NULL},
    {NULL, NULL, NULL},
};
