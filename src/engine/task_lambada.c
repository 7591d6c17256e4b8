/* SPDX-License-Identifier: Apache-2.0 */
/* LAMBADA (Paperno et al., 2016), OpenAI's cut: the last word of a passage. */
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/task_fields.h"
#include "src/engine/tasks.h"

static int read(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *text, *word;
    if (json_object_get(record, "continuation")) {
        if (sh_task_text(record, "context", &text, e) || sh_task_text(record, "continuation", &word, e))
            return -1;
        return sh_task_add(out, xstrdup(text), xstrdup(word), e);
    }
    if (sh_task_text(record, "text", &text, e))
        return -1;
    if (!(word = strrchr(text, ' ')))
        return sh_fail(e, "field \"text\": expected more than one word");
    return sh_task_add(out, xasprintf("%.*s", (int)(word - text), text), xstrdup(word + 1), e);
}

const struct sh_task sh_task_lambada = {
    .name = "lambada", .summary = "the last word of a passage", .flags = SH_TASK_GREEDY, .read = read};
