/* SPDX-License-Identifier: Apache-2.0 */
/* See report.h: the page and the order of its parts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/report/answer.h"
#include "src/report/figures/figure_data.h"
#include "src/report/report_model.h"
#include "src/report/report_results.h"
#include "src/report/report_style.h"

#define DECLARE(name) extern const struct sh_report_part sh_report_##name;
SH_REPORT_PARTS(DECLARE)

#define ENTRY(name) &sh_report_##name,
static const struct sh_report_part *const parts[] = {SH_REPORT_PARTS(ENTRY)};
enum { N_PART = sizeof parts / sizeof *parts };

enum state { LEFT_OUT, WHOLE, INCOMPLETE };

int sh_report_open(struct sh_report *r, const char *const *db, int n, struct sh_err *e)
{
    int bad = 0;
    for (int i = 0; i < n && !bad; i++) {
        struct sh_report_store *at = &r->store[r->n_store];
        at->path = db[r->n_store++];
        struct sh_store *s = sh_store_open(at->path, e);
        bad = !s || sh_store_runs(s, &at->run, &at->n_run, e);
        sh_store_close(s);
    }
    return bad ? -1 : 0;
}

void sh_report_close(struct sh_report *r)
{
    for (int i = 0; i < r->n_store; i++)
        if (r->store[i].run)
            sh_stored_runs_free(r->store[i].run, r->store[i].n_run);
    for (int i = 0; i < r->n_command; i++)
        free(r->command[i]);
    free(r->command);
}

/* Does a store before i have the model of that name, with random weights or with trained ones (random 0)? */
static int is_named(const struct sh_report *r, int i, const char *model, int random)
{
    for (int k = 0; k < i; k++)
        if (r->store[k].n_run && !strcmp(r->store[k].run[0].model, model) &&
            sh_report_is_random(&r->store[k].run[0]) == random)
            return 1;
    return 0;
}

/* "opt-6.7b and random weights; model (facebook/opt-13b)": every model once. */
static void title(const struct sh_report *r)
{
    int said = 0;
    for (int i = 0; i < r->n_store; i++) {
        const struct sh_stored_run *run = r->store[i].run;
        if (!r->store[i].n_run)
            continue;
        int random = sh_report_is_random(run), twins = is_named(r, r->n_store, run->model, !random);
        if (is_named(r, i, run->model, random) || (random && twins))
            continue;
        char *label = sh_figure_label(run->model, run->weights), *known = sh_report_known_as(r, run);
        fputs(said++ ? "; " : "", r->to);
        sh_html_text(r->to, label);
        sh_html_text(r->to, known);
        fputs(twins ? ", and the same with random weights" : "", r->to);
        free(label);
        free(known);
    }
    if (!said)
        sh_html_text(r->to, r->store[0].path);
}

/* Writes a part of the page without those links into the page whose place `all` lacks: a figure of too many lines is
 * left out, and so is a part that has nothing to say. */
static void write_linked(FILE *to, const char *text, const char *all)
{
    static const char link[] = "<a href=\"#";
    for (const char *at; (at = strstr(text, link)); ) {
        const char *name = at + strlen(link), *rest = strchr(name, '>') + 1, *end = strstr(rest, "</a>");
        char *place = xasprintf(" id=\"%.*s\"", (int)strcspn(name, "\""), name);
        int is_there = strstr(all, place) != NULL;
        fprintf(to, "%.*s", (int)((is_there ? end + 4 : at) - text), text);
        if (!is_there)
            fprintf(to, "%.*s", (int)(end - rest), rest);
        text = end + 4;
        free(place);
    }
    fputs(text, to);
}

/* answer: what comes before everything else. */
static void begin(const struct sh_report *r, const enum state state[N_PART], const char *answer, const char *body)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>shears: ", r->to);
    title(r);
    fprintf(r->to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<h1>", sh_report_style);
    title(r);
    fputs("</h1>\n</header>\n<main>\n", r->to);
    write_linked(r->to, answer, body);
    fputs("<p class=\"soft\">How attention persists, what a KV cache of fixed size keeps of it, and what "
          "that costs and saves. Written by shears " PACKAGE_VERSION "; the last part has the commands that "
          "reproduce this page.</p>\n<nav aria-label=\"parts\"><ul>\n", r->to);
    for (int i = 0; i < N_PART; i++)
        if (state[i] != LEFT_OUT)
            fprintf(r->to, "<li%s><a href=\"#%s\">%s</a></li>\n", state[i] == INCOMPLETE ? " class=\"lacks\"" : "",
                    parts[i]->name, parts[i]->title);
    fputs("<li><a href=\"#commands\">All commands</a></li>\n</ul></nav>\n", r->to);
}

