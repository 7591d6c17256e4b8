/* SPDX-License-Identifier: Apache-2.0 */
/* A workload file, line by line: what is taken is within its limits. */
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/workload.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct sh_request *q)
{
    if (!(q->arrival_s >= 0 && q->arrival_s < 1e13) || !q->prompt || !q->output ||
        q->prompt + q->output > SH_REQUEST_TOKENS)
        abort();
}

static void line(const uint8_t **data, size_t *size, char *to, size_t bytes)
{
    struct fuzz_part p = fuzz_until('\n', data, size);
    size_t n = p.bytes < bytes ? p.bytes : bytes - 1;
    memcpy(to, p.at, n);
    to[n] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_workload_columns c;
    struct sh_lengths l;
    char text[1024];
    line(&data, &size, text, sizeof text);
    sh_lengths_parse("--prompt", text, &l, &e);
    if (sh_workload_header(text, &c, &e))
        return 0;
    if (c.arrival >= c.n || c.prompt >= c.n || c.output >= c.n || c.arrival < 0 || c.prompt < 0 || c.output < 0)
        abort();
    while (size) {
        struct sh_request q;
        uint64_t session;
        line(&data, &size, text, sizeof text);
        if (sh_workload_row(&c, text, &q, &session, &e) == 1) {
            check(&q);
            fuzz_accepted++;
        }
    }
    return 0;
}
