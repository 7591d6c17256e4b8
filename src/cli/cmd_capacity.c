/* SPDX-License-Identifier: Apache-2.0 */
/* shears capacity: how many sequences of what length fit on which GPUs, and an upper bound on speed. */
#include "src/app/capacity/capacity_study.h"
#include "src/cli/capacity_show.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/report/figures/capacity_plot.h"

#define F(name) offsetof(struct sh_capacity_args, name)
static const struct sh_opt opts[] = {
    SH_TEXT("model", F(model), "NAME,...", "name from shears info models, folder with config.json, config.json,\n"
        ".gguf file, or all"),
    SH_TEXT("gpu", F(gpu), "NAME,...", "name from shears info gpus, or all"),
    SH_INT("length", F(length), "N", 1, SH_KV_MOST_TOKENS, "tokens per sequence, prompt and output together"),
    SH_INT("batch", F(batch), "N", 1, 1e9, "sequences (default: find the largest batch)"),
    SH_TEXT("kv", F(kv), "TYPE,...", "cache format: f32 f16 bf16 f8 int8 int4 int3 int2\n"
        "(int4:group=64:scale=16:zero=16) q8_0 q4_0 mxfp4 nvfp4; q8_0+q4_0 is keys+values (default: f16)"),
    SH_TEXT("tp", F(tp), "N,...", "tensor parallelism: GPUs that share each layer (default: 1);\n"
        "auto: the fewest for --batch"),
    SH_INT("pp", F(pp), "N", 1, SH_CAPACITY_STAGES, "pipeline stages (default: 1)"),
    SH_INT("ep", F(ep), "N", 1, 1024, "expert-parallel ranks, each with its own sequences (default: 1)"),
    SH_TEXT("budget", F(budget), "B,...", "tokens kept per layer and KV head: 0.2 of the length, 4096, 4+2044\n"
        "(sinks+recent), 64/32/... (one per layer), pyramid:96-32"),
    SH_TEXT("plan", F(plan), "FILE", "budgets per layer and head from a shears plan file"),
    SH_TEXT("db", F(db), "FILE", "store with results of shears eval or replay: measured budgets"),
    SH_TEXT("max-ppl-increase", F(max_ppl), "F", "use the smallest measured budget that raises perplexity by at most "
                                                 "F:\n"
                                                 "0.01 or 1%"),
    SH_TEXT("min-recall", F(min_recall), "F", "use the smallest measured budget that keeps this fraction of the\n"
                                              "attention mass"),
    SH_TEXT("policy", F(policy), "NAME", "use only results measured with this policy"),
    SH_MEASURED_ON_OPT(F(measured_on), ""),
    SH_INT("page", F(page), "N", 1, 1 << 20, "tokens per page (default: 1)"),
    SH_INT("shared-prefix", F(prefix), "N", 0, SH_KV_MOST_TOKENS,
        "leading tokens shared by all sequences (default: 0)"),
    SH_INT("chunk", F(chunk), "N", 1, 1e9, "prompt tokens per prefill chunk (default: the whole prompt; servers use\n"
        "2048 or 8192)"),
    SH_TEXT("draft", F(draft), "MODEL", "speculative draft model loaded as well"),
    SH_INT("max-seqs", F(sampled), "N", 1, 1e6, "sequences that a server warms up for (servers use 256 or 1024)"),
    SH_TEXT("engine", F(engine), "NAME|FILE", "also show the speed expected of vllm, sglang, trtllm or\n"
        "a profile written by shears calibrate; shears, without --gpu: what\nthis program itself holds on the CPU"),
    SH_REAL("price", F(price), "USD", 0, 1e6, "price per GPU-hour"),
    SH_TEXT("plot-memory", F(plot_memory), "FILE", "plot how memory is used (" SH_GP_NAMES ")"),
    SH_TEXT("plot-frontier", F(plot_frontier), "FILE", "plot batch, speed and quality against the budget"),
    SH_PAGE_OPTS(F),
    SH_HARDWARE_OPTS(F),
    {0}};

