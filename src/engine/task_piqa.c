/* SPDX-License-Identifier: Apache-2.0 */
/* PIQA (Bisk et al., 2020): which of two solutions reaches a goal. */
#include "src/base/mem.h"
#include "src/engine/task_fields.h"
#include "src/engine/tasks.h"

static int read(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    static const char *const field[] = {"sol1", "sol2"};
    const char *goal, *text;
    if (sh_task_is_ready(record))
        return sh_task_ready(record, "\nAnswer:", out, e);
    if (sh_task_text(record, "goal", &goal, e))
        return -1;
    for (int i = 0; i < 2; i++)
        if (sh_task_text(record, field[i], &text, e) ||
            sh_task_add(out, xasprintf("Question: %s\nAnswer:", goal), xstrdup(text), e))
            return -1;
    return sh_task_index(record, "label", 0, 2, &out->gold, e);
}

const struct sh_task sh_task_piqa = {
    .name = "piqa", .summary = "which of two solutions reaches a goal", .flags = SH_TASK_NORM, .read = read};
