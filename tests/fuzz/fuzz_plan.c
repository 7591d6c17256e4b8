/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files. What is taken keeps the law of a plan, and reads back as the same text once written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/plan/plan_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

static void look(const struct sh_plan *p)
{
    long long sum = 0;
    for (int l = 0; l < p->n_layer; l++)
        for (int h = 0; h < p->n_kv_head; h++) {
            int tokens = p->budget[l * p->n_kv_head + h], half = sh_plan_tokens(p, l, h, p->n_token / 2 + 1);
            sum += tokens;
            if (tokens < 1 || tokens > p->n_token || half < 1 || half > p->n_token / 2 + 1 ||
                sh_plan_tokens(p, l, h, p->n_token) != tokens)
                abort();
        }
    if (sum != sh_plan_total(p))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_plan p, again;
    scratch_clear();
    char *path = xstrdup(scratch_write("plan.json", data, size));
    if (!sh_plan_read(&p, path, &e)) {
        char *text = sh_plan_text(&p);
        look(&p);
        if (sh_plan_write(&p, path, &e) || sh_plan_read(&again, path, &e)) {
            printf("# %s\n", e.text);
            abort();
        }
        char *same = sh_plan_text(&again);
        if (strcmp(text, same))
            abort();
        free(text);
        free(same);
        sh_plan_clear(&p);
        sh_plan_clear(&again);
        fuzz_accepted++;
    }
    free(path);
    return 0;
}
