/* SPDX-License-Identifier: Apache-2.0 */
/* ARC (Clark et al., 2018), the easy part: school science, mostly four answers. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/engine/task_fields.h"
#include "src/engine/tasks.h"

static int read(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *question;
    if (sh_task_is_ready(record))
        return sh_task_ready(record, "\nAnswer:", out, e);
    if (sh_task_text(record, "question", &question, e))
        return -1;
    char *context = xasprintf("Question: %s\nAnswer:", question);
    int bad = sh_task_labelled(record, context, out, e);
    free(context);
    return bad;
}

const struct sh_task sh_task_arc_easy = {
    .name = "arc_easy", .summary = "school science, mostly four answers", .flags = SH_TASK_NORM, .read = read};
