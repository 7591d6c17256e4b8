/* SPDX-License-Identifier: Apache-2.0 */
/* Report: what fits on common GPUs, with the full cache and under the smallest budget that was measured to be good
 * enough. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/shell.h"
#include "src/app/capacity/capacity_study.h"
#include "src/app/plan/judged_count.h"
#include "src/app/store/measured.h"
#include "src/report/answer.h"
#include "src/report/figures/capacity_plot.h"
#include "src/report/report_model.h"

#define GPUS SH_REPORT_GPUS

struct capacity {
    struct sh_report *r;
    struct sh_report_model m;
    struct sh_out *o, *how;             /* what fits; how its budgets were measured               */
    char **evidence;                    /* [n_evidence] lines that `how` has                       */
    int n_evidence;
    int n_good;                         /* rows of budgets that were measured                      */
    char plan[320];                     /* budget and policy of the plan that met the quality before, of one text */
    char **command;                     /* [n_command] what repeats them, of each text             */
    int n_command;
};

static struct sh_capacity_args ask(const struct capacity *c)
{
    struct sh_capacity_args a = sh_capacity_defaults;
    a.model = c->m.name;
    a.gpu = c->r->gpu ? c->r->gpu : GPUS;
    a.gpus = c->r->gpus;
    a.length = c->m.length;
    return a;
}

/* The command that asks the same; for free(). */
static char *command_of(const struct capacity *c)
{
    char *model = sh_shell_word(c->m.name), *gpu = sh_shell_word(ask(c).gpu),
         *gpus = c->r->gpus ? sh_shell_word(c->r->gpus) : NULL;
    char *line = xasprintf("capacity --model %s --gpu %s --length %lld%s%s", model, gpu, c->m.length,
                           gpus ? " --gpus " : "", gpus ? gpus : "");
    free(model);
    free(gpu);
    free(gpus);
    return line;
}

/* The share of a plan has more digits than tell anything. */
static const char *name_budget(const struct sh_capacity_row *row, char to[32])
{
    if (!row->measured || !row->measured->is_plan)
        return row->budget;
    snprintf(to, 32, "%.4f", strtod(row->budget, NULL));
    return to;
}

/* text: what it was measured on; NULL: nothing. */
static void write_row(struct sh_out *o, const char *quality, const struct sh_capacity_row *row, const char *text,
                      int has_figure)
{
    char *policy = row->measured ? sh_quality_policy(row->measured) : NULL, budget[32];
    sh_out_item(o);
    if (has_figure)
        sh_out_link(o, "#fig-frontier");
    sh_out_text(o, "quality", "quality required", quality);
    sh_out_text(o, "gpu", "GPU", row->gpu);
    sh_out_int(o, "batch", "largest batch", (long long)row->max_batch);
    sh_out_text(o, "budget", "budget", row->budget ? name_budget(row, budget) : "full cache");
    sh_out_text(o, "policy", "policy", policy);
    sh_out_int(o, "bytes", "KV bytes per sequence", (long long)row->sequence);
    sh_out_real(o, "rate", "max decode tokens/s", row->fits ? row->decode_rate : 0, 0);
    sh_out_text(o, "text", "measured on", text);
    sh_out_real(o, "texts", "texts", row->measured ? row->measured->on.texts : (double)NAN, 0);
    free(policy);
}

/* How a budget was measured is the same on every GPU: written once. */
static void write_evidence(struct capacity *c, const struct sh_capacity_row *row)
{
    for (int i = 0; i < c->n_evidence; i++)
        if (!strcmp(c->evidence[i], row->evidence))
            return;
    c->evidence = xreallocarray(c->evidence, (size_t)c->n_evidence + 1, sizeof *c->evidence);
    c->evidence[c->n_evidence++] = xstrdup(row->evidence);
    char *policy = sh_quality_policy(row->measured), budget[32];
    sh_out_item(c->how);
    sh_out_text(c->how, "policy", "policy", policy);
    sh_out_text(c->how, "budget", "budget", name_budget(row, budget));
    sh_out_text(c->how, "evidence", "evidence", row->evidence);
    free(policy);
}

