/* SPDX-License-Identifier: Apache-2.0 */
/* Report: whether repeated attention comes with repeated text: the results of shears repetition --db. */
#include "src/report/report_results.h"

static const struct sh_report_column columns[] = {
    SH_COL_SETTING(TEXT, "model", "model"), SH_COL_SETTING(TEXT, "condition", "cache"), SH_COL_POLICY, SH_COL_BUDGET,
    SH_COL_WEIGHTS, SH_COL_SETTING(INT, "n_texts", "texts"), SH_COL_METRIC("ppl", "perplexity of the texts", 3),
    SH_COL_METRIC("rep_4", "rep-4", 4), SH_COL_METRIC("rep_4_stderr", "±", 4),
    SH_COL_METRIC("distinct_2", "distinct-2", 4), SH_COL_METRIC("longest_repeat_tokens", "longest repeat", 1),
    SH_COL_METRIC("row_likeness", "row similarity", 4), SH_COL_METRIC("row_likeness_stderr", "±", 4),
    SH_COL_METRIC("row_likeness_chance", "by chance", 4), SH_COL_METRIC("correlation", "correlation", 3),
    SH_COL_END};

static const struct sh_report_table table = {
    .key = "repetition", .title = "text generated with three caches", .column = columns};

const struct sh_report_part sh_report_repetition = {
    .name = "repetition", .title = "Repeated attention and repeated text", .command = "repetition", .table = &table,
    .has_commands = 1,
    .missing = "a comparison of repeated attention with repeated text.",
    .fill = "repetition --model MODEL --text FILE --length 256 --policy scissorhands --budget 0.5 --db STORE",
    .says = "The model continues each text three times: with the full cache, under the policy, and with a cache of "
            "the same size that keeps random tokens (uniform). rep-4 is the share of 4-grams that are repeats. Row "
            "similarity is the overlap between the pivotal tokens of neighbouring rows. A correlation, over "
            "three texts or more, is between rep-4 and the row similarity beyond chance. If repeated attention caused "
            "repeated text, uniform retention would lower rep-4."};
