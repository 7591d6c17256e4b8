/* SPDX-License-Identifier: Apache-2.0 */
/* shears capacity: how many sequences of which length fit on which GPUs, and how fast they could go. */
#include "plots/gp.h"
#include "src/app/capacity/capacity_study.h"
#include "src/cli/capacity_show.h"
#include "src/cli/commands.h"
#include "src/cli/paths.h"
#include "src/report/figures/capacity_plot.h"

#define F(name) offsetof(struct sh_capacity_args, name)
static const struct sh_opt opts[] = {
    {"model", SH_OPT_TEXT, F(model), "NAME,...",
     "of shears info models, a folder with config.json, such a file, a .gguf file, or all", 0, 0, 0},
    {"gpu", SH_OPT_TEXT, F(gpu), "NAME,...", "of shears info gpus, or all", 0, 0, 0},
    {"length", SH_OPT_INT, F(length), "N", "tokens of a sequence, prompt and answer", 1, SH_KV_MOST_TOKENS, 0},
    {"batch", SH_OPT_INT, F(batch), "N", "sequences; without it the largest batch is asked for", 1, 1e9, 0},
    {"kv", SH_OPT_TEXT, F(kv), "TYPE,...", "the cache's format: f32 f16 bf16 f8 int8 int4:group=64:scale=16:zero=16\n"
     "q8_0 q4_0 mxfp4 nvfp4; q8_0+q4_0: keys+values (default: f16)", 0, 0, 0},
    {"weights", SH_OPT_TEXT, F(weights), "TYPE", "the weights' format (default: as published, or as stored)", 0, 0, 0},
    {"tp", SH_OPT_TEXT, F(tp), "N,...", "GPUs that share each layer (default: 1); auto: the fewest for --batch", 0,
     0, 0},
    {"pp", SH_OPT_INT, F(pp), "N", "stages of a pipeline (default: 1)", 1, SH_CAPACITY_STAGES, 0},
    {"ep", SH_OPT_INT, F(ep), "N", "ranks that share experts and have their own sequences (default: 1)", 1, 1024, 0},
    {"budget", SH_OPT_TEXT, F(budget), "B,...", "tokens kept per layer and KV head: 0.2 of the length, 4096, 4+2044\n"
     "(sinks+recent), 64/32/... (each layer), pyramid:96-32", 0, 0, 0},
    {"plan", SH_OPT_TEXT, F(plan), "FILE", "budgets of each layer and head, from shears plan", 0, 0, 0},
    {"db", SH_OPT_TEXT, F(db), "FILE", "budgets that shears eval or replay measured, with what they cost", 0, 0, 0},
    {"max-ppl-increase", SH_OPT_TEXT, F(max_ppl), "F", "the smallest that raises perplexity by at most this, 0.01\n"
     "or 1%", 0, 0, 0},
    {"min-recall", SH_OPT_TEXT, F(min_recall), "F", "the smallest that keeps this share of attention mass", 0, 0, 0},
    {"policy", SH_OPT_TEXT, F(policy), "NAME", "only what was measured with this policy", 0, 0, 0},
    {"headroom", SH_OPT_INT, F(headroom), "N", "tokens that come between two evictions (default: 0)", 0, 1e9, 0},
    {"state", SH_OPT_INT, F(state), "BYTES", "a policy keeps for each kept token, layer and KV head (default: 0)", 0,
     1e6, 0},
    {"windows", SH_OPT_TEXT, F(windows), "HOW", "charge windowed layers: model (default), ignore,\n"
     "vllm:TOKENS or llama:TOKENS in flight", 0, 0, 0},
    {"page", SH_OPT_INT, F(page), "N", "tokens of a page (default: 1)", 1, 1 << 20, 0},
    {"shared-prefix", SH_OPT_INT, F(prefix), "N", "first tokens that all sequences share (default: 0)", 0,
     SH_KV_MOST_TOKENS, 0},
    {"chunk", SH_OPT_INT, F(chunk), "N", "tokens of a prompt at once (default: all; a server's guess: 2048 or 8192)",
     1, 1e9, 0},
    {"draft", SH_OPT_TEXT, F(draft), "MODEL", "a speculative draft model beside it", 0, 0, 0},
    {"memory", SH_OPT_BYTES, F(memory), "BYTES", "of one GPU, in place of the board's", 1, 0x1p62, 0},
    {"util", SH_OPT_REAL, F(util), "F", "share of it that may be used (default: 1)", 0, 1, 0},
    {"reserve", SH_OPT_REAL, F(reserve), "F", "share of it left to the framework: 1 - util", 0, 0.999, 0},
    {"overhead", SH_OPT_BYTES, F(overhead), "BYTES", "taken by the runtime, where it is known (default: 0)", 0, 0, 0},
    {"max-seqs", SH_OPT_INT, F(sampled), "N", "sequences that a server warms up for (its guess: 256 or 1024)", 1,
     1e6, 0},
    {"bandwidth", SH_OPT_REAL, F(bandwidth), "BYTES_PER_S", "of one GPU's memory, in place of the board's", 1, 1e18,
     0},
    {"flops", SH_OPT_REAL, F(flops), "F", "FLOP/s of one GPU, in place of the board's", 1, 1e21, 0},
    {"link", SH_OPT_FLAG, F(link), NULL, "count the time of what GPUs send each other", 0, 0, 0},
    {"price", SH_OPT_REAL, F(price), "USD", "of one GPU and hour", 0, 1e6, 0},
    {"uneven", SH_OPT_FLAG, F(uneven), NULL, "compute tp that does not divide the heads, too", 0, 0, 0},
    {"gpus", SH_OPT_TEXT, F(gpus), "FILE", "rows of your own boards, which come first", 0, 0, 0},
    {"models", SH_OPT_TEXT, F(models), "FILE", "rows of your own models, which come first", 0, 0, 0},
    {"plot-memory", SH_OPT_TEXT, F(plot_memory), "FILE", "draw what memory is used for (.svg, .png or .pdf)", 0, 0, 0},
    {"plot-frontier", SH_OPT_TEXT, F(plot_frontier), "FILE", "draw batch, speed and quality over the budgets", 0, 0, 0},
    {0}};
