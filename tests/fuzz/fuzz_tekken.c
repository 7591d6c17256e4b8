/* SPDX-License-Identifier: Apache-2.0 */
/* tekken.json; what opens has to encode and decode. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_tokenizer_file("tekken.json", data, size, NULL);
}
