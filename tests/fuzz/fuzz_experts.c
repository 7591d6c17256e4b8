/* SPDX-License-Identifier: Apache-2.0 */
/* A mixture of experts as a folder: config.json up to a NUL, then its safetensors file (see fuzz_safetensors()). All
 * experts of the first layers are read in every way that a layer has: as numbers, as codes or 16-bit numbers that stay
 * where they are, in the order of the file; their pages go in between. Sound is what opens and has experts. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

static unsigned sum;

static void read_packed(const struct sh_packed *p)
{
    float *x = xcalloc((size_t)p->rows * (size_t)p->cols, sizeof *x);
    int half = p->rows / 2;
    p->unpack(p->from, 0, half, x);
    p->unpack(p->from, half, p->rows - half, x + (size_t)half * (size_t)p->cols);
    for (size_t i = 0; i < (size_t)p->rows * (size_t)p->cols; i++)
        sum += x[i] > 0;
    free(x);
}

static void read_numbered(struct sh_model *m, enum sh_role role, int layer, int number)
{
    struct sh_err e;
    struct sh_tensor t;
    struct sh_packed p;
    const char *name;
    sh_model_ask_numbered(m, role, layer, number);
    if (sh_model_packed(m, role, layer, number, &p, &name) || sh_model_halves(m, role, layer, number, &p, &name))
        read_packed(&p);
    sh_model_drop_numbered(m, role, layer, number);
    if (!sh_model_numbered(m, role, layer, number, &t, &e) && t.at)
        sh_model_check_finite(&t, &e);
    sh_model_drop_numbered(m, role, layer, number);
}

static void read_experts(struct sh_model *m, int layer)
{
    enum { MOST = 64 };
    int n = sh_model_count(m, SH_EXPERT_DOWN_W), *order = xcalloc((size_t)n, sizeof *order);
    unsigned char *is_there = xcalloc((size_t)n, 1);
    sh_model_file_order(m, SH_EXPERT_DOWN_W, layer, order);
    for (int i = 0; i < n; i++)
        if (order[i] < 0 || order[i] >= n || is_there[order[i]]++)
            abort();
    for (int i = 0; i < n && i < MOST; i++)
        for (int role = SH_LAYER_ROLE; role < SH_N_ROLE; role++)
            if (sh_model_count(m, (enum sh_role)role) == n)
                read_numbered(m, (enum sh_role)role, layer, order[i]);
    free(order);
    free(is_there);
    sh_model_drop(m, layer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct fuzz_part config = fuzz_until(0, &data, &size);
    scratch_clear();
    scratch_write("config.json", config.at, config.bytes);
    fuzz_safetensors("model.safetensors", data, size);
    struct sh_model *m = sh_model_open(scratch_folder(), &e);
    if (!m)
        return 0;
    int n_expert = sh_model_arch(m)->mix.n;
    fuzz_accepted += n_expert > 1;
    for (int layer = 0; layer < sh_model_arch(m)->n_layer && layer < 2 && n_expert > 1; layer++)
        read_experts(m, layer);
    sh_model_close(m);
    return 0;
}