static int whole(struct capacity *c, int has_figure, struct sh_err *e)
{
    struct sh_capacity_args a = ask(c);
    struct sh_capacity_study s;
    int bad = sh_capacity_study(&s, &a, e);
    for (int i = 0; i < s.n_row && !bad; i++)
        write_row(c->o, "full cache", &s.row[i], NULL, has_figure);
    sh_capacity_study_clear(&s);
    return bad;
}

struct quality {
    const char *max_ppl, *min_recall, *says;
};

/* Adds the smallest budgets of a quality on one text; `text` as for --measured-on. How many meet it, or -1. */
static int meeting(struct capacity *c, const char *db, const char *text, const struct quality *q, struct sh_err *e)
{
    struct sh_capacity_args a = ask(c);
    struct sh_capacity_study s;
    struct sh_err none = {0};
    a.db = db;
    a.policy_state = 1;
    a.max_ppl = q->max_ppl;
    a.min_recall = q->min_recall;
    a.measured_on = text;
    int bad = sh_capacity_study(&s, &a, &none), n = 0;
    char plan[sizeof c->plan] = "";
    for (int i = 0; i < s.n_row && !bad; i++) {
        const struct sh_quality_point *p = s.row[i].measured;
        if (!sh_quality_has_enough(p))
            continue;
        n++;
        if (p->is_plan && !p->is_judged && c->r->answer && c->r->answer->is_planned)
            continue;                           /* shown by what judged it, which is more */
        if (p->is_plan)
            snprintf(plan, sizeof plan, "%s %s %s", p->budget, p->policy, p->knobs);
        if (*plan && !strcmp(plan, c->plan))    /* a stricter quality has it */
            continue;
        char *says = xasprintf("%s%s", q->says, p->is_plan ? ", with a plan" : q->max_ppl ? ", one budget for all heads"
                                                : ", on average, not by a bound");
        write_row(c->o, says, &s.row[i], text, 1);
        free(says);
        write_evidence(c, &s.row[i]);
    }
    snprintf(c->plan, sizeof c->plan, "%s", plan);
    c->n_good += n;
    sh_capacity_study_clear(&s);
    if (bad && none.is_io)
        *e = none;
    return bad && none.is_io ? -1 : n;
}

static void add_command(struct capacity *c, const char *db, const char *text, const struct quality *q)
{
    char *line = command_of(c), *store = sh_shell_word(db), *on = sh_shell_word(text);
    c->command = xreallocarray(c->command, (size_t)c->n_command + 1, sizeof *c->command);
    c->command[c->n_command++] = xasprintf("%s --db %s --policy-state --%s %s --measured-on %s", line, store,
                                           q->max_ppl ? "max-ppl-increase" : "min-recall",
                                           q->max_ppl ? q->max_ppl : q->min_recall, on);
    free(line);
    free(store);
    free(on);
}

/* Budgets that meet stated qualities on one text; nothing for a quality that none meets. One command repeats those of
 * the first quality that is met; the first of all is the page's own. */
static int stated_on(struct capacity *c, const char *db, const char *text, struct sh_err *e)
{
    char max_ppl[32], says[64];
    const struct quality quality[] = {
        {max_ppl, NULL, says},
        {"1%", NULL, "perplexity up by at most 1 %"}, {"5%", NULL, "perplexity up by at most 5 %"},
        {"10%", NULL, "perplexity up by at most 10 %"}, {NULL, "0.99", "99 % of attention kept"},
        {NULL, "0.95", "95 % of attention kept"}, {NULL, "0.9", "90 % of attention kept"}};
    int n_quality = (int)(sizeof quality / sizeof *quality), n = 0, n_known = c->n_command;
    c->plan[0] = '\0';
    snprintf(max_ppl, sizeof max_ppl, "%.6g%%", 100 * c->r->target);
    snprintf(says, sizeof says, "perplexity up by at most %.6g %%", 100 * c->r->target);
    for (int k = c->r->target > 0 ? 0 : 1; k < n_quality && n >= 0; k++) {
        const struct quality *q = &quality[k];
        if (k && q->max_ppl && !strcmp(q->max_ppl, max_ppl))
            continue;
        n = meeting(c, db, text, q, e);
        if (n > 0 && c->n_command == n_known)
            add_command(c, db, text, q);
    }
    return n < 0 ? -1 : 0;
}

