/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of a checkpoint. */
#include "src/model/config/config.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_arch arch;
    scratch_clear();
    struct sh_config *c = sh_config_open(scratch_write("config.json", data, size), &e);
    fuzz_accepted += c && !sh_config_arch(c, &arch, &e);
    sh_config_close(c);
    return 0;
}
