/* SPDX-License-Identifier: Apache-2.0 */
/* See commands.h. A command's `about` is plain text: paragraphs, and indented lines that are set verbatim; the
 * indented commands at its end are the examples. */
#include "src/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

/* Escapes what roff would interpret: a dot or quote at the start of a line, backslashes, and hyphens, which
 * must stay as typed. */
static void text(FILE *to, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int begins = !i || s[i - 1] == '\n';
        if (begins && (s[i] == '.' || s[i] == '\''))
            fputs("\\&", to);
        if (s[i] == '\\')
            fputs("\\e", to);
        else if (s[i] == '-')
            fputs("\\-", to);
        else
            fputc(s[i], to);
    }
}

static void line(FILE *to, const char *s, size_t n)
{
    text(to, s, n);
    fputc('\n', to);
}

static int is_example(const char *s)
{
    return !strncmp(s, "  shears ", 9);
}

/* Bytes of the block at s: lines that are all indented, or all not; an empty line ends it. */
static size_t block(const char *s)
{
    int indented = *s == ' ';
    const char *at = s;
    while (*at && *at != '\n' && (*at == ' ') == indented) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return (size_t)(at - s);
}

/* Prints the blocks of one kind: prose and tables, or examples. */
static void about(FILE *to, const char *s, int examples)
{
    int is_first = 1;
    while (*s) {
        if (*s == '\n') {
            s++;
            continue;
        }
        size_t n = block(s), shown = n - (s[n - 1] == '\n');
        if (is_example(s) == examples) {
            fputs(is_first ? "" : ".PP\n", to);
            fputs(*s == ' ' ? ".nf\n" : "", to);
            line(to, s, shown);
            fputs(*s == ' ' ? ".fi\n" : "", to);
            is_first = 0;
        }
        s += n;
    }
}

static void list(FILE *to, const struct sh_cmd *c)
{
    char *text;
    size_t bytes;
    FILE *lines = xmemstream(&text, &bytes);
    c->list(lines);
    xmemclose(lines, &text, &bytes);
    fputs(".PP\n", to);
    about(to, text, 0);
    free(text);
}

static void options(FILE *to, const struct sh_opt *o)
{
    for (; o && o->name; o++) {
        fputs(".TP\n", to);
        if (o->letter)
            fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
        fputs("\\fB\\-\\-", to);
        text(to, o->name, strlen(o->name));
        fputs("\\fR", to);
        if (o->arg) {
            fputs(" \\fI", to);
            text(to, o->arg, strlen(o->arg));
            fputs("\\fR", to);
        }
        fputc('\n', to);
        line(to, o->help, strlen(o->help));
    }
}

static void begin(FILE *to, const char *title, const char *name, const char *summary)
{
    fprintf(to, ".TH \"%s\" 1 \"\" \"shears %s\" \"shears\"\n.SH NAME\n", title, PACKAGE_VERSION);
    text(to, name, strlen(name));
    fputs(" \\- ", to);
    line(to, summary, strlen(summary));
}

static void end(FILE *to)
{
    fputs(".SH EXIT STATUS\n0 success, 1 failure, 2 usage error, 3 an optional component is missing\n", to);
}

void sh_man_page(const struct sh_cmd *c, FILE *to)
{
    char title[64], name[64];
    snprintf(title, sizeof title, "SHEARS-%s", c->name);
    for (char *s = title; *s; s++)
        *s = (char)(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
    snprintf(name, sizeof name, "shears-%s", c->name);
    begin(to, title, name, c->summary);
    fprintf(to, ".SH SYNOPSIS\n\\fBshears %s\\fR ", c->name);
    line(to, c->usage, strlen(c->usage));
    fputs(".SH DESCRIPTION\n", to);
    about(to, c->about, 0);
    if (c->list)
        list(to, c);
    if (c->opts && c->opts->name)
        fputs(".SH OPTIONS\n", to);
    options(to, c->opts);
    fputs(".SH COMMON OPTIONS\n", to);
    options(to, sh_common_opts);
    if (is_example(c->about) || strstr(c->about, "\n  shears ")) {
        fputs(".SH EXAMPLES\n", to);
        about(to, c->about, 1);
    }
    end(to);
    fputs(".SH SEE ALSO\n.BR shears (1)\n", to);
}

void sh_man_overview(FILE *to)
{
    begin(to, "SHEARS", "shears", "traces attention in transformers and plans KV caches");
    fputs(".SH SYNOPSIS\n\\fBshears\\fR \\fICOMMAND\\fR [options]\n.SH DESCRIPTION\n"
          "Records a model's attention over texts in one SQLite file, replays eviction policies over it, runs them in\n"
          "a KV cache of fixed size, and computes what that saves on a GPU. Results go to standard output, progress\n"
          "to standard error.\n.SH COMMANDS\n", to);
    for (int i = 0; sh_commands[i]; i++) {
        fprintf(to, ".TP\n.BR shears\\-%s (1)\n", sh_commands[i]->name);
        line(to, sh_commands[i]->summary, strlen(sh_commands[i]->summary));
    }
    end(to);
}
