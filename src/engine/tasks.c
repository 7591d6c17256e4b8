/* SPDX-License-Identifier: Apache-2.0 */
/* The few-shot tasks: how each one reads a record of its data set. Texts hold no NUL: the JSON reader refuses it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/err.h"
#include "src/base/json_kind.h"
#include "src/base/mem.h"
#include "src/engine/task.h"
#include "src/tokenizer/tok_text.h"

/* ---- the fields of a record; -1: the field is not what it must be, and e names it ---- */

static int get_text(const json_t *record, const char *field, const char **out, struct sh_err *e)
{
    const json_t *v = json_object_get(record, field);
    if (!json_is_string(v))
        return sh_fail(e, "field \"%s\": found %s, expected a string", field, sh_json_kind(v));
    *out = json_string_value(v);
    return 0;
}

/* A whole number, possibly as text, in [first, first + n); *out counts from 0. */
static int get_index(const json_t *record, const char *field, int first, int n, int *out, struct sh_err *e)
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

static int check_texts(const json_t *list, const char *field, struct sh_err *e)
{
    const json_t *v;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) < 2)
        return sh_fail(e, "field \"%s\": expected a list of at least two strings", field);
    json_array_foreach(list, i, v)
        if (!json_is_string(v))
            return sh_fail(e, "field \"%s\": element %zu: found %s, expected a string", field, i, sh_json_kind(v));
    return 0;
}

/* Adds a choice, which the item then owns. */
static int add(struct sh_task_item *item, char *context, char *choice, struct sh_err *e)
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

static int add_texts(struct sh_task_item *out, const json_t *list, const char *field, const char *context,
                     struct sh_err *e)
{
    const json_t *v;
    size_t i;
    if (check_texts(list, field, e))
        return -1;
    json_array_foreach(list, i, v)
        if (add(out, xstrdup(context), xstrdup(json_string_value(v)), e))
            return -1;
    return 0;
}

int sh_task_trimmed(const char *text)
{
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    return (int)n;
}

/* choices {text, label} with answerKey among the labels. */
static int add_labelled(const json_t *record, const char *question, struct sh_task_item *out, struct sh_err *e)
{
    const json_t *choices = json_object_get(record, "choices"), *label = json_object_get(choices, "label"), *v;
    const char *key = NULL;
    size_t i;
    if (add_texts(out, json_object_get(choices, "text"), "choices.text", question, e) ||
        get_text(record, "answerKey", &key, e))
        return -1;
    if (json_array_size(label) != (size_t)out->n)
        return sh_fail(e, "field \"choices.label\": expected a list as long as \"choices.text\"");
    key += strspn(key, " ");
    json_array_foreach(label, i, v)
        if (json_is_string(v) && !strcmp(json_string_value(v), key)) {
            out->gold = (int)i;
            return 0;
        }
    return sh_fail(e, "field \"answerKey\": \"%.20s\" is not one of the labels", key);
}

/* ---- ARC (Clark et al., 2018), the easy part; OpenBookQA (Mihaylov et al., 2018) ---- */

static int read_arc_easy(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *question;
    if (get_text(record, "question", &question, e))
        return -1;
    char *context = xasprintf("Question: %s\nAnswer:", question);
    int bad = add_labelled(record, context, out, e);
    free(context);
    return bad;
}

static int read_openbookqa(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *question;
    return get_text(record, "question_stem", &question, e) ? -1 : add_labelled(record, question, out, e);
}

/* ---- COPA (Roemmele et al., 2011) ---- */

static int read_copa(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    static const char *const field[] = {"choice1", "choice2"};
    const char *premise, *kind, *text;
    if (get_text(record, "premise", &premise, e) || get_text(record, "question", &kind, e))
        return -1;
    if (strcmp(kind, "cause") && strcmp(kind, "effect"))
        return sh_fail(e, "field \"question\": \"%.20s\", expected cause or effect", kind);
    premise += strspn(premise, " \t\n\r");
    int n = sh_task_trimmed(premise);
    n = n ? (int)sh_utf8_before(premise, (size_t)n) : 0;    /* without its full stop */
    for (int i = 0; i < 2; i++) {
        if (get_text(record, field[i], &text, e))
            return -1;
        char *choice = xstrdup(text);
        *choice = (char)tolower((unsigned char)*choice);
        if (add(out, xasprintf("%.*s %s", n, premise, *kind == 'c' ? "because" : "therefore"), choice, e))
            return -1;
    }
    return get_index(record, "label", 0, 2, &out->gold, e);
}

/* ---- HellaSwag (Zellers et al., 2019) ---- */

/* The first letter in title case, the others in lower case, as Python's capitalize does. */
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

/* Replaces `from` by `to`, which is not longer, in place and once from left to right. */
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

/* As the harness does: WikiHow's texts contain marks in brackets. */
static char *clean(const char *text)
{
    text += strspn(text, " \t\n\r\v\f");
    char *out = xasprintf("%.*s", sh_task_trimmed(text), text), *to = out;
    replace(out, " [title]", ". ");
    for (const char *at = out; *at;) {
        size_t n = strcspn(at, "]\n");
        if (*at == '[' && at[n] == ']')
            at += n + 1;
        else
            *to++ = *at++;
    }
    *to = '\0';
    replace(out, "  ", " ");
    return out;
}

