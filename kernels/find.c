/* SPDX-License-Identifier: Apache-2.0 */
/* Name to backend. The CPU backend is part of the program. */
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"

const struct sh_backend *sh_backend_find(const char *name, struct sh_err *e)
{
    if (!strcmp(name, "cpu") || !strcmp(name, "auto"))
        return &sh_backend_cpu;
    if (!strcmp(name, "cuda"))
        sh_absent(e, "backend cuda: not built: this program was configured without CUDA");
    else
        sh_misused(e, "backend \"%s\": there is none of that name; known are auto, cpu, cuda", name);
    return NULL;
}
