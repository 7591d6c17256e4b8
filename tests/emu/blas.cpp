/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS: handles, and products on their way into a stream. What cuBLAS refuses is refused with its
 * status; matrices that do not lie in the device's memory make the process fail. */
#include "tests/emu/blas.h"

#include <stdio.h>

#include <algorithm>
#include <set>

#include "tests/emu/call.h"
#include "tests/emu/memory.h"
#include "tests/emu/running.h"
#include "tests/emu/settings.h"
#include "tests/emu/stream.h"

struct cublasContext {
    int device;
    cudaStream_t stream;
    void *workspace;                    /* NULL: its own                                           */
    size_t workspace_bytes;
    bool sums_are_f32;                  /* of products that come out in 16 bits, too               */
};

namespace emu {

static std::set<cublasContext *> &handles = *new std::set<cublasContext *>;

static cublasContext *handle_at(cublasHandle_t handle)
{
    if (handle && !handles.count(handle))
        fail("cuBLAS handle %p does not exist", (void *)handle);
    return handle;
}

int report_handle_leaks()
{
    if (!handles.empty())
        fprintf(stderr, "emu: %zu cuBLAS handles are not destroyed\n", handles.size());
    return (int)handles.size();
}

static bool is_supported(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cublasComputeType_t compute)
{
    bool known = a == CUDA_R_32F || a == CUDA_R_16F || a == CUDA_R_16BF;
    return known && a == b && (c == a || c == CUDA_R_32F) &&
           (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC);
}

static bool is_operation(cublasOperation_t op)
{
    return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

struct Shape {                          /* as stored                                               */
    size_t rows, cols;
};

static Shape stored(const Operand &o, size_t rows, size_t cols)
{
    return o.is_turned ? Shape{cols, rows} : Shape{rows, cols};
}

static void check_operand(const char *what, const Operand &o, Shape s, size_t batches, int device)
{
    size_t bytes = matrix_bytes(o, s.rows, s.cols);
    long long last = (long long)(batches - 1) * o.stride * (long long)type_bytes(o.type);
    if (!bytes)
        return;
    check_range(what, std::min(o.at, o.at + last), bytes + (size_t)(last < 0 ? -last : last), device, true);
    if ((uintptr_t)o.at % type_bytes(o.type))
        fail("%s: %p is not aligned to its elements", what, (void *)o.at);
}

static cublasStatus_t put_gemm(cublasContext *h, const Gemm &g)
{
    CUstream_st *s = stream_at(h->stream);
    if (h->device != current_device || s->device != current_device)
        fail("cublasGemm: handle of device %d, stream of device %d, the current one is %d", h->device, s->device,
             current_device);
    Shape a = stored(g.a, g.m, g.k), b = stored(g.b, g.k, g.n), c = {g.m, g.n};
    if (g.a.lead < std::max<size_t>(1, a.rows) || g.b.lead < std::max<size_t>(1, b.rows) ||
        g.c.lead < std::max<size_t>(1, c.rows))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!g.m || !g.n || !g.batches)
        return CUBLAS_STATUS_SUCCESS;
    check_operand("cublasGemm, a", g.a, a, g.batches, h->device);
    check_operand("cublasGemm, b", g.b, b, g.batches, h->device);
    check_operand("cublasGemm, c", g.c, c, g.batches, h->device);
    if (h->workspace)
        check_range("cublasGemm, workspace", h->workspace, h->workspace_bytes, h->device, false);
    if (s->recording || count_launch())
        put(s, {[g] { run_gemm(g); }, nullptr, nullptr});
    else
        drop_all();
    return CUBLAS_STATUS_SUCCESS;
}

}

using namespace emu;

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    Call call;
    if (call.failed())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext{current_device, 0, nullptr, 0, false};
    handles.insert(*handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    Call call;
    cublasContext *h = handle_at(handle);
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    settle(stream_at(h->stream), nullptr);
    handles.erase(h);
    delete h;
    return call.failed() ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    Call call;
    cublasContext *h = handle_at(handle);
    if (!h || call.failed())
        return h ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_NOT_INITIALIZED;
    h->stream = stream_at(stream) ? stream : 0;
    h->workspace = nullptr;             /* cuBLAS goes back to its own */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    Call call;
    if (!handle_at(handle) || call.failed())
        return handle ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_NOT_INITIALIZED;
    int kind = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (kind != CUBLAS_DEFAULT_MATH && kind != CUBLAS_PEDANTIC_MATH)
        return CUBLAS_STATUS_NOT_SUPPORTED;             /* TF32 is not emulated */
    handle_at(handle)->sums_are_f32 = mode != CUBLAS_DEFAULT_MATH;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *at, size_t bytes)
{
    Call call;
    cublasContext *h = handle_at(handle);
    if (!h || call.failed())
        return h ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_NOT_INITIALIZED;
    if ((uintptr_t)at % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (at)
        check_range("cublasSetWorkspace", at, bytes, h->device, false);
    h->workspace = at;
    h->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "the cuBLAS operation completed successfully";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the cuBLAS library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE: return "an invalid value was used";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality requested is not supported";
    default: return "unknown cuBLAS status";
    }
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void *alpha, const void *a, cudaDataType_t type_a,
                                          int lda, long long stride_a, const void *b, cudaDataType_t type_b, int ldb,
                                          long long stride_b, const void *beta, void *c, cudaDataType_t type_c,
                                          int ldc, long long stride_c, int batches, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algo)
{
    Call call;
    cublasContext *h = handle_at(handle);
    if (!h || call.failed())
        return h ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || batches < 0 || lda < 0 || ldb < 0 || ldc < 0 || !alpha || !beta ||
        !is_operation(op_a) || !is_operation(op_b))
        return CUBLAS_STATUS_INVALID_VALUE;
    /* Partial sums in 16 bits, which cuBLAS may use unless it is told not to, are not emulated. */
    if (!is_supported(type_a, type_b, type_c, compute) || (type_c != CUDA_R_32F && !h->sums_are_f32) ||
        (algo != CUBLAS_GEMM_DEFAULT && algo != CUBLAS_GEMM_DEFAULT_TENSOR_OP))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Gemm g = {{(char *)a, type_a, (size_t)lda, stride_a, op_a != CUBLAS_OP_N},
              {(char *)b, type_b, (size_t)ldb, stride_b, op_b != CUBLAS_OP_N},
              {(char *)c, type_c, (size_t)ldc, stride_c, false},
              (size_t)m, (size_t)n, (size_t)k, (size_t)batches,
              *(const float *)alpha, *(const float *)beta};
    return put_gemm(h, g);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType_t type_a, int lda, const void *b,
                            cudaDataType_t type_b, int ldb, const void *beta, void *c, cudaDataType_t type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c,
                                      type_c, ldc, 0, 1, compute, algo);
}
