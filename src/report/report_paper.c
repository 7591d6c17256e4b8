/* SPDX-License-Identifier: Apache-2.0 */
/* Report: the numbers that the paper prints, next to those of the same model here. */
#include <math.h>
#include <string.h>

#include "src/report/report_results.h"

/* Liu et al., "Scissorhands", arXiv 2305.17118 v2; the table by length is in the camera-ready paper (NeurIPS 2023)
 * alone. Neither says under which budget the latter was measured, or whether accuracy is normalised. */
#define HELLASWAG "Hellaswag, 5 shots (4-bit table: v2 Table 3, camera-ready Table 4)"
#define BY_LENGTH "C4 perplexity by length (camera-ready Table 3)"

static const struct printed {
    const char *model, *table, *policy, *budget, *bucket;   /* bucket NULL: accuracy              */
    int n_layer, n_head, bits;                              /* bits 16: whole numbers             */
    double value;
} printed[] = {
    {"OPT-6.7B", HELLASWAG, "full", "all", NULL, 32, 32, 16, 0.702},
    {"OPT-6.7B", HELLASWAG, "scissorhands", "0.5", NULL, 32, 32, 16, 0.706},
    {"OPT-6.7B", HELLASWAG, "scissorhands", "0.5", NULL, 32, 32, 4, 0.704},
    {"OPT-13B", HELLASWAG, "full", "all", NULL, 40, 40, 16, 0.720},
    {"OPT-13B", HELLASWAG, "scissorhands", "0.5", NULL, 40, 40, 16, 0.720},
    {"OPT-13B", HELLASWAG, "scissorhands", "0.5", NULL, 40, 40, 4, 0.720},
    {"OPT-13B", BY_LENGTH, "full", "all", "257-512", 40, 40, 16, 8.7968},
    {"OPT-13B", BY_LENGTH, "full", "all", "513-1024", 40, 40, 16, 9.1017},
    {"OPT-13B", BY_LENGTH, "full", "all", "1025-2048", 40, 40, 16, 9.3005},
    {"OPT-13B", BY_LENGTH, "window", "0.5", "257-512", 40, 40, 16, 81.8297},
    {"OPT-13B", BY_LENGTH, "window", "0.5", "513-1024", 40, 40, 16, 29.3823},
    {"OPT-13B", BY_LENGTH, "window", "0.5", "1025-2048", 40, 40, 16, 15.5883},
    {"OPT-13B", BY_LENGTH, "scissorhands", "0.5", "257-512", 40, 40, 16, 8.7972},
    {"OPT-13B", BY_LENGTH, "scissorhands", "0.5", "513-1024", 40, 40, 16, 9.1011},
    {"OPT-13B", BY_LENGTH, "scissorhands", "0.5", "1025-2048", 40, 40, 16, 9.3009}};

enum { N_PRINTED = sizeof printed / sizeof *printed };

/* Is a trained model of that shape in the store? */
static int is_of(const struct sh_report_store *s, const struct printed *p)
{
    for (int i = 0; i < s->n_run; i++)
        if (s->run[i].n_layer == p->n_layer && s->run[i].n_head == p->n_head && s->run[i].d_head == 128 &&
            !strcmp(s->run[i].family, "opt") && !sh_report_is_random(&s->run[i]))
            return 1;
    return 0;
}

static int agrees(const struct sh_result_row *r, const struct printed *p)
{
    long long bits = sh_result_int(r, "kv_bits");
    return !strcmp(sh_result_text(r, "policy"), p->policy) && !strcmp(sh_result_budget(r), p->budget) &&
           (p->bits >= 16 ? bits >= 16 : bits == p->bits) && sh_result_is_of_model(r);
}

/* The same measured in the store; NaN: it was not. */
static double measured(const struct sh_results *eval, const struct sh_results *task, const struct printed *p, int store)
{
    double value = (double)NAN;
    const struct sh_results *all = p->bucket ? eval : task;
    char metric[40];
    snprintf(metric, sizeof metric, "nll@length:%s", p->bucket ? p->bucket : "");
    for (int i = 0; i < all->n && !isfinite(value); i++) {
        const struct sh_result_row *r = &all->row[i];
        if (r->store != store || !agrees(r, p))
            continue;
        if (p->bucket)
            value = exp(sh_result(r, metric, -1));
        else if (!strcmp(sh_result_text(r, "task"), "hellaswag"))
            value = sh_result(r, "acc_norm", -1);
    }
    return value;
}

static void put(struct sh_out *o, const struct printed *p, double ours)
{
    sh_out_item(o);
    sh_out_text(o, "model", "model", p->model);
    sh_out_text(o, "table", "table", p->table);
    sh_out_text(o, "policy", "policy", p->policy);
    sh_out_text(o, "budget", "budget here", p->budget);
    sh_out_int(o, "kv_bits", "KV bits", p->bits);
    sh_out_text(o, "tokens", "tokens", p->bucket);
    sh_out_real(o, "printed", "printed", p->value, 4);
    sh_out_real(o, "measured", "measured here", ours, 4);
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results eval = {0}, task = {0};
    int found = 0;
    if (sh_results_read(r, "eval", &eval, e) || sh_results_read(r, "task", &task, e)) {
        sh_results_free(&eval);
        return -1;
    }
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "printed", "printed in the paper, and measured here");
    for (int i = 0; i < N_PRINTED; i++) {
        double ours = (double)NAN;
        for (int s = 0; s < r->n_store && !isfinite(ours); s++)
            if (is_of(&r->store[s], &printed[i])) {
                found = 1;
                ours = measured(&eval, &task, &printed[i], s);
            }
        put(o, &printed[i], ours);
    }
    sh_out_end(o);
    sh_report_say(r, "The Scissorhands paper (arXiv 2305.17118) prints few numbers; its curves are available only as "
                     "figures. The numbers are for OPT models, measured on other samples of the texts. The paper does "
                     "not say which budget its table of perplexity by length was measured at, or whether its accuracy "
                     "is length-normalised (here it is). Its text reports persistence above 0.95 in most layers "
                     "(Fig. 2), and an unchanged perplexity up to 2x compression for small models and up to 5x for "
                     "OPT-66B (Fig. 3).");
    if (!found)
        sh_report_say(r, "None of the stores on this page was recorded from one of the paper's models, so there is "
                         "nothing to compare.");
    sh_report_table(r, found ? NULL : "The printed numbers", o);
    if (found)
        sh_report_command(r, "reproduce --model DIR --jsonl c4.jsonl --tasks DIR --size full -o DIR");
    sh_results_free(&eval);
    sh_results_free(&task);
    return 0;
}

const struct sh_report_part sh_report_paper = {
    .name = "paper", .title = "The paper's numbers", .write = write};
