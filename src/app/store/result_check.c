/* SPDX-License-Identifier: Apache-2.0 */
/* See result_check.h. */
#include "src/app/store/result_check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double near_one = 1 + 1e-6;                /* shares that are sums of floats */

static const struct { const char *metric; double least, most; } known[] = {
    {"sequences", 1, 0x1p53}, {"tokens", 0, 0x1p53}, {"items", 1, 0x1p53}, {"answers", 0, 0x1p53},
    {"nll", 0, DBL_MAX}, {"nll_stderr", 0, DBL_MAX}, {"ppl", 1, DBL_MAX}, {"ppl_stderr", 0, DBL_MAX},
    {"nll_change", -DBL_MAX, DBL_MAX}, {"nll_change_stderr", 0, DBL_MAX}, {"kl", 0, DBL_MAX},
    {"kl_stderr", 0, DBL_MAX}, {"top1_agreement", 0, 1}, {"budget_tokens", 0, 0x1p53}, {"peak_tokens", 0, 0x1p53},
    {"kv_bytes", 0, 0x1p63}, {"tokens_per_s", 0, DBL_MAX}, {"answer_exact", 0, 1}, {"answer_exact_stderr", 0, 1},
    {"answer_nll", 0, DBL_MAX}, {"answer_nll_stderr", 0, DBL_MAX}, {"answer_ppl", 1, DBL_MAX},
    {"answer_ppl_stderr", 0, DBL_MAX}, {"answer_nll_change", -DBL_MAX, DBL_MAX},
    {"answer_nll_change_stderr", 0, DBL_MAX}, {"acc", 0, 1}, {"stderr", 0, 1}, {"acc_norm", 0, 1},
    {"acc_norm_stderr", 0, 1}, {"same_choice", 0, 1}, {"loglikelihood_change", 0, DBL_MAX}, {"jaccard", 0, 1},
    {"least_jaccard", 0, 1}, {"same_first_eviction", 0, 1}, {"score_change", 0, 1}, {"kept_mass", 0, near_one},
    {"kept_mass_low", 0, near_one}, {"kept_mass_high", 0, near_one}, {"pivotal_recall", 0, near_one},
    {"output_error", 0, DBL_MAX}, {"requests", 1, 0x1p53}, {"good_share", 0, 1}, {"busy_share", 0, near_one},
    {"kv_occupancy_mean", 0, near_one}, {"kv_occupancy_peak", 0, near_one}, {"throughput_tokens_per_s", 0, DBL_MAX}};

int sh_result_damaged(const char *store, const char *command, const char *settings, const char *metric, double value,
                      const char *expected, struct sh_err *e)
{
    sh_fail(e, "%s: a kept result of %s is damaged: %s is %g, expected %s (%.300s)", store, command, metric, value,
            expected, settings);
    int is_skipped = !strcmp(command, "replay") || !strcmp(command, "eval") || !strcmp(command, "simulate");
    return sh_hint(e, "measure it again with shears %s%s, or delete the rows of these settings from the store's table "
                   "\"result\"", command, is_skipped ? " --force" : "");
}

int sh_result_check(const struct sh_stored_result *r, const char *store, const char *command, struct sh_err *e)
{
    char expected[80];
    size_t bare = strcspn(r->metric, "@");      /* behind it: a part of the texts, a step */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].metric) != bare || strncmp(known[i].metric, r->metric, bare))
            continue;
        if (isnan(r->value) || (r->value >= known[i].least && r->value <= known[i].most))
            return 0;
        if (known[i].most > 0x1p53)
            snprintf(expected, sizeof expected, known[i].least < 0 ? "a finite number" : "%g or more",
                     known[i].least);
        else
            snprintf(expected, sizeof expected, "%g to %g", known[i].least, known[i].most);
        return sh_result_damaged(store, command, r->settings, r->metric, r->value, expected, e);
    }
    return 0;
}
