/* SPDX-License-Identifier: Apache-2.0 */
/* Report: how far the tokens that a live cache keeps drift from those that the replay keeps. */
#include "src/report/report_results.h"

static const struct sh_report_column columns[] = {
    SH_COL_POLICY, SH_COL_BUDGET, SH_COL_SETTING(TEXT, "rows", "replayed rows"), SH_COL_LAYER,
    SH_COL_METRIC("jaccard", "mean Jaccard", 4), SH_COL_METRIC("least_jaccard", "minimum", 4),
    SH_COL_METRIC("same_first_eviction", "share of heads with the same first eviction", 4),
    SH_COL_METRIC("first_difference", "earliest difference, at token", 0), SH_COL_END};

/* How little this rests on, if only some sequences of the trace were read. */
static void verdict(struct sh_report *r, const struct sh_results *all)
{
    long long count = sh_result_int(&all->row[0], "count");
    for (int i = 1; i < all->n; i++)
        if (sh_result_int(&all->row[i], "count") != count)
            return;
    if (count > 0)
        sh_report_say(r, "At most %lld sequence%s of each trace %s read for this: other texts may differ.", count,
                      count == 1 ? "" : "s", count == 1 ? "was" : "were");
}

static const struct sh_report_table table = {
    .key = "drift", .column = columns, .by_layer = 1,
    .title = "tokens kept by the live cache and by the replay, per layer: mean and minimum over heads and steps"};

const struct sh_report_part sh_report_drift = {
    .name = "drift", .title = "Replay compared with the live cache", .command = "drift", .table = &table,
    .figure = &sh_figure_drift, .has_commands = 1, .verdict = verdict,
    .missing = "a step-by-step comparison of the live cache with the replay.",
    .fill = "drift --model MODEL --db STORE --policy h2o:recent=10 --budget 0.2",
    .says = "Does a replay keep the tokens that a live cache would keep? The Jaccard index is the number of tokens "
            "that both keep, divided by the number that at least one of them keeps: 1 means that both keep the same "
            "tokens. The first layer sees the same rows in both, so a difference there begins with rounding (by the "
            "codec, or in sums that are nearly equal); after one different eviction, later ones differ, too. In later "
            "layers the live model's own rows also change, because the layers below have dropped tokens."};
