/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the cuBLAS of tests/emu: blas.cpp looks at the arguments, gemm.cpp computes. */
#ifndef SH_EMU_BLAS_H
#define SH_EMU_BLAS_H

#include <cublas_v2.h>

namespace emu {

struct Operand {                        /* column-major                                            */
    char *at;
    cudaDataType_t type;
    size_t lead;
    long long stride;                   /* elements from one matrix of a batch to the next         */
    bool is_turned;
};

struct Gemm {                           /* c = alpha a b + beta c; a [m, k], b [k, n]              */
    Operand a, b, c;
    size_t m, n, k, batches;
    float alpha, beta;
};

size_t type_bytes(cudaDataType_t type);
/* The bytes of a matrix that is stored as [rows, cols], from its first element to its last. */
size_t matrix_bytes(const Operand &o, size_t rows, size_t cols);
void run_gemm(const Gemm &g);

int report_handle_leaks();

}

#endif
