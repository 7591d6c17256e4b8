/* SPDX-License-Identifier: Apache-2.0 */
/* out = act(gate) * up, a chunk at a time. */
#include "kernels/cpu/activate.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/variant.h"
#include "src/base/team.h"

enum { PIECE = 1 << 13 };               /* numbers: fewer are done sooner than a thread is woken */

static void gate_part(void *arg, int i)
{
    const struct sh_gate *a = arg;
    size_t n = (size_t)a->out.rows * (size_t)a->out.cols, bytes = sh_type_bytes(a->out.type);
    size_t from = (size_t)i * PIECE, end = n - from < PIECE ? n : from + PIECE;
    const float *gate = a->gate.at, *up = a->up.at;
    for (size_t at = from; at < end; at += CHUNK) {
        float y[CHUNK];
        size_t m = chunk_at(at, end);
        activate(y, gate + at, a->act, m);
        for (size_t k = 0; k < m; k++)
            y[k] *= up[at + k];
        store_floats((char *)a->out.at + at * bytes, a->out.type, y, m);
    }
}

void CPU_NAME(cpu_gate)(const struct sh_gate *a, int n_threads)
{
    size_t n = (size_t)a->out.rows * (size_t)a->out.cols;
    struct sh_gate copy = *a;
    sh_team_each(n_threads, (int)((n + PIECE - 1) / PIECE), gate_part, &copy);
}
