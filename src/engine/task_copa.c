/* SPDX-License-Identifier: Apache-2.0 */
/* COPA (Roemmele et al., 2011): which of two sentences is the cause or the effect of a third. */
#include <ctype.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/task_fields.h"
#include "src/engine/tasks.h"
#include "src/tokenizer/tok_text.h"

static int read(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    static const char *const field[] = {"choice1", "choice2"};
    const char *premise, *kind, *text;
    if (sh_task_is_ready(record))
        return sh_task_ready(record, "", out, e);
    if (sh_task_text(record, "premise", &premise, e) || sh_task_text(record, "question", &kind, e))
        return -1;
    if (strcmp(kind, "cause") && strcmp(kind, "effect"))
        return sh_fail(e, "field \"question\": \"%.20s\", expected cause or effect", kind);
    premise += strspn(premise, " \t\n\r");
    int n = sh_task_trimmed(premise);
    n = n ? (int)sh_utf8_before(premise, (size_t)n) : 0;    /* without its full stop */
    for (int i = 0; i < 2; i++) {
        if (sh_task_text(record, field[i], &text, e))
            return -1;
        char *choice = xstrdup(text);
        *choice = (char)tolower((unsigned char)*choice);
        if (sh_task_add(out, xasprintf("%.*s %s", n, premise, *kind == 'c' ? "because" : "therefore"),
                        choice, e))
            return -1;
    }
    return sh_task_index(record, "label", 0, 2, &out->gold, e);
}

const struct sh_task sh_task_copa = {
    .name = "copa", .summary = "which of two sentences is the cause or the effect", .read = read};