static void end(const struct sh_report *r, const char *typed)
{
    fputs("<section id=\"commands\"><h2>All commands</h2>\n<p>Run in this order, these commands reproduce this "
          "page.</p>\n"
          "<pre><code>", r->to);
    for (int i = 0; i <= r->n_command; i++) {
        fputs("shears ", r->to);
        sh_html_text(r->to, i < r->n_command ? r->command[i] : typed);
        fputc('\n', r->to);
    }
    fprintf(r->to, "</code></pre>\n</section>\n</main>\n<script>\n%s</script>\n</body>\n</html>\n", sh_report_script);
}

/* Without causal attention, the parts about caches could only say that they do not apply. */
static int has_causal(const struct sh_report *r)
{
    int n_run = 0;
    for (int i = 0; i < r->n_store; i++)
        for (int k = 0; k < r->store[i].n_run; k++, n_run++)
            if (!r->store[i].run[k].orderless)
                return 1;
    return !n_run;
}

static int write_part(struct sh_report *r, const struct sh_report_part *part, enum state *state, struct sh_err *e)
{
    FILE *body = r->to;
    char *text = NULL;
    size_t bytes;
    r->is_missing = 0;
    r->to = xmemstream(&text, &bytes);
    int bad = part->write ? part->write(r, e) : sh_report_results_part(r, part, e);
    xmemclose(r->to, &text, &bytes);
    r->to = body;
    if (bytes) {
        *state = r->is_missing ? INCOMPLETE : WHOLE;
        fprintf(body, "<section id=\"%s\"><h2>%s</h2>\n", part->name, part->title);
        fwrite(text, 1, bytes, body);
        fputs("</section>\n", body);
    }
    free(text);
    return bad;
}

/* Parts [from, to) as text, for free(). NULL: failed. */
static char *write_parts(struct sh_report *r, int from, int to, struct sh_progress *progress,
                         enum state state[N_PART], struct sh_err *e)
{
    char *text = NULL;
    size_t bytes;
    int bad = 0, caches = has_causal(r);
    r->to = xmemstream(&text, &bytes);
    for (int i = from; i < to && !bad; i++) {
        if (caches || !strcmp(parts[i]->name, "traced") || !strcmp(parts[i]->name, "orderless"))
            bad = write_part(r, parts[i], &state[i], e);
        sh_progress_at(progress, i + 1, parts[i]->name);
    }
    xmemclose(r->to, &text, &bytes);
    if (!bad)
        return text;
    free(text);
    return NULL;
}

/* The answer decides for which requests and which target the other parts are, unless these were asked for. */
static void settle(struct sh_report *r, struct sh_answer *a)
{
    int found = sh_answer_read(a, r, &r->no_answer);
    if (found >= 0)
        r->no_answer = (struct sh_err){0};
    if (found <= 0)
        return;
    r->answer = a;
    r->length = r->length ? r->length : a->length;
    r->target = r->target > 0 || isnan(a->target) ? r->target : a->target;
}

int sh_report_page(struct sh_report *r, const char *typed, FILE *to, struct sh_err *e)
{
    enum state state[N_PART] = {LEFT_OUT};
    struct sh_progress progress;
    struct sh_answer found;
    settle(r, &found);
    sh_progress_begin(&progress, "writing", "parts", N_PART, r->quiet);
    progress.uneven = 1;
    char *answer = write_parts(r, 0, 1, &progress, state, e),
         *body = answer ? write_parts(r, 1, N_PART, &progress, state, e) : NULL;
    sh_progress_end(&progress);
    r->to = to;
    if (body) {
        begin(r, state, answer, body);
        write_linked(to, body, body);
        end(r, typed);
    }
    r->answer = NULL;
    sh_answer_clear(&found);
    free(answer);
    free(body);
    return body ? 0 : -1;
}
