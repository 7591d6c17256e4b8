/* SPDX-License-Identifier: Apache-2.0 */
/* MathQA (Amini et al., 2019): word problems, five answers. */
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/task_fields.h"
#include "src/engine/tasks.h"

/* "a ) 38 , b ) 27.675 , … , e ) none": answers a to d end at the first ", ", e with its line. */
static int read_options(const char *options, const char *problem, struct sh_task_item *out, struct sh_err *e)
{
    for (const char *at = options; *at;) {
        const char *end = NULL;
        int is_one = *at >= 'a' && *at <= 'e' && !strncmp(at + 1, " ) ", 3);
        size_t line = strcspn(at, "\n");
        if (is_one && *at == 'e')
            end = at[line] == '\0' || at[line + 1] == '\0' ? at + line : NULL;
        else if (is_one && (end = strstr(at + 4, ", ")))
            end = end < at + line ? end + 2 : NULL;
        if (!end) {
            at++;
            continue;
        }
        int n = (int)(end - at) - 4;
        while (n && strchr(" ,", at[4 + n - 1]))
            n--;
        if (sh_task_add(out, xasprintf("Question: %s\nAnswer:", problem), xasprintf("%.*s", n, at + 4), e))
            return -1;
        at = end;
    }
    return 0;
}

static int read(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *problem, *options, *correct;
    if (sh_task_is_ready(record))
        return sh_task_ready(record, "", out, e);
    if (sh_task_text(record, "Problem", &problem, e) || sh_task_text(record, "options", &options, e) ||
        sh_task_text(record, "correct", &correct, e) || read_options(options, problem, out, e))
        return -1;
    out->gold = *correct - 'a';
    if (strlen(correct) != 1 || out->gold < 0 || out->gold >= out->n)
        return sh_fail(e, "field \"correct\": \"%.20s\" is none of the %d options", correct, out->n);
    return 0;
}

const struct sh_task sh_task_mathqa = {
    .name = "mathqa", .summary = "word problems, five answers", .flags = SH_TASK_NORM, .read = read};
