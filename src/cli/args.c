/* SPDX-License-Identifier: Apache-2.0 */
/* See args.h: parsing and --help. */
#include "src/cli/args.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/mem.h"
#include "src/base/read_number.h"
#include "src/base/shell.h"

#define F(name) offsetof(struct sh_common, name)
const struct sh_opt sh_common_opts[] = {
    SH_FLAG("json", F(json), "print the result as one JSON object"),
    SH_FLAG("csv", F(csv), "print the result's table as CSV"),
    SH_TEXT("columns", F(columns), "KEY,...", "columns to print in tables and CSV, in this order, by their names in\n"
                                              "--json or their headings"),
    {"quiet", SH_OPT_FLAG, F(quiet), NULL, "print no progress or remarks", 0, 0, 'q'},
    {"verbose", SH_OPT_FLAG, F(verbose), NULL, "print more about what is being done", 0, 0, 'v'},
    SH_INT("threads", F(threads), "N", 1, 4096, "CPU threads (default: all)"),
    SH_TEXT("backend", F(backend), "NAME", "auto, cpu or cuda (default: auto)"),
    {"device", SH_OPT_DEVICES, F(device), "N,...",
     "devices that share the work: numbers from 0, or all (default: 0)", 0, 0, 0},
    SH_INT("seed", F(seed), "N", 0, 9e15, "random seed (default: 0)"),
    {"help", SH_OPT_FLAG, F(help), NULL, "print this help", 0, 0, 'h'},
    {0}};

void sh_list_free(struct sh_list *l)
{
    free(l->at);
    *l = (struct sh_list){0};
}

void sh_args_free(const struct sh_cmd *c, void *args, struct sh_list *positional)
{
    for (const struct sh_opt *o = c->opts; o && o->name; o++)
        if (o->kind == SH_OPT_LIST)
            sh_list_free((void *)((char *)args + o->field));
    free(args);
    sh_list_free(positional);
}

static void push(struct sh_list *l, const char *value)
{
    l->at = xreallocarray(l->at, (size_t)l->n + 1, sizeof *l->at);
    l->at[l->n++] = value;
}

enum sh_out_format sh_common_format(const struct sh_common *c)
{
    return c->json ? SH_OUT_JSON : c->csv ? SH_OUT_CSV : SH_OUT_TEXT;
}

int sh_common_write(const struct sh_common *c, struct sh_out *o, int bad, struct sh_err *e)
{
    if (c->result && !bad) {
        *c->result = o;
        return 0;
    }
    sh_out_columns(o, c->columns);
    bad = bad || sh_out_write(o, sh_common_format(c), stdout, e);
    sh_out_free(o);
    return bad ? -1 : 0;
}

static const struct sh_opt *find(const struct sh_opt *table, const char *name, size_t length, char letter)
{
    for (; table && table->name; table++)
        if (letter ? table->letter == letter : strlen(table->name) == length && !strncmp(table->name, name, length))
            return table;
    return NULL;
}

static int devices(const char *what, const char *text, struct sh_ordinals *to, struct sh_err *e)
{
    struct sh_ordinals found = {.all = !strcmp(text, "all")};
    char *copy = xstrdup(text), *at = found.all ? NULL : copy, *item;
    int bad = 0;
    while (!bad && (item = strsep(&at, ","))) {
        long long ordinal = 0;
        bad = sh_read_whole(what, item, 0, SH_MAX_ORDINAL, &ordinal, e);
        for (int i = 0; i < found.n && !bad; i++)
            if (found.at[i] == (int)ordinal)
                bad = sh_misused(e, "%s: %s names device %lld twice", what, text, ordinal);
        if (!bad)
            found.at[found.n++] = (int)ordinal;
    }
    free(copy);
    if (!bad)
        *to = found;
    return bad;
}

static int store(const struct sh_opt *o, void *into, const char *value, struct sh_err *e)
{
    char what[64];
    void *field = (char *)into + o->field;
    snprintf(what, sizeof what, "--%s", o->name);
    switch (o->kind) {
    case SH_OPT_FLAG: *(int *)field = 1; return 0;
    case SH_OPT_INT: return sh_read_whole(what, value, o->min, o->max, field, e);
    case SH_OPT_REAL: return sh_read_real(what, value, o->min, o->max, field, e);
    case SH_OPT_SECONDS: return sh_read_seconds(what, value, o->min, o->max, field, e);
    case SH_OPT_FORMAT: {
        const char *spelled = sh_format_spelled(value, strlen(value));
        *(const char **)field = spelled ? spelled : value;
        return 0;
    }
    case SH_OPT_TEXT: *(const char **)field = value; return 0;
    case SH_OPT_BYTES: return sh_read_bytes(what, value, o->min, o->max, field, e);
    case SH_OPT_LIST: push(field, value); return 0;
    case SH_OPT_DEVICES: return devices(what, value, field, e);
    }
    return 0;
}

static int looks_like_option(const char *s)
{
    return s[0] == '-' && s[1];
}

