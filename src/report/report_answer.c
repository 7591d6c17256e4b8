/* SPDX-License-Identifier: Apache-2.0 */
/* Report: the answer, which a reader of 20 seconds takes away: three sentences, each linked to its evidence, and the
 * measured budgets as bars. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/report/answer.h"

static void sentence(const struct sh_report *r, const char *text, const char *more, const char *link, const char *what)
{
    if (!text)
        return;
    fputs("<p>", r->to);
    sh_html_text(r->to, text);
    if (more) {
        fputc(' ', r->to);
        sh_html_text(r->to, more);
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

static void bar(const struct sh_report *r, const struct sh_answer *a, const struct sh_answer_row *row, double of)
{
    double fits = row->requests && a->full ? (double)row->requests / (double)a->full : 0;
    int is_full = row == &a->row[a->n_row - 1];
    fprintf(r->to, "<tr%s><th scope=\"row\">", row->is_chosen ? " class=\"is\"" : "");
    sh_html_text(r->to, row->label);
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
    else if (isnan(row->bound))
        fprintf(r->to, "%+.2f&#160;%%", 100 * row->increase);
    else
        fprintf(r->to, row->bound < 0 ? "%+.2f&#160;%%, no increase" : "%+.2f&#160;%%, at&#160;most&#160;%+.2f&#160;%%",
                100 * row->increase, 100 * row->bound);
    if (fits > 0)
        fprintf(r->to, "</td><td class=\"n\">%.1f ×</td></tr>\n", fits);
    else
        fputs("</td><td class=\"n\">-</td></tr>\n", r->to);
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
    if (*a->planned) {
        fputs("The solid part of a bar is the measured increase of the perplexity; the bar ends at the bound. The plan "
              "was judged on texts that its search did not use, with ", r->to);
        sh_html_text(r->to, a->planned);
        fputs(".", r->to);
    }
    if (*a->planned && *a->policy) {
        fputs(" The other bars are without a plan: each head keeps the same number, with ", r->to);
        sh_html_text(r->to, a->policy);
        fputs(", on the evaluated texts.", r->to);
    } else if (*a->policy) {
        fputs("The solid part of a bar is the increase of the perplexity that was measured with ", r->to);
        sh_html_text(r->to, a->policy);
        fputs("; the bar ends at the 95 % bound.", r->to);
    }
    if (!isnan(a->target))
        fprintf(r->to, " The line is %.3g %%, which the bound must not exceed.", 100 * a->target);
    fprintf(r->to, " Bars are cut off at %.3g %% (»).", 100 * of);
    fputs(" Requests are those that fit at once on one ", r->to);
    sh_html_text(r->to, a->gpu);
    fputs(", compared with the full cache.</figcaption></figure>\n", r->to);
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_answer a;
    int found = sh_answer_read(&a, r, e);
    if (found > 0) {
        fputs("<div class=\"answer\">\n", r->to);
        sentence(r, a.small, NULL, *a.planned ? "allocation" : "quality", "how that was measured");
        sentence(r, a.buys, NULL, "capacity", "what else fits");
        sentence(r, a.on, a.lacks, *a.planned ? "allocation" : "traced", "the texts");
        fputs("</div>\n", r->to);
        figure(r, &a);
        if (a.how) {
            fputs("<p class=\"how\">", r->to);
            sh_html_text(r->to, a.how);
            fputs("</p>\n", r->to);
        }
    } else if (!found) {
        sh_report_fill(r, "eval --model MODEL --text FILE --policy window h2o scissorhands --budget 0.1,0.2,0.35,0.5,"
                       "0.75 --db STORE", "the answer: it needs evaluations under a small cache, of a model whose "
                       "configuration is known.");
    }
    int bad = found < 0 && sh_report_lacks(r, NULL, e);
    sh_answer_clear(&a);
    return bad ? -1 : 0;
}

const struct sh_report_part sh_report_answer = {
    .name = "answer", .title = "How small can the cache be?", .write = write};
