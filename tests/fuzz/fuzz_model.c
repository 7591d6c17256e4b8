/* SPDX-License-Identifier: Apache-2.0 */
/* A whole checkpoint folder: config.json up to a NUL, then its safetensors file (see
 * fuzz_safetensors()). Every tensor of the first layers is read. */
#include "src/model/model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

static void read_layer(struct sh_model *m, int layer)
{
    struct sh_err e;
    struct sh_tensor t;
    for (int role = layer < 0 ? 0 : SH_LAYER_ROLE; role < (layer < 0 ? SH_LAYER_ROLE : SH_N_ROLE); role++)
        if (!sh_model_tensor(m, (enum sh_role)role, layer, &t, &e) && t.at)
            sh_model_check_finite(&t, &e);
    sh_model_layer_bytes(m, layer);
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
    fuzz_accepted++;
    sh_model_fingerprint(m);
    for (int layer = -1; layer < sh_model_arch(m)->n_layer && layer < 3; layer++)
        read_layer(m, layer);
    sh_model_close(m);
    return 0;
}