static int read_hellaswag(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const json_t *endings = json_object_get(record, "endings"), *v;
    const char *label, *a, *b;
    size_t i;
    int bad = 0;
    if (check_texts(endings, "endings", e) || get_text(record, "activity_label", &label, e) ||
        get_text(record, "ctx_a", &a, e) || get_text(record, "ctx_b", &b, e))
        return -1;
    char *capital = capitalise(b), *whole = xasprintf("%s: %s %s", label, a, capital), *context = clean(whole);
    free(capital);
    free(whole);
    json_array_foreach(endings, i, v)
        bad = bad || add(out, xstrdup(context), clean(json_string_value(v)), e);
    free(context);
    return bad ? -1 : get_index(record, "label", 0, out->n, &out->gold, e);
}

/* ---- LAMBADA (Paperno et al., 2016), as OpenAI cut it ---- */

static int read_lambada(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *text, *word;
    if (json_object_get(record, "continuation")) {
        if (get_text(record, "context", &text, e) || get_text(record, "continuation", &word, e))
            return -1;
        return add(out, xstrdup(text), xstrdup(word), e);
    }
    if (get_text(record, "text", &text, e))
        return -1;
    if (!(word = strrchr(text, ' ')))
        return sh_fail(e, "field \"text\": expected more than one word");
    return add(out, xasprintf("%.*s", (int)(word - text), text), xstrdup(word + 1), e);
}

/* ---- MathQA (Amini et al., 2019) ---- */

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
        if (add(out, xasprintf("Question: %s\nAnswer:", problem), xasprintf("%.*s", n, at + 4), e))
            return -1;
        at = end;
    }
    return 0;
}

static int read_mathqa(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *problem, *options, *correct;
    if (get_text(record, "Problem", &problem, e) || get_text(record, "options", &options, e) ||
        get_text(record, "correct", &correct, e) || read_options(options, problem, out, e))
        return -1;
    out->gold = *correct - 'a';
    if (strlen(correct) != 1 || out->gold < 0 || out->gold >= out->n)
        return sh_fail(e, "field \"correct\": \"%.20s\" is not one of the %d options", correct, out->n);
    return 0;
}

/* ---- PIQA (Bisk et al., 2020) ---- */

static int read_piqa(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    static const char *const field[] = {"sol1", "sol2"};
    const char *goal, *text;
    if (get_text(record, "goal", &goal, e))
        return -1;
    for (int i = 0; i < 2; i++)
        if (get_text(record, field[i], &text, e) ||
            add(out, xasprintf("Question: %s\nAnswer:", goal), xstrdup(text), e))
            return -1;
    return get_index(record, "label", 0, 2, &out->gold, e);
}

/* ---- WinoGrande (Sakaguchi et al., 2019): the end of the sentence is scored after either name (Trinh and Le) ---- */

static int read_context_options(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const json_t *options = json_object_get(record, "context_options"), *v;
    const char *rest;
    size_t i;
    if (check_texts(options, "context_options", e) || get_text(record, "continuation", &rest, e))
        return -1;
    json_array_foreach(options, i, v)
        if (add(out, xstrdup(json_string_value(v)), xstrdup(rest), e))
            return -1;
    return get_index(record, "gold", 0, out->n, &out->gold, e);
}

static int read_winogrande(const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    static const char *const field[] = {"option1", "option2"};
    const char *sentence, *option, *gap;
    if (json_object_get(record, "context_options"))
        return read_context_options(record, out, e);
    if (get_text(record, "sentence", &sentence, e))
        return -1;
    if (!(gap = strchr(sentence, '_')))
        return sh_fail(e, "field \"sentence\": expected a blank (_) in it");
    const char *rest = gap + 1 + strspn(gap + 1, " \t\n\r");
    for (int i = 0; i < 2; i++)
        if (get_text(record, field[i], &option, e) ||
            add(out, xasprintf("%.*s%s", (int)(gap - sentence), sentence, option),
                        xasprintf("%.*s", sh_task_trimmed(rest), rest), e))
            return -1;
    return get_index(record, "answer", 1, 2, &out->gold, e);
}

/* ---- the list ---- */

static const struct sh_task tasks[] = {
    {"hellaswag", "how a scene goes on, four endings", SH_TASK_NORM, "", read_hellaswag},
    {"piqa", "which of two solutions reaches a goal", SH_TASK_NORM, "\nAnswer:", read_piqa},
    {"winogrande", "which of two names fits a gap", 0, NULL, read_winogrande},
    {"mathqa", "word problems, five answers", SH_TASK_NORM, "", read_mathqa},
    {"openbookqa", "elementary science, four answers", SH_TASK_NORM, "", read_openbookqa},
    {"arc_easy", "school science, mostly four answers", SH_TASK_NORM, "\nAnswer:", read_arc_easy},
    {"copa", "which of two sentences is the cause or the effect", 0, "", read_copa},
    {"lambada", "the last word of a passage", SH_TASK_GREEDY, NULL, read_lambada},
};

const struct sh_task *sh_task_find(const char *name, struct sh_err *e)
{
    char names[256];
    int n = 0;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (!strcmp(tasks[i].name, name))
            return &tasks[i];
        n += snprintf(names + n, sizeof names - (size_t)n, "%s\n", tasks[i].name);
    }
    sh_misused(e, "unknown task \"%.80s\"", name);
    sh_hint_near(e, name, strlen(name), names, "shears eval --help lists the tasks");
    return NULL;
}

int sh_task_read(const struct sh_task *t, const json_t *record, struct sh_task_item *out, struct sh_err *e)
{
    const char *query;
    if (!t->after_query || !json_object_get(record, "query"))
        return t->read(record, out, e);
    if (get_text(record, "query", &query, e))
        return -1;
    char *context = xasprintf("%.*s%s", sh_task_trimmed(query), query, t->after_query);
    int bad = add_texts(out, json_object_get(record, "choices"), "choices", context, e) ||
              get_index(record, "gold", 0, out->n, &out->gold, e);
    free(context);
    return bad ? -1 : 0;
}
