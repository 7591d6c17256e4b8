/* SPDX-License-Identifier: Apache-2.0 */
/* model.safetensors.index.json up to a NUL, next_to a shard a.safetensors (what follows the NUL, see
 * fuzz_safetensors()). */
#include "src/model/weights.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct fuzz_part index = fuzz_until(0, &data, &size);
    scratch_clear();
    scratch_write("model.safetensors.index.json", index.at, index.bytes);
    fuzz_safetensors("a.safetensors", data, size);
    struct sh_weights *s = sh_weights_open_folder(scratch_folder(), &e);
    fuzz_accepted += s != NULL;
    sh_weights_close(s);
    return 0;
}
