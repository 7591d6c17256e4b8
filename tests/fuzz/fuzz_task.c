/* SPDX-License-Identifier: Apache-2.0 */
/* A task's name on a line, then its records. What is taken are questions and choices that are not empty, in UTF-8, one
 * of them right; every error names the file. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/task.h"
#include "src/tokenizer/tok_text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

static int is_text(const char *text)
{
    size_t n = strlen(text);
    return n && sh_utf8_valid(text, n) == n;
}

static void check(const struct sh_task_item *item)
{
    if (item->n < 1 || item->n > SH_TASK_CHOICES || item->gold < 0 || item->gold >= item->n || item->line < 1)
        abort();
    for (int i = 0; i < item->n; i++)
        if (!is_text(item->context[i]) || !is_text(item->choice[i]))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_task_item *item;
    struct fuzz_part first = fuzz_until('\n', &data, &size);
    int bytes = first.bytes < 32 ? (int)first.bytes : 32;
    char *name = xasprintf("%.*s", bytes, bytes ? (const char *)first.at : "");
    const struct sh_task *t = sh_task_find(name, &e);
    int n = 0;
    free(name);
    if (!t)
        return 0;
    char *path = xstrdup(scratch_write("records", data, size));
    if (sh_task_load(t, path, 0, &item, &n, &e)) {
        fuzz_names(&e, path);
    } else {
        fuzz_accepted++;
        for (int i = 0; i < n; i++) {
            check(&item[i]);
            sh_task_item_free(&item[i]);
        }
        free(item);
    }
    free(path);
    return 0;
}
