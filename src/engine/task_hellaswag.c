/* SPDX-License-Identifier: Apache-2.0 */
/* HellaSwag (Zellers et al., 2019): how a described scene goes on, four endings. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/mem.h"
#include "src/engine/task_fields.h"
#include "src/engine/tasks.h"
#include "src/tokenizer/tok_text.h"

/* The first letter large, the others small, as Python's capitalize. */
static char *capitalise(const char *text)
{
    size_t bytes = strlen(text), n = 0;
    char *out = xmalloc(4 * bytes + 1);
    for (size_t at = 0; at < bytes;) {
        uint32_t code;
        int is_first = at == 0;
        at += (size_t)sh_utf8_get(text + at, &code);
        n += (size_t)sh_utf8_put(out + n, (uint32_t)(is_first ? utf8proc_totitle((utf8proc_int32_t)code)
                                                              : utf8proc_tolower((utf8proc_int32_t)code)));
    }
    out[n] = '\0';
    return out;
}

/* In place, the result being no longer: `from` becomes `to` wherever it stands, once from left to right. */
static void replace(char *text, const char *from, const char *to)
{
    size_t n_from = strlen(from), n_to = strlen(to);
    char *out = text;
    for (const char *at = text; *at;)
        if (!strncmp(at, from, n_from)) {
            memcpy(out, to, n_to);
            out += n_to;
            at += n_from;
        } else {
            *out++ = *at++;
        }
    *out = '\0';
}

/* What is in brackets on one line goes. */
static void cut_brackets(char *text)
{
    char *out = text;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "]\n");
        if (*at == '[' && at[n] == ']')
            at += n + 1;
        else
            *out++ = *at++;
    }
    *out = '\0';
}

/* The harness' own cleaning: WikiHow's texts hold marks in brackets. */
static char *clean(const char *text)
{
    text += strspn(text, " \t\n\r\v\f");
    char *out = xasprintf("%.*s", sh_task_trimmed(text), text);
    replace(out, " [title]", ". ");
    cut_brackets(out);
    replace(out, "  ", " ");
    return out;
}

static char *make_context(const json_t *record, struct sh_err *e)
{
    const char *label, *a, *b;
    if (sh_task_text(record, "activity_label", &label, e) || sh_task_text(record, "ctx_a", &a, e) ||
        sh_task_text(record, "ctx_b", &b, e))
        return NULL;
    char *capital = capitalise(b), *whole = xasprintf("%s: %s %s", label, a, capital), *out = clean(whole);
    free(capital);
    free(whole);
    return out;
}

static int read(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const json_t *endings = json_object_get(record, "endings"), *v;
    size_t i;
    int bad = 0;
    if (sh_task_is_ready(record))
        return sh_task_ready(record, "", out, e);
    if (!json_is_array(endings) || json_array_size(endings) < 2)
        return sh_fail(e, "field \"endings\": expected a list of two texts or more");
    char *context = make_context(record, e);
    json_array_foreach(endings, i, v) {
        if (!context || bad)
            break;
        bad = json_is_string(v)
                  ? sh_task_add(out, xstrdup(context), clean(json_string_value(v)), e)
                  : sh_fail(e, "field \"endings\": element %zu is no text", i);
    }
    bad = bad || !context;
    free(context);
    return bad ? -1 : sh_task_index(record, "label", 0, out->n, &out->gold, e);
}

const struct sh_task sh_task_hellaswag = {
    .name = "hellaswag", .summary = "how a scene goes on, four endings", .flags = SH_TASK_NORM, .read = read};