static int unknown_option(const struct sh_cmd *c, const char *text, size_t length, struct sh_err *e)
{
    const struct sh_opt *tables[] = {c->opts, sh_common_opts};
    char *all, rest[80];
    size_t bytes;
    FILE *to = xmemstream(&all, &bytes);
    for (int i = 0; i < 2; i++)
        for (const struct sh_opt *o = tables[i]; o && o->name; o++)
            fprintf(to, "--%s\n", o->name);
    xmemclose(to, &all, &bytes);
    sh_misused(e, "%s: unknown option %.*s", c->name, (int)(length < 80 ? length : 80), text);
    snprintf(rest, sizeof rest, "shears %s --help lists the options", c->name);
    sh_hint_near(e, text, length, all, rest);
    free(all);
    return -1;
}

/* argv[i] is an option: stores its value or values. Returns the index after them, or -1. */
static int option(const struct sh_cmd *c, int argc, char **argv, int i, struct sh_common *common, void *args,
                  struct sh_err *e)
{
    const char *text = argv[i], *name = text + (text[1] == '-' ? 2 : 1), *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    char letter = (char)(text[1] == '-' ? 0 : length == 1 ? name[0] : '?');
    void *into = args;
    const struct sh_opt *o = find(c->opts, name, length, letter);
    if (!o) {
        o = find(sh_common_opts, name, length, letter);
        into = common;
    }
    if (!o)
        return unknown_option(c, text, length + (size_t)(name - text), e);
    if (o->kind == SH_OPT_FLAG) {
        if (equals)
            return sh_misused(e, "--%s takes no value", o->name);
        return store(o, into, NULL, e) ? -1 : i + 1;
    }
    const char *value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
    if (!value)
        return sh_misused(e, "--%s requires a value: --%s %s", o->name, o->name, o->arg);
    if (!*value && (!strncmp(o->arg, "FILE", 4) || !strncmp(o->arg, "DIR", 3)))
        return sh_misused(e, "--%s: found an empty name, expected %s", o->name, o->arg);
    if (store(o, into, value, e))
        return -1;
    while (o->kind == SH_OPT_LIST && !equals && i + 1 < argc && !looks_like_option(argv[i + 1]))
        if (store(o, into, argv[++i], e))
            return -1;
    return i + 1;
}

int sh_args_parse(const struct sh_cmd *c, int argc, char **argv, struct sh_common *common, void *args,
                  struct sh_list *positional, struct sh_err *e)
{
    int only_values = 0;
    for (int i = 0; i < argc;) {
        if (!only_values && !strcmp(argv[i], "--")) {
            only_values = 1;
            i++;
        } else if (only_values || !looks_like_option(argv[i])) {
            push(positional, argv[i++]);
        } else if ((i = option(c, argc, argv, i, common, args, e)) < 0) {
            return -1;
        }
    }
    if (common->json && common->csv)
        return sh_misused(e, "--json and --csv cannot be combined");
    return 0;
}

int sh_args_need(const char *command, const struct sh_need *needs, struct sh_err *e)
{
    char list[400] = "";
    int missing = 0, named = 0;
    for (const struct sh_need *n = needs; n->option; n++)
        missing += !n->is_given;
    for (const struct sh_need *n = needs; n->option; n++)
        if (!n->is_given) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, "%s%s", !named ? "" : named + 1 < missing ? ", " : " and ",
                     n->option);
            named++;
        }
    return missing ? sh_misused(e, "%s requires %s", command, list) : 0;
}

int sh_args_none(const char *command, const struct sh_list *positional, struct sh_err *e)
{
    return positional->n ? sh_misused(e, "%s: unexpected argument \"%.80s\"", command, positional->at[0]) : 0;
}

/* ---- as typed ---- */

char *sh_args_typed(const char *command, int argc, char *const *argv)
{
    char *line = xstrdup(command);
    for (int i = 0; i < argc; i++) {
        char *word = sh_shell_word(argv[i]), *longer = xasprintf("%s %s", line, word);
        free(word);
        free(line);
        line = longer;
    }
    return line;
}

/* ---- --help ---- */

static void help_row(FILE *to, const struct sh_opt *o)
{
    char left[80], letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    fprintf(to, "  %-26s", left);
    if (strlen(left) > 25)
        fprintf(to, "\n  %26s", "");
    for (const char *s = o->help; *s; s++) {
        fputc(*s, to);
        if (*s == '\n')
            fprintf(to, "  %26s", "");
    }
    fputc('\n', to);
}

void sh_args_help(const struct sh_cmd *c, FILE *to)
{
    fprintf(to, "usage: shears %s %s\n\n%s\n", c->name, c->usage, c->about);
    if (c->list)
        c->list(to);
    if (c->opts && c->opts->name)
        fprintf(to, "\noptions:\n");
    for (const struct sh_opt *o = c->opts; o && o->name; o++)
        help_row(to, o);
    fprintf(to, "\ncommon options:\n");
    for (const struct sh_opt *o = sh_common_opts; o->name; o++)
        help_row(to, o);
    fprintf(to, "\nexit status: 0 success, 1 failure, 2 usage error, 3 an optional component is missing\n");
}
