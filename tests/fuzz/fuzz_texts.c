/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of token ids, documents and plain texts (words.h says how they begin): sequences are as long as was asked for,
 * and every error names the file. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "tests/fuzz/words.h"
#include "tests/unit/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_texts t;
    char kind = fuzz_texts_asked(&data, &size, &t), *path = xstrdup(scratch_write("texts", data, size));
    int bad = kind == 't' ? sh_texts_tokens(&t, path, &e) : kind == 'j' ? sh_texts_jsonl(&t, path, "text", &e)
                                                                        : sh_texts_text(&t, path, &e);
    if (bad)
        fuzz_names(&e, path);
    else
        fuzz_accepted++;
    fuzz_texts_check(&t);
    sh_sequences_free(t.sequence, t.n);
    free(path);
    return 0;
}
