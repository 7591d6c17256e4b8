/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding rows: widened, scaled, the position's row added. */
#include "kernels/cpu/floats.h"
#include "kernels/cpu/variant.h"
#include "src/base/team.h"

static const char *table_row(const void *table, enum sh_type type, int row, int width)
{
    return (const char *)table + (size_t)row * (size_t)width * sh_type_bytes(type);
}

static void embed_row(void *arg, int i)
{
    const struct sh_embed *a = arg;
    size_t n = (size_t)a->out.cols;
    float *out = (float *)a->out.at + (size_t)i * a->out.stride;
    const char *token = table_row(a->table, a->type, a->id[i], a->out.cols), *position = NULL;
    if (a->position_table)
        position = table_row(a->position_table, a->position_type, a->position[i], a->out.cols);
    for (size_t at = 0; at < n; at += CHUNK) {
        float x[CHUNK], y[CHUNK] = {0};
        size_t m = chunk_at(at, n);
        load_floats(x, a->type, token + at * sh_type_bytes(a->type), m);
        if (position)
            load_floats(y, a->position_type, position + at * sh_type_bytes(a->position_type), m);
        for (size_t c = 0; c < m; c++)
            out[at + c] = x[c] * a->scale + y[c];
    }
}

void CPU_NAME(cpu_embed)(const struct sh_embed *a, int n_threads)
{
    struct sh_embed copy = *a;
    sh_team_each(n_threads, a->out.rows, embed_row, &copy);
}
