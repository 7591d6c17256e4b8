/* SPDX-License-Identifier: Apache-2.0 */
/* Packed attention statistics. What is taken for sound gives the very same bytes when packed again. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "traces/stats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_stats *s;
    struct sh_err e;
    unsigned char *again = NULL;
    if (sh_stats_unpack(data, size, &s, &e))
        return 0;
    fuzz_accepted++;
    if (sh_stats_pack(s, &again) != size || memcmp(again, data, size))
        abort();
    free(again);
    sh_stats_free(s);
    return 0;
}