#undef F

static void preset(void *args)
{
    sh_capacity_preset(args);
}

static int show(struct sh_capacity_study *s, const struct sh_common *common, struct sh_err *e)
{
    int is_text = sh_common_format(common) == SH_OUT_TEXT, is_named = is_text && common->columns;
    struct sh_out *o = sh_out_new();
    if (s->n_row > 1)
        sh_capacity_study_sort(s);
    if (s->n_row == 1 && is_text && !is_named) {
        sh_capacity_show_one(o, &s->answer, &s->row[0]);
    } else {
        sh_capacity_show_rows(o, s->row, s->n_row, is_text && !is_named);
        if (is_named)                   /* as tables beside it, of which columns are named, too   */
            sh_out_end(o);
        if (s->n_row == 1)
            sh_capacity_show_lists(o, &s->answer, 0);
        if (!is_named)
            sh_out_end(o);
    }
    int bad = sh_common_write(common, o, e);
    sh_out_free(o);
    return bad;
}

/* A figure that cannot be written is told before the work. */
static int probe(const char *path, struct sh_err *e)
{
    struct sh_gp gp;
    if (path && sh_gp_open(&gp, path, 0, 0, 0, e))
        return -1;
    if (path)
        sh_gp_abandon(&gp);
    return 0;
}

static int draw(const struct sh_capacity_study *s, struct sh_err *e)
{
    const struct sh_capacity_args *a = s->args;
    return (a->plot_memory && sh_capacity_plot_memory(s->row, s->n_row, a->plot_memory, e)) ||
           (a->plot_frontier && sh_capacity_plot_frontier(s->row, s->n_row, a->plot_frontier, e)) ? -1 : 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct sh_capacity_args *a = args;
    if (positional->n)
        return sh_misused(e, "capacity: \"%.80s\" belongs to no option", positional->at[0]);
    const struct sh_need needs[] = {{"--model NAME", a->model != NULL}, {"--gpu NAME", a->gpu != NULL},
                                    {"--length N", a->length > 0}, {0}};
    if (sh_args_need("capacity", needs, e))
        return -1;
    const struct sh_file_use files[] = {
        {"--plot-memory", a->plot_memory, 1}, {"--plot-frontier", a->plot_frontier, 1}, {"--db", a->db, 0},
        {"--plan", a->plan, 0}, {"--gpus", a->gpus, 0}, {"--models", a->models, 0}, {0}};
    if (sh_files_apart(files, e))
        return -1;
    if (probe(a->plot_memory, e) || probe(a->plot_frontier, e))
        return -1;
    struct sh_capacity_study s;
    int bad = sh_capacity_study(&s, a, e) || draw(&s, e) || show(&s, common, e);
    sh_capacity_study_clear(&s);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_capacity = {
    .name = "capacity",
    .usage = "--model NAME|DIR|config.json --gpu NAME|all --length N [--batch N] [--kv TYPE] [--budget B] …",
    .summary = "what fits on a GPU with how much of the cache, and how fast it could go",
    .about = "Weights, cache and limits in exact bytes, each term shown; the largest batch at a length, the largest\n"
             "length at a batch, and the least time of a step by bandwidth and compute (an upper bound of speed).\n"
             "Lists with commas give one table of all combinations: what fits first, then the fastest, or with\n"
             "--batch the smallest. What does not fit is an answer: batch 0, the term named, and how much is missing.\n"
             "What a server takes besides is a range with its source, and not part of the exact sum.\n\n"
             "  shears capacity --model llama-3.1-8b --gpu H100-SXM --length 131072 --util 0.9 --budget 4096\n"
             "  shears capacity --model llama-3.1-70b --gpu all --tp auto --length 8192 --batch 16\n"
             "  shears capacity --model opt-6.7b --gpu A100-SXM-80GB --length 512 --db traces.db --max-ppl-increase 5%",
    .opts = opts,
    .args_bytes = sizeof(struct sh_capacity_args),
    .preset = preset,
    .run = run,
};
