/* SPDX-License-Identifier: Apache-2.0 */
/* See report.h: what parts write with, and what they read of a run. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/report/report.h"

enum { SENTENCE = 2048 };
#define NARROW_IN 4.2                   /* a figure's width on a page of 400 pixels, drawn larger    */

static void paragraph(struct sh_report *r, const char *before, const char *format, va_list args)
{
    char text[SENTENCE];
    int n = snprintf(text, sizeof text, "%s", before);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    fputs("<p>", r->to);
    sh_html_text(r->to, text);
    fputs("</p>\n", r->to);
}

void sh_report_say(struct sh_report *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    paragraph(r, "", format, args);
    va_end(args);
}

void sh_report_place(struct sh_report *r, const char *id)
{
    fprintf(r->to, "<span id=\"%s\"></span>\n", id);
}

void sh_report_table(struct sh_report *r, const char *title, struct sh_out *o)
{
    struct sh_err ignored;              /* a full disk is seen when the page is closed */
    if (title) {
        fputs("<details><summary>", r->to);
        sh_html_text(r->to, title);
        fputs("</summary>\n", r->to);
    }
    sh_out_write(o, SH_OUT_HTML, r->to, &ignored);
    fputs(title ? "</details>\n" : "", r->to);
    sh_out_free(o);
}

static double width_of(const char *svg)
{
    double w = 0;
    const char *box = strstr(svg, "viewBox=\"0 0 ");
    if (box)
        sscanf(box, "viewBox=\"0 0 %lf", &w);
    return w;
}

int sh_report_figure(struct sh_report *r, const struct sh_figure *f, const char *id, const struct sh_fig_data *d,
                     struct sh_err *e)
{
    char *wide = NULL, *narrow = NULL;
    static const struct sh_gp_look on_phones = {.width_in = NARROW_IN, .scrolls = 1};
    int bad = sh_figure_svg(f, d, NULL, &wide, e) || sh_figure_svg(f, d, &on_phones, &narrow, e);
    id = id ? id : f->name;
    if (bad && e->status == SH_MISUSED) {          /* more lines than it shows, say: the tables have them */
        sh_report_say(r, "Figure %s is left out: %s.", f->name, e->text);
        *e = (struct sh_err){0};
        bad = 0;
    } else if (!bad) {
        char *small = xasprintf("%s-narrow", id), *caption = sh_figure_caption(f, d);
        int has_own = width_of(wide) > 1.05 * width_of(narrow);
        fprintf(r->to, "<figure id=\"fig-%s\"><div class=\"scroll\">\n", id);
        sh_svg_inline(r->to, wide, id, caption, has_own ? "wide" : "both");
        if (has_own)
            sh_svg_inline(r->to, narrow, small, caption, "narrow");
        fputs("</div><figcaption>This figure shows ", r->to);
        sh_html_text(r->to, caption);
        fprintf(r->to, "%s</figcaption></figure>\n", *caption && caption[strlen(caption) - 1] == '.' ? "" : ".");
        free(small);
        free(caption);
    }
    free(wide);
    free(narrow);
    return bad ? -1 : 0;
}

static void code(struct sh_report *r, const char *command)
{
    fputs("<pre><code>shears ", r->to);
    sh_html_text(r->to, command);
    fputs("</code></pre>\n", r->to);
}

void sh_report_missing(struct sh_report *r, const char *command, const char *format, ...)
{
    va_list args;
    r->is_missing = 1;
    fputs("<div class=\"missing\">", r->to);
    va_start(args, format);
    paragraph(r, "Missing: ", format, args);
    va_end(args);
    if (command)
        code(r, command);
    fputs("</div>\n", r->to);
}

/* The end of a word that a shell would take as one. */
static const char *word_end(const char *s)
{
    for (int quoted = 0; *s && (quoted || *s != ' '); s++)
        quoted ^= *s == '\'';
    return s;
}

/* An option and its values in a command as typed, "--text a.txt 'b c.txt'", written to `to`. 0: it is not there. */
static int put_typed(FILE *to, const char *line, const char *option)
{
    size_t n = strlen(option);
    for (const char *at = line, *end; *at; at = end + (*end == ' ')) {
        end = word_end(at);
        if (strncmp(at, option, n) || (at[n] != ' ' && at[n] != '='))
            continue;
        while (at[n] == ' ' && *end == ' ' && end[1] != '-')
            end = word_end(end + 1);
        return fprintf(to, "%.*s", (int)(end - at), at);
    }
    return 0;
}

