/* SPDX-License-Identifier: Apache-2.0 */
/* See task_fields.h. */
#include "src/engine/task_fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json_kind.h"
#include "src/base/mem.h"

int sh_task_text(const json_t *record, const char *field, const char **out, struct sh_err *e)
{
    const json_t *v = json_object_get(record, field);
    if (!json_is_string(v))
        return sh_fail(e, "field \"%s\": found %s, expected a text", field, sh_json_kind(v));
    *out = json_string_value(v);
    return 0;
}

int sh_task_index(const json_t *record, const char *field, int first, int n, int *out, struct sh_err *e)
{
    const json_t *v = json_object_get(record, field);
    long long number = first - 1;
    if (json_is_integer(v)) {
        number = json_integer_value(v);
    } else if (json_is_string(v) && isdigit((unsigned char)*json_string_value(v))) {
        char *end;
        number = strtoll(json_string_value(v), &end, 10);
        number = *end ? first - 1 : number;
    }
    if (number < first || number >= (long long)first + n) {
        char *found = json_is_integer(v) ? xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(v)) :
                      json_is_string(v) ? xasprintf("\"%.40s\"", json_string_value(v)) : xstrdup(sh_json_kind(v));
        sh_fail(e, "field \"%s\": found %s, expected a whole number from %d to %d", field, found, first, first + n - 1);
        free(found);
        return -1;
    }
    *out = (int)number - first;
    return 0;
}

int sh_task_add(struct sh_task_item *item, char *context, char *choice, struct sh_err *e)
{
    if (item->n == SH_TASK_CHOICES) {
        free(context);
        free(choice);
        return sh_fail(e, "more than %d choices", SH_TASK_CHOICES);
    }
    item->context[item->n] = context;
    item->choice[item->n++] = choice;
    return 0;
}

int sh_task_trimmed(const char *text)
{
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    return (int)n;
}

/* Adds a list of texts. */
static int add_texts(struct sh_task_item *out, const json_t *list, const char *field, const char *context,
                     struct sh_err *e)
{
    const json_t *v;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) < 2)
        return sh_fail(e, "field \"%s\": expected a list of two texts or more", field);
    json_array_foreach(list, i, v) {
        if (!json_is_string(v))
            return sh_fail(e, "field \"%s\": element %zu is no text", field, i);
        if (sh_task_add(out, xstrdup(context), xstrdup(json_string_value(v)), e))
            return -1;
    }
    return 0;
}

int sh_task_is_ready(const json_t *record)
{
    return json_object_get(record, "query") != NULL;
}

int sh_task_ready(const json_t *record, const char *behind, struct sh_task_item *out, struct sh_err *e)
{
    const char *query = NULL;
    if (sh_task_text(record, "query", &query, e))
        return -1;
    char *context = xasprintf("%.*s%s", sh_task_trimmed(query), query, behind);
    int bad = add_texts(out, json_object_get(record, "choices"), "choices", context, e) ||
              sh_task_index(record, "gold", 0, out->n, &out->gold, e);
    free(context);
    return bad ? -1 : 0;
}

int sh_task_labelled(const json_t *record, const char *question, struct sh_task_item *out, struct sh_err *e)
{
    const json_t *choices = json_object_get(record, "choices"), *label = json_object_get(choices, "label"), *v;
    const char *key = NULL;
    size_t i;
    if (add_texts(out, json_object_get(choices, "text"), "choices.text", question, e) ||
        sh_task_text(record, "answerKey", &key, e))
        return -1;
    if (json_array_size(label) != (size_t)out->n)
        return sh_fail(e, "field \"choices.label\": expected a list as long as \"choices.text\"");
    key += strspn(key, " ");
    json_array_foreach(label, i, v)
        if (json_is_string(v) && !strcmp(json_string_value(v), key)) {
            out->gold = (int)i;
            return 0;
        }
    return sh_fail(e, "field \"answerKey\": \"%.20s\" is none of the labels", key);
}