static int show(struct sh_capacity_study *s, const struct sh_common *common, struct sh_err *e)
{
    int is_text = sh_common_format(common) == SH_OUT_TEXT, is_named = is_text && common->columns;
    struct sh_out *o = sh_out_new();
    if (s->n_row > 1)
        sh_capacity_study_sort(s);
    if (s->n_row == 1 && is_text && !is_named) {
        sh_capacity_show_one(o, &s->answer, &s->row[0]);
    } else {
        sh_capacity_show_rows(o, s->row, s->n_row,
                              is_named ? SH_CAPACITY_NAMED : is_text ? SH_CAPACITY_TABLE : SH_CAPACITY_FIELDS);
        if (is_named)                   /* a table next to others of which columns are named      */
            sh_out_end(o);
        if (s->n_row == 1)
            sh_capacity_show_lists(o, &s->answer, 0);
        if (!is_named)
            sh_out_end(o);
    }
    return sh_common_write(common, o, 0, e);
}

static int show_own(const struct sh_capacity_args *a, const struct sh_common *common, struct sh_err *e)
{
    struct sh_capacity_own own;
    struct sh_out *o = sh_out_new();
    int bad = sh_capacity_own(a, &own, e);
    if (!bad)
        sh_capacity_show_own(o, &own);
    bad = bad ? -1 : sh_common_write(common, o, 0, e);
    sh_capacity_own_clear(&own);
    return bad;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct sh_capacity_args *a = args;
    struct sh_gp_look look;
    int is_own = sh_capacity_is_own(a);
    const struct sh_need needs[] = {{"--model NAME", a->model != NULL}, {"--gpu NAME", a->gpu || is_own},
                                    {"--length N", a->length > 0}, {0}};
    const struct sh_file_use files[] = {
        {"--plot-memory", a->plot_memory, 1}, {"--plot-frontier", a->plot_frontier, 1}, {"--db", a->db, 0},
        {"--plan", a->plan, 0}, {"--gpus", a->gpus, 0}, {"--models", a->models, 0}, {0}};
    if (sh_args_none("capacity", positional, e) || sh_args_need("capacity", needs, e) || sh_files_apart(files, e) ||
        sh_check_figure(a->plot_memory, &a->paper, e) || sh_check_figure(a->plot_frontier, &a->paper, e) ||
        sh_read_page(&a->paper, &look, e))
        return -1;
    if (is_own)
        return show_own(a, common, e);
    struct sh_capacity_study s;
    int bad = sh_capacity_study(&s, a, e) ||
              (a->plot_memory && sh_capacity_plot_memory(s.row, s.n_row, a->plot_memory, &look, e)) ||
              (a->plot_frontier && sh_capacity_plot_frontier(s.row, s.n_row, a->plot_frontier, &look, e)) ||
              show(&s, common, e);
    sh_capacity_study_clear(&s);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_capacity = {
    .name = "capacity",
    .usage = "--model NAME|DIR|FILE --gpu NAME|all --length N [--batch N] [--kv TYPE] [--budget B] [options]",
    .summary = "compute how many sequences fit on a GPU, and an upper bound on speed",
    .about = "Computes weights, cache and limits in exact bytes and shows each term. Finds the largest batch at a\n"
             "length, the largest length at a batch, and the least time per step that bandwidth and compute allow,\n"
             "which bounds the speed from above. Options with comma-separated lists give one table of all\n"
             "combinations: rows that fit come first, sorted by speed or, with --batch, by memory. A row that does\n"
             "not fit has batch 0 and says which term is too large and how many bytes are missing. Additional memory\n"
             "that a server needs is given as a range with its source and is not part of the exact sum.\n"
             "\n"
             "  shears capacity --model llama-3.1-8b --gpu H100-SXM --length 131072 --util 0.9 --budget 4096\n"
             "  shears capacity --model llama-3.1-70b --gpu all --tp auto --length 8192 --batch 16\n"
             "  shears capacity --model opt-6.7b --gpu A100-SXM-80GB --length 512 --db traces.db --max-ppl-increase 5%",
    .opts = opts, .args_bytes = sizeof(struct sh_capacity_args), .defaults = &sh_capacity_defaults, .run = run};