/* The command that traced the model itself, or an empty one. */
static const char *traced_by(const struct sh_report *r)
{
    for (int i = 0; i < r->n_store; i++)
        for (int k = 0; k < r->store[i].n_run; k++)
            if (!sh_report_is_random(&r->store[i].run[k]))
                return r->store[i].run[k].command;
    return "";
}

/* The words that stand for something the stores may know; 0: none is here. */
static size_t put_known(FILE *to, const struct sh_report *r, const char *at, int has_length)
{
    static const char *const texts[] = {"--jsonl", "--field", "--tokens", "--length", "--count"};
    const char *line = traced_by(r);
    if (!strncmp(at, "STORE", 5)) {
        fputs(r->store[0].path, to);
        return 5;
    }
    if (!strncmp(at, "--model MODEL", 13)) {
        if (r->model || !put_typed(to, line, "--model"))
            fprintf(to, "--model %s", r->model ? r->model : "DIR");
        return 13;
    }
    if (strncmp(at, "--text FILE", 11))
        return 0;
    int any = put_typed(to, line, "--text");
    for (int i = 0; i < (has_length ? 3 : 5); i++) {
        char *words;
        size_t bytes;
        FILE *one = xmemstream(&words, &bytes);
        put_typed(one, line, texts[i]);
        xmemclose(one, &words, &bytes);
        any += fprintf(to, "%s%s", any && *words ? " " : "", words);
        free(words);
    }
    if (!any)
        fputs("--text FILE", to);
    return 11;
}

void sh_report_fill(struct sh_report *r, const char *pattern, const char *missing)
{
    char *command;
    size_t bytes, n;
    int has_length = strstr(pattern, "--length") != NULL;
    FILE *to = xmemstream(&command, &bytes);
    for (; *pattern; pattern += n ? n : 1)
        if (!(n = put_known(to, r, pattern, has_length)))
            fputc(*pattern, to);
    xmemclose(to, &command, &bytes);
    sh_report_missing(r, command, "%s", missing);
    free(command);
}

int sh_report_lacks(struct sh_report *r, const char *command, struct sh_err *e)
{
    if (sh_interrupted() || e->status == SH_ABSENT || e->is_io)
        return -1;
    sh_report_missing(r, command, "%s%s%s", e->text, *e->hint ? "; " : "", e->hint);
    *e = (struct sh_err){0};
    return 0;
}

void sh_report_example(struct sh_report *r, const char *command)
{
    code(r, command);
}

void sh_report_command(struct sh_report *r, const char *format, ...)
{
    char *command;
    size_t bytes;
    va_list args;
    FILE *to = xmemstream(&command, &bytes);
    int at = 0;
    va_start(args, format);
    vfprintf(to, format, args);
    va_end(args);
    xmemclose(to, &command, &bytes);
    code(r, command);
    while (at < r->n_command && strcmp(r->command[at], command))
        at++;
    if (at < r->n_command) {
        free(command);
        return;
    }
    r->command = xreallocarray(r->command, (size_t)r->n_command + 1, sizeof *r->command);
    r->command[r->n_command++] = command;
}

static void take_line(void *to, const char *line)
{
    sh_report_command(to, "%s", line);
}

int sh_report_typed(struct sh_report *r, const char *command, struct sh_err *e)
{
    int bad = 0;
    for (int i = 0; i < r->n_store && !bad; i++) {
        struct sh_store *s = sh_store_open(r->store[i].path, e);
        bad = !s || sh_store_read_typed(s, command, take_line, r, e);
        sh_store_close(s);
    }
    return bad ? -1 : 0;
}

void sh_report_trace(struct sh_report *r, int i_store, const char *db, const char *more, const char *missing)
{
    const struct sh_report_store *s = &r->store[i_store];
    const char *line = s->n_run ? s->run[0].command : "trace --model DIR --text FILE", *at = strstr(line, "--db");
    int has_db = at && (at[4] == ' ' || at[4] == '=');
    char *command = has_db ? xasprintf("%.*s--db %s%s%s", (int)(at - line), line, db, word_end(at + 5), more)
                           : xasprintf("%s --db %s%s", line, db, more);
    sh_report_missing(r, command, "%s", missing);
    free(command);
}

int sh_report_is_random(const struct sh_stored_run *run)
{
    return !strncmp(run->weights, "random", 6);
}

int sh_report_is_causal(const struct sh_report_store *s)
{
    for (int i = 0; i < s->n_run; i++)
        if (s->run[i].orderless)
            return 0;
    return s->n_run > 0;
}
