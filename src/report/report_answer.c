/* SPDX-License-Identifier: Apache-2.0 */
/* Report: the answer, which a reader of 20 seconds takes away: three sentences, each linked to its evidence, and the
 * measured budgets as bars. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/answer.h"

/* A number and its % stay on one line. */
static void put_words(FILE *to, const char *text)
{
    for (const char *at; (at = strstr(text, " %")); text = at + 1) {
        char *part = xasprintf("%.*s\u00a0", (int)(at - text), text);
        sh_html_text(to, part);
        free(part);
    }
    sh_html_text(to, text);
}

static void sentence(const struct sh_report *r, const char *text, const char *more, const char *link, const char *what)
{
    if (!text)
        return;
    fputs("<p>", r->to);
    put_words(r->to, text);
    if (more) {
        fputc(' ', r->to);
        put_words(r->to, more);
    }
    fprintf(r->to, " <a href=\"#%s\">%s</a></p>\n", link, what);
}

/* The width of the bars, as an increase: what is decided must be seen well. */
static double scale(const struct sh_answer *a)
{
    double most = isnan(a->target) ? 0 : 2.5 * a->target;
    for (int i = 0; i < a->n_row; i++)
        if (a->row[i].is_chosen)
            most = fmax(most, 1.3 * a->row[i].bound);
    return most > 0 ? most : 0.1;
}

static double percent(double x, double of)
{
    return 100 * fmin(fmax(x / of, 0), 1);
}

/* "+0.67 %" */
static void put_change(FILE *to, double x)
{
    const char *sign = fabs(x) < 5e-5 ? "" : x < 0 ? "\u2212" : "+";
    fprintf(to, "%s%.2f&#160;%%", sign, 100 * fabs(x));
}

static void put_bounded(FILE *to, double increase, double bound)
{
    put_change(to, increase);
    if (isnan(bound))
        return;
    if (bound < 0) {
        fputs(", no increase", to);
        return;
    }
    fputs(", at&#160;most&#160;", to);
    put_change(to, bound);
}

/* "h2o:recent=0.5", which may be broken after its name and its knobs. */
static void put_policy(FILE *to, const char *policy)
{
    while (*policy) {
        size_t n = strcspn(policy, ":,");
        n += policy[n] != 0;
        char *part = xasprintf("%.*s", (int)n, policy);
        sh_html_text(to, part);
        fputs(policy[n] ? "<wbr>" : "", to);
        free(part);
        policy += n;
    }
}

static void bar(const struct sh_report *r, const struct sh_answer *a, const struct sh_answer_row *row, double of)
{
    double fits = row->requests && a->full ? (double)row->requests / (double)a->full : 0;
    int is_full = row == &a->row[a->n_row - 1];
    fprintf(r->to, "<tr%s><th scope=\"row\">", row->is_chosen ? " class=\"is\"" : "");
    put_words(r->to, row->label);
    if (row->policy) {
        fputs("<span class=\"with\">", r->to);
        put_policy(r->to, row->policy);
        fputs("</span>", r->to);
    }
    fputs("</th><td class=\"track\"><div>", r->to);
    if (!is_full)
        fprintf(r->to, "<i class=\"most\" style=\"width:%.1f%%\"></i><i class=\"seen\" style=\"width:%.1f%%\"></i>",
                percent(row->bound, of), percent(row->increase, of));
    if (!is_full && fmax(row->increase, row->bound) > of)
        fputs("<i class=\"cut\">»</i>", r->to);
    if (!isnan(a->target))
        fprintf(r->to, "<i class=\"limit\" style=\"left:%.1f%%\"></i>", percent(a->target, of));
    fputs("</div></td><td>", r->to);
    if (is_full)
        fputs("0", r->to);
    else
        put_bounded(r->to, row->increase, row->bound);
    if (fits > 0)
        fprintf(r->to, "</td><td class=\"n\">%.1f ×</td></tr>\n", fits);
    else
        fputs("</td><td class=\"n\">-</td></tr>\n", r->to);
}