/* On each text of the store, or the one that was asked for. */
static int stated(struct capacity *c, const char *db, struct sh_err *e)
{
    struct sh_quality_point *point;
    struct sh_texts_met met = {0};
    int n, bad = 0;
    if (c->r->measured_on)
        return stated_on(c, db, c->r->measured_on, e);
    if (sh_quality_read(db, NULL, &point, &n, e))
        return -1;
    for (int i = 0; i < n; i++)
        sh_texts_meet(&met, &point[i].on);
    for (int i = 0; i < met.n && !bad; i++) {
        char *text = sh_text_label(&met, met.at[i]);
        bad = stated_on(c, db, text, e);
        free(text);
    }
    free(met.at);
    free(point);
    return bad;
}

static int frontier(struct capacity *c, const char *db, struct sh_err *e)
{
    struct sh_capacity_args a = ask(c);
    struct sh_capacity_study s;
    a.db = db;
    a.measured_on = c->r->measured_on;
    int bad = sh_capacity_study(&s, &a, e);
    if (!bad) {
        struct sh_figure_data *d = sh_capacity_frontier(s.row, s.n_row, c->r->target);
        bad = sh_report_figure(c->r, &sh_figure_frontier, NULL, &d->out, e);
        sh_figure_data_free(d);
    }
    sh_capacity_study_clear(&s);
    return bad;
}

static int answers(struct capacity *c, struct sh_err *e)
{
    struct sh_report *r = c->r;
    int at;
    if (sh_report_measured(r, &at, e))
        return -1;
    const char *db = at < 0 ? NULL : r->store[at].path;
    char *plain = command_of(c);
    const char *slash = strrchr(c->m.name, '/');
    sh_report_say(r, "How many sequences of %lld tokens fit on a GPU at once with %s (the largest batch), and what is "
                     "the highest rate at which all of them together can be decoded? Bytes are exact and include what "
                     "a policy stores for each token; the rate is an upper limit, given by the GPU's memory bandwidth "
                     "and arithmetic throughput. Keys and values count with 16 bits, and nothing is "
                     "kept free for a server's own overhead (shears capacity --overhead). For each text and "
                     "required quality, the "
                     "first table shows the measured budget that meets it with the fewest bytes; a limit on the "
                     "perplexity must hold for the 95 %% bound. The second table shows how that budget was measured. "
                     "The figure counts keys and values alone, without what a policy stores: more sequences fit in it "
                     "than the tables say, where the policy stores something.",
                  c->m.length, slash && slash[1] ? slash + 1 : c->m.name);
    c->o = sh_out_new();
    c->how = sh_out_new();
    sh_out_list(c->o, "capacity", "what fits");
    sh_out_list(c->how, "evidence", "how these budgets were measured");
    int bad = whole(c, db != NULL, e);
    if (!bad && db)
        bad = stated(c, db, e);
    sh_out_end(c->o);
    sh_out_end(c->how);
    sh_report_table(r, NULL, c->o);
    sh_report_table(r, NULL, c->how);
    if (!bad && !c->n_good)
        sh_report_missing(r, NULL, "budgets that are shown to meet a required quality: there are none. Evaluations of "
                          "at least %d sequences (shears eval --db) or replays would show it.",
                          SH_JUDGED_LEAST);
    if (!bad && db)
        bad = frontier(c, db, e) && sh_report_lacks(r, NULL, e);
    sh_report_command(r, "%s", plain);
    for (int i = 0; i < c->n_command; i++)
        sh_report_command(r, "%s", c->command[i]);
    free(plain);
    return bad;
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct capacity c = {.r = r};
    int found = sh_report_find_model(r, &c.m, e), bad = found < 0;
    if (!found) {
        sh_report_fill(r, "report --db STORE --model DIR --gpu " GPUS " -o report.html",
                       "the largest batch on a GPU: the model's configuration is not known. Name its folder with "
                       "--model.");
    } else if (!bad) {
        bad = answers(&c, e);
    }
    for (int i = 0; i < c.n_evidence; i++)
        free(c.evidence[i]);
    free(c.evidence);
    for (int i = 0; i < c.n_command; i++)
        free(c.command[i]);
    free(c.command);
    sh_report_model_clear(&c.m);
    return bad;
}

const struct sh_report_part sh_report_capacity = {
    .name = "capacity", .title = "Capacity at a required quality", .write = write};
