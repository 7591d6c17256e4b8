/* SPDX-License-Identifier: Apache-2.0 */
/* out = act(gate) * up, a chunk at a time. */
#include "kernels/cpu/activate.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/variant.h"

enum { WORTH_THREADS = 1 << 14 };       /* numbers: below that, waking them takes longer */

void CPU_NAME(cpu_gate)(const struct sh_gate *a, int n_threads)
{
    size_t n = (size_t)a->out.rows * (size_t)a->out.cols, bytes = sh_type_bytes(a->out.type);
    const float *gate = a->gate.at, *up = a->up.at;
#pragma omp parallel for num_threads(n_threads) if (n > WORTH_THREADS)
    for (size_t at = 0; at < n; at += CHUNK) {
        float y[CHUNK];
        size_t m = chunk_at(at, n);
        activate(y, gate + at, a->act, m);
        for (size_t i = 0; i < m; i++)
            y[i] *= up[at + i];
        store_floats((char *)a->out.at + at * bytes, a->out.type, y, m);
    }
}
