/* SPDX-License-Identifier: Apache-2.0 */
/* WinoGrande (Sakaguchi et al., 2019): which of two names fits a gap. Scored in part: the end of the
 * sentence, behind either name (Trinh and Le, 2018). */
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/task_fields.h"
#include "src/engine/tasks.h"

static int read_ready(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const json_t *options = json_object_get(record, "context_options"), *v;
    const char *rest;
    size_t i;
    if (!json_is_array(options) || json_array_size(options) < 2)
        return sh_fail(e, "field \"context_options\": expected a list of two texts or more");
    if (sh_task_text(record, "continuation", &rest, e))
        return -1;
    json_array_foreach(options, i, v) {
        if (!json_is_string(v))
            return sh_fail(e, "field \"context_options\": element %zu is no text", i);
        if (sh_task_add(out, xstrdup(json_string_value(v)), xstrdup(rest), e))
            return -1;
    }
    return sh_task_index(record, "gold", 0, out->n, &out->gold, e);
}

static int read(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    static const char *const field[] = {"option1", "option2"};
    const char *sentence, *option, *gap;
    if (json_object_get(record, "context_options"))
        return read_ready(record, out, e);
    if (sh_task_text(record, "sentence", &sentence, e))
        return -1;
    if (!(gap = strchr(sentence, '_')))
        return sh_fail(e, "field \"sentence\": expected a gap (_) in it");
    const char *rest = gap + 1 + strspn(gap + 1, " \t\n\r");
    for (int i = 0; i < 2; i++)
        if (sh_task_text(record, field[i], &option, e) ||
            sh_task_add(out, xasprintf("%.*s%s", (int)(gap - sentence), sentence, option),
                        xasprintf("%.*s", sh_task_trimmed(rest), rest), e))
            return -1;
    return sh_task_index(record, "answer", 1, 2, &out->gold, e);
}

const struct sh_task sh_task_winogrande = {
    .name = "winogrande", .summary = "which of two names fits a gap", .read = read};
