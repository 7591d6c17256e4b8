/* SPDX-License-Identifier: Apache-2.0 */
/* vocab.json, merges.txt, special_tokens_map.json and tokenizer_config.json, a NUL between each two. */
#include <stdlib.h>

#include "src/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const name[] = {
        "vocab.json", "merges.txt", "special_tokens_map.json", "tokenizer_config.json"};
    static const char text[] = "ab abc </s>b";
    struct sh_err e;
    struct sh_ids ids = {0};
    size_t bytes;
    scratch_clear();
    for (int i = 0; i < 4 && (i < 2 || size); i++) {
        struct fuzz_part part = fuzz_until(0, &data, &size);
        scratch_write(name[i], part.at, part.bytes);
    }
    struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
    if (!t)
        return 0;
    fuzz_accepted++;
    if (!sh_tokenizer_encode(t, text, sizeof text - 1, 1, &ids, &e))
        free(sh_tokenizer_decode(t, ids.at, ids.n, &bytes));
    free(ids.at);
    sh_tokenizer_free(t);
    return 0;
}
