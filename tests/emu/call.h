/* SPDX-License-Identifier: Apache-2.0 */
/* A call of CUDA or cuBLAS from the host: it holds the one lock of the emulation, knows whether devices
 * are there and well, and leaves its error for cudaGetLastError. */
#ifndef SH_EMU_CALL_H
#define SH_EMU_CALL_H

#include <mutex>

#include <cuda_runtime.h>

namespace emu {

extern thread_local int current_device;
extern thread_local cudaError_t last_error;

class Call {
    std::lock_guard<std::mutex> hold;
    cudaError_t device;                 /* what every call returns: no device, no driver, an error */
                                        /* that lasts                                              */

public:
    Call();
    bool failed() const { return device != cudaSuccess; }
    /* What the call returns when it has failed or come to `error`. */
    cudaError_t status() { return end(cudaSuccess); }
    cudaError_t end(cudaError_t error)
    {
        error = failed() ? device : error;
        last_error = error != cudaSuccess ? error : last_error;
        return error;
    }
};

}

#endif
