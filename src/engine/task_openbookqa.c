/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBookQA (Mihaylov et al., 2018): elementary science, four answers. */
#include "src/engine/task_fields.h"
#include "src/engine/tasks.h"

static int read(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *question;
    if (sh_task_is_ready(record))
        return sh_task_ready(record, "", out, e);
    return sh_task_text(record, "question_stem", &question, e) ? -1 : sh_task_labelled(record, question, out, e);
}

const struct sh_task sh_task_openbookqa = {
    .name = "openbookqa", .summary = "elementary science, four answers", .flags = SH_TASK_NORM, .read = read};