/* On what the bars were measured: a plan's on all sequences that judged it, the others on some of them, as a study
 * does, or on any. */
static void tell_bars(const struct sh_report *r, const struct sh_answer *a)
{
    if (a->is_planned)
        fprintf(r->to, " The plan's bar was measured on %d sequences that its search did not use.", a->sequences);
    if (a->bars_on) {
        fputs(" The other bars were measured on ", r->to);
        put_words(r->to, a->bars_on);
        if (isnan(a->same)) {
            fputs(", which are other sequences, at least in part: compare them with the plan's bar only roughly.",
                  r->to);
        } else {
            fputs(strstr(a->bars_on, "judged.jsonl") ? " (sequences that judged the plan)" : "", r->to);
            fputs(". On these alone, the change with the plan is ", r->to);
            put_bounded(r->to, a->same, a->same_bound);
            fputs(".", r->to);
        }
    }
    if (a->n_row > 1 + a->is_planned)
        fprintf(r->to, " Each %s shows the evaluated policy with the lowest bound (95\u00a0%%) for its budget, which "
                "all attention heads share.", a->bars_on ? "of them" : "bar");
}

static void figure(const struct sh_report *r, const struct sh_answer *a)
{
    double of = scale(a);
    fputs("<figure id=\"fig-answer\"><table class=\"bars\">\n<thead><tr><th>kept<span class=\"of\"> of the cache</span>"
          "</th><th>perplexity change", r->to);
    if (!isnan(a->target))
        fprintf(r->to, "<span class=\"of\"> (line: %.3g&#160;%%)</span>", 100 * a->target);
    fputs("</th><th></th><th class=\"n\">requests</th></tr></thead><tbody>\n", r->to);
    for (int i = 0; i < a->n_row; i++)
        bar(r, a, &a->row[i], of);
    fputs("</tbody></table><figcaption>Perplexity says how badly the model predicts the texts. ", r->to);
    fputs("The solid part of a bar is the measured increase of the perplexity; the bar ends at the bound.", r->to);
    tell_bars(r, a);
    if (!isnan(a->target))
        fprintf(r->to, " The line is %.3g %%, which the bound must not exceed.", 100 * a->target);
    fprintf(r->to, " Bars are cut off at %.3g %% (»).", 100 * of);
    fputs(" Requests are those that fit at once on one ", r->to);
    sh_html_text(r->to, a->gpu);
    fputs(", compared with the full cache. What the policy stores is counted, too, but not a server's own overhead. "
          "Keys and values count with 16 bits; the perplexity was measured with 32, unless the table of "
          "<a href=\"#quality\">evaluations</a> says otherwise.</figcaption>"
          "</figure>\n", r->to);
}

static int write(struct sh_report *r, struct sh_err *e)
{
    const struct sh_answer *a = r->answer;
    if (a) {
        fputs("<div class=\"answer\">\n", r->to);
        sentence(r, a->small, NULL, a->is_planned ? "judged-texts" : "quality", "how that was measured");
        sentence(r, a->buys, NULL, "capacity", "what else fits");
        sentence(r, a->on, a->lacks, a->is_planned ? "judged" : "quality", "what was measured");
        fputs("</div>\n", r->to);
        figure(r, a);
        if (a->how) {
            fputs("<p class=\"how\">", r->to);
            put_words(r->to, a->how);
            fputs("</p>\n", r->to);
        }
    } else if (!*r->no_answer.text) {
        sh_report_fill(r, "eval --model MODEL --text FILE --policy window h2o scissorhands --budget 0.1,0.2,0.35,0.5,"
                       "0.75 --db STORE", "the answer: it needs evaluations under a small cache, of a model whose "
                       "configuration is known.");
    }
    *e = r->no_answer;
    return !a && *e->text ? sh_report_lacks(r, NULL, e) : 0;
}

const struct sh_report_part sh_report_answer = {
    .name = "answer", .title = "How small can the cache be?", .write = write};
