/* SPDX-License-Identifier: Apache-2.0 */
/* Report: whether repeated attention comes with repeated text: the results of shears repetition --db. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/student.h"
#include "src/report/report_results.h"

static const struct sh_report_column columns[] = {
    SH_COL_SETTING(TEXT, "condition", "cache"), SH_COL_METRIC("rep_4", "rep-4", 4),
    SH_COL_METRIC("rep_4_stderr", "±", 4), SH_COL_METRIC("ppl", "perplexity of the texts", 3), SH_COL_POLICY,
    SH_COL_BUDGET, SH_COL_WEIGHTS, SH_COL_SETTING(INT, "n_texts", "texts"), SH_COL_SETTING(TEXT, "model", "model"),
    SH_COL_METRIC("distinct_2", "distinct-2", 4), SH_COL_METRIC("longest_repeat_tokens", "longest repeat", 1),
    SH_COL_METRIC("row_likeness", "row similarity", 4), SH_COL_METRIC("row_likeness_stderr", "±", 4),
    SH_COL_METRIC("row_likeness_chance", "by chance", 4), SH_COL_METRIC("correlation", "correlation", 3),
    SH_COL_END};

enum { LEAST_TEXTS = 3, FEW_TEXTS = 20 };       /* for errors that mean something; that show small differences */

/* Of one run: the same texts, budget and sampling. */
static int is_of_run(const struct sh_result_row *a, const struct sh_result_row *b)
{
    static const char *const apart[] = {"condition", "policy", "knobs"};
    json_t *one = json_copy(a->settings), *other = json_copy(b->settings);
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++) {
        json_object_del(one, apart[i]);
        json_object_del(other, apart[i]);
    }
    int same = a->store == b->store && json_equal(one, other);
    json_decref(one);
    json_decref(other);
    return same;
}

/* The row of another cache of the same run: the next one, since a run keeps its caches in order; else any. */
static const struct sh_result_row *with(const struct sh_results *all, const struct sh_result_row *like,
                                        const char *condition)
{
    const struct sh_result_row *found = NULL;
    for (int i = 0; i < all->n; i++)
        if (!strcmp(sh_result_text(&all->row[i], "condition"), condition) && is_of_run(&all->row[i], like) &&
            (!found || (found < like && &all->row[i] > like)))
            found = &all->row[i];
    return found;
}

/* -1, 0 or 1: is the metric lower, the same as far as the errors tell (95 %), or higher? */
static int compare(const struct sh_result_row *a, const struct sh_result_row *b, const char *metric)
{
    char error[64];
    snprintf(error, sizeof error, "%s_stderr", metric);
    double by = sh_result(a, metric, -1) - sh_result(b, metric, -1),
           own = sh_result(a, error, -1), other = sh_result(b, error, -1),
           most = sh_student_t(0.975, (int)sh_result_int(a, "n_texts") - 1) * sqrt(own * own + other * other);
    return by > most ? 1 : by < -most ? -1 : 0;
}

static const char *meaning(const struct sh_result_row *policy, const struct sh_result_row *uniform)
{
    int repeats = compare(uniform, policy, "rep_4"), likeness = compare(uniform, policy, "row_likeness");
    if (!repeats)
        return "Between random tokens and the policy's, the texts show no difference: there is no sign that repeated "
               "attention causes repeated text.";
    if (repeats > 0)
        return "Random tokens make the text repeat more than the policy's, which speaks against repeated attention as "
               "the cause.";
    return likeness < 0 ? "With random tokens, both the rows are less alike and the text repeats less than with the "
                          "policy's, as expected if repeated attention causes repeated text."
                        : "With random tokens, the text repeats less than with the policy's, but the rows are not less "
                          "alike, so the cause need not be repeated attention.";
}

/* What the three caches of each run say together. */
static void verdict(struct sh_report *r, const struct sh_results *all)
{
    static const char *const than_full[] = {"less than", "neither more nor less than", "more than"};
    for (int i = 0; i < all->n; i++) {
        const struct sh_result_row *own = &all->row[i], *full = with(all, own, "full"),
                                   *even = with(all, own, "uniform");
        if (strcmp(sh_result_text(own, "condition"), "policy") || !full || !even)
            continue;
        long long texts = sh_result_int(own, "n_texts");
        char *policy = sh_result_policy(own);
        sh_report_say(r, "Of the 4-grams, %.0f %% are repeats under %s, %.0f %% with random tokens and %.0f %% with "
                         "the full cache (%lld text%s).", 100 * sh_result(own, "rep_4", -1), policy,
                      100 * sh_result(even, "rep_4", -1), 100 * sh_result(full, "rep_4", -1), texts,
                      texts == 1 ? "" : "s");
        if (texts < LEAST_TEXTS)
            sh_report_say(r, "That is too few texts to tell whether repeated attention causes repeated text: at least "
                             "%d are needed.", LEAST_TEXTS);
        else
            sh_report_say(r, "As far as %lld texts tell (95 %% confidence), a text under the policy repeats %s with "
                          "the full cache. %s%s", texts, than_full[1 + compare(own, full, "rep_4")],
                          meaning(own, even),
                          texts < FEW_TEXTS && !compare(even, own, "rep_4")
                              ? " So few texts show only large differences." : "");
        free(policy);
    }
}

static const struct sh_report_table table = {
    .key = "repetition", .title = "text generated with three caches", .column = columns};

const struct sh_report_part sh_report_repetition = {
    .name = "repetition", .title = "Repeated attention and repeated text", .command = "repetition", .table = &table,
    .verdict = verdict, .has_commands = 1,
    .missing = "a comparison of repeated attention with repeated text.",
    .fill = "repetition --model MODEL --text FILE --length 256 --policy scissorhands --budget 0.5 --db STORE",
    .says = "The model continues each text three times: with the full cache, under the policy, and with a cache of "
            "the same size that keeps tokens drawn at random, whatever attention they get (uniform). "
            "rep-4 is the share of 4-grams that are repeats. Row "
            "similarity is the overlap between the pivotal tokens of neighbouring rows. A correlation, over "
            "three texts or more, is between rep-4 and the row similarity beyond chance. If repeated attention caused "
            "repeated text, uniform retention would lower rep-4."};
