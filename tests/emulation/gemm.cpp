/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS's products as its manual defines them: column-major, sums in f32 (here in double, rounded once). */
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "block.h"
#include "runtime.h"

struct emu_blas { cudaStream_t stream; };

namespace {

struct operand {
    const char *at;
    cudaDataType_t type;
    int ld;
    bool turned;
};

size_t width(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

float number(const char *at, cudaDataType_t type, size_t i)
{
    uint16_t half;
    float whole;
    if (type == CUDA_R_32F) {
        std::memcpy(&whole, at + 4 * i, 4);
        return whole;
    }
    std::memcpy(&half, at + 2 * i, 2);
    return type == CUDA_R_16F ? sh_f16_to_f32(half) : sh_bf16_to_f32(half);
}

void store(char *at, cudaDataType_t type, size_t i, float x)
{
    uint16_t half = type == CUDA_R_16F ? sh_f32_to_f16(x) : sh_f32_to_bf16(x);
    if (type == CUDA_R_32F)
        std::memcpy(at + 4 * i, &x, 4);
    else
        std::memcpy(at + 2 * i, &half, 2);
}

float element(const operand &o, int row, int col)
{
    return number(o.at, o.type, o.turned ? (size_t)row * (size_t)o.ld + (size_t)col
                                         : (size_t)col * (size_t)o.ld + (size_t)row);
}

void multiply(int m, int n, int k, float alpha, operand a, operand b, float beta, char *c, cudaDataType_t type, int ldc)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            size_t at = (size_t)j * (size_t)ldc + (size_t)i;
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (double)element(a, i, l) * (double)element(b, l, j);
            double y = (double)alpha * sum;
            store(c, type, at, (float)(beta == 0 ? y : y + (double)beta * (double)number(c, type, at)));
        }
}

/* The last byte of a matrix lies within the allocation of its first. */
void check(const char *name, const void *at, int rows, int cols, int ld, cudaDataType_t type)
{
    size_t bytes = ((size_t)(cols - 1) * (size_t)ld + (size_t)rows) * width(type);
    if (!emu::is_device_memory(at, bytes))
        emu::fail("gemm: matrix %s [%d, %d], leading dimension %d, is not inside device memory", name, rows, cols, ld);
}

} /* namespace */

const char *cublasGetStatusString(cublasStatus_t s)
{
    switch (s) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "unknown status";
}

cublasStatus_t cublasCreate(cublasHandle_t *h)
{
    *h = new emu_blas{nullptr};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t h)
{
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *at, size_t bytes)
{
    return emu::is_device_memory(at, bytes) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType_t type_a, int lda, const void *b,
                            cudaDataType_t type_b, int ldb, const void *beta, void *c, cudaDataType_t type_c,
                            int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    return cublasGemmStridedBatchedEx(h, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c,
                                      type_c, ldc, 0, 1, compute, algo);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void *alpha, const void *a, cudaDataType_t type_a,
                                          int lda, long long stride_a, const void *b, cudaDataType_t type_b, int ldb,
                                          long long stride_b, const void *beta, void *c, cudaDataType_t type_c,
                                          int ldc, long long stride_c, int count, cublasComputeType_t,
                                          cublasGemmAlgo_t)
{
    int rows_a = op_a == CUBLAS_OP_N ? m : k, rows_b = op_b == CUBLAS_OP_N ? k : n;
    if (type_a != type_b || (type_c != type_a && type_c != CUDA_R_32F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m < 0 || n < 0 || k < 0 || count < 0 || lda < rows_a || ldb < rows_b || ldc < m || lda < 1 || ldb < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (emu::broken_state() != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    float one, other;
    std::memcpy(&one, alpha, 4);
    std::memcpy(&other, beta, 4);
    for (int i = 0; i < count && m && n && k; i++) {
        const char *at_a = (const char *)a + i * stride_a * (long long)width(type_a);
        const char *at_b = (const char *)b + i * stride_b * (long long)width(type_b);
        char *at_c = (char *)c + i * stride_c * (long long)width(type_c);
        check("a", at_a, rows_a, op_a == CUBLAS_OP_N ? k : m, lda, type_a);
        check("b", at_b, rows_b, op_b == CUBLAS_OP_N ? n : k, ldb, type_b);
        check("c", at_c, m, n, ldc, type_c);
        emu::enqueue_work(h->stream, [=] {
            multiply(m, n, k, one, {at_a, type_a, lda, op_a == CUBLAS_OP_T}, {at_b, type_b, ldb, op_b == CUBLAS_OP_T},
                     other, at_c, type_c, ldc);
        });
    }
    return CUBLAS_STATUS_SUCCESS;
}
