/* SPDX-License-Identifier: Apache-2.0 */
/* A request trace as Mooncake writes it, line by line: what is taken is within its limits, and its blocks can be named
 * at any size of them. */
#include <stdlib.h>
#include <string.h>

#include "src/app/simulate/simulate_args.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct sh_request *q, const struct sh_keys *ids)
{
    static const uint32_t block[] = {1, 16, 512, 2048};
    if (!(q->arrival_s >= 0 && q->arrival_s < 1e13) || !q->prompt || !q->output ||
        q->prompt + q->output > SH_REQUEST_TOKENS)
        abort();
    if (ids->n && ids->n != (q->prompt + SH_MOONCAKE_PIECE - 1) / SH_MOONCAKE_PIECE)
        abort();
    for (size_t i = 0; ids->n && i < sizeof block / sizeof *block; i++) {
        struct sh_keys k = {0};
        sh_keys_pieces(&k, block[i], SH_MOONCAKE_PIECE, ids->at, ids->n, q->prompt);
        if (k.n != q->prompt / block[i])
            abort();
        free(k.at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_keys ids = {0};
    struct sh_err e;
    while (size) {
        struct fuzz_part p = fuzz_until('\n', &data, &size);
        struct sh_request q;
        char *line = calloc(p.bytes + 1, 1);
        if (!line)
            break;
        memcpy(line, p.at, p.bytes);
        if (sh_mooncake_row(line, &q, &ids, &e) == 1) {
            check(&q, &ids);
            fuzz_accepted++;
        }
        free(line);
    }
    free(ids.at);
    return 0;
}
