/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "src/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

int fuzz_tokenizer_file(const char *name, const uint8_t *data, size_t size, const char *config)
{
    static const char text[] = "  ab  abc <s>a\xc3\xa9 12\n\xf0\x9f\x98\x80'll [x]b\xef\xac\x81 A";
    struct sh_err e;
    struct sh_ids ids = {0};
    size_t bytes;
    scratch_clear();
    scratch_write(name, data, size);
    if (config)
        scratch_write("tokenizer_config.json", config, strlen(config));
    struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
    if (!t)
        return 0;
    fuzz_accepted++;
    if (!sh_tokenizer_encode(t, text, sizeof text, 1, &ids, &e))
        free(sh_tokenizer_decode(t, ids.at, ids.n, &bytes));
    for (int32_t id = -1; id < 20; id++)
        sh_tokenizer_piece(t, id);
    free(ids.at);
    sh_tokenizer_free(t);
    return 0;
}
