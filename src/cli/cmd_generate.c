/* SPDX-License-Identifier: Apache-2.0 */
/* shears generate: text from a model that reads and writes under a KV budget. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/commands.h"
#include "src/cli/options.h"
#include "src/cli/generate_work.h"
#include "src/cli/paths.h"

#define F(name) offsetof(struct sh_generate_args, name)
static const struct sh_opt opts[] = {
    {"model", SH_OPT_TEXT, F(live.model), "DIR", "checkpoint folder, or a .gguf file", 0, 0, 0},
    {"prompt", SH_OPT_TEXT, F(prompt), "TEXT", "what to go on from", 0, 0, 0},
    {"prompt-file", SH_OPT_TEXT, F(prompt_file), "FILE", "the same from a file, every byte of it", 0, 0, 0},
    {"tokens", SH_OPT_TEXT, F(tokens), "FILE", "the same as JSON arrays of token ids, one a line; the first one, or\n"
     "--count of them side by side", 0, 0, 0},
    {"jsonl", SH_OPT_TEXT, F(jsonl), "FILE", "one JSON object a line: each document is a prompt, and the texts are\n"
     "written side by side", 0, 0, 0},
    {"field", SH_OPT_TEXT, F(field), "NAME", "where a jsonl document's text is (default: text)", 0, 0, 0},
    {"count", SH_OPT_INT, F(count), "N", "at most so many prompts of --jsonl (default: all) or --tokens", 1, 1e9, 0},
    {"batch", SH_OPT_INT, F(batch), "N", "so many texts side by side; where one ends, the next takes its place\n"
     "(default: as many as there is memory for, up to 256)", 1, 1 << 16, 0},
    {"max-tokens", SH_OPT_INT, F(max_tokens), "N", "write so many tokens (default: 128); fewer where the model's\n"
     "positions end", 1, 1 << 22, 0},
    {"temperature", SH_OPT_REAL, F(temperature), "F",
     "what logits are divided by; 0: always the likeliest token (default)", 0, 1e6, 0},
    {"top-k", SH_OPT_INT, F(top_k), "N", "draw from the N likeliest tokens; 0: from all (default)", 0, 1 << 30, 0},
    {"top-p", SH_OPT_REAL, F(top_p), "F", "draw from the fewest tokens that reach this share (default: 1)", 1e-9, 1, 0},
    {"stop-at-end", SH_OPT_FLAG, F(stop_at_end), NULL, "stop at the model's end token (config.json: eos_token_id)", 0,
     0, 0},
    {"policy", SH_OPT_TEXT, F(policy), "NAME[:knob=value,...]",
     "eviction policy (shears info policies lists them; default: full)", 0, 0, 0},
    {"budget", SH_OPT_TEXT, F(budget), "B",
     "tokens per KV head (17), or a share (0.2) of prompt and\n--max-tokens together", 0, 0, 0},
    {"prefill", SH_OPT_INT, F(live.prefill), "N", "the first N tokens see everything, nothing is dropped (default: 0)",
     0, 1 << 22, 0},
    {"prefill-mode", SH_OPT_TEXT, F(live.prefill_mode), "blocks|once|stream",
     "how a prompt longer than the budget goes through the cache: in\n"
     "blocks that see themselves and what is kept, with compression\n"
     "behind each (default); as one block, compressed once; token after\n"
     "token", 0, 0, 0},
    {"prefill-block", SH_OPT_INT, F(live.prefill_block), "N", "tokens of a block (default: 128)", 1, 1 << 22, 0},
    {"positions", SH_OPT_TEXT, F(live.positions), "original|cache",
     "where a token stands: in the text (default), or among what is\n"
     "kept; then a text may grow beyond the model's positions", 0, 0, 0},
    {"kv-bits", SH_OPT_INT, F(live.kv_bits), "32|16|8|4", "keys and values as f32, f16, or codes in groups\n"
     "(default: 32 with --dtype f32, else 16)", 1, 1024, 0},
    {"kv-group", SH_OPT_INT, F(live.kv_group), "N", "numbers of codes that share a scale (default: 64)", 8, 1024, 0},
    {"kv-keys", SH_OPT_TEXT, F(live.kv_keys), "token|channel",
     "codes of keys share scales along a token's channels (default),\n"
     "or along slots, channel by channel, as they always do in a\n"
     "cache that never evicts", 0, 0, 0},
    {"kv-residual", SH_OPT_INT, F(live.kv_residual), "N",
     "with --kv-keys channel: newest keys that are f16 (default: 8)", 1, 1024, 0},
    {"dtype", SH_OPT_TEXT, F(live.dtype), "TYPE", "operands of products: f32 (default), bf16 or f16", 0, 0, 0},
    {"weight-bits", SH_OPT_INT, F(live.weight_bits), "16|8|4",
     "what a weight of the layers takes: 16: as --dtype (default);\n"
     "8, 4: codes in groups of 64 (the output matrix: 8), whose products\n"
     "of more than 8 tokens are rounded otherwise", 0, 0, 0},
    {"weight-prune", SH_OPT_REAL, F(live.weight_prune), "F",
     "set the share F of the smallest weights (by magnitude) of\n"
     "each matrix of the layers to 0 (default: 0)", 0, 0.99, 0},
    {"repetition", SH_OPT_FLAG, F(repetition), NULL,
     "tell how much the text repeats itself, and how much alike\nneighbouring rows of its attention are", 0, 0, 0},
    {"dump-kept", SH_OPT_TEXT, F(dump), "FILE", "kept positions as JSON lines, one per layer, head and step", 0, 0, 0},
    {"dump-every", SH_OPT_INT, F(dump_every), "N", "only every so many steps (default: 1)", 1, 1 << 22, 0},
    {"device-memory", SH_OPT_BYTES, F(live.device_memory), "BYTES",
     "what may be taken of the device (default: what is free)", 0, 0, 0},
    SH_TIMING_OPT(F(timing)),
    {0}};
#undef F

static void preset(void *args)
{
    struct sh_generate_args *a = args;
    sh_live_preset(&a->live);
    a->live.prefill_mode = "blocks";
    a->max_tokens = 128;
    a->top_p = 1;
}

static int is_end(const void *prompts, int32_t token)
{
    return sh_prompts_is_end(prompts, token);
}

static int read_policy(struct sh_generate_work *w, struct sh_err *e)
{
    const struct sh_generate_args *a = w->a;
    struct sh_budget all[SH_MAX_BUDGETS];
    int n = 0;
    if (a->budget && !a->policy)
        return sh_misused(e, "--budget: no --policy is given");
    if (sh_policy_parse(a->policy ? a->policy : "full", &w->policy, e))
        return sh_err_prefix(e, "--policy");
    if (a->budget && sh_budget_parse(a->budget, all, &n, e))
        return sh_err_prefix(e, "--budget");
    if (n > 1)
        return sh_misused(e, "--budget %s: a text is written under one budget", a->budget);
    if (n)
        w->budget = all[0];
    return 0;
}

static int read_options(struct sh_generate_work *w, const struct sh_list *positional, struct sh_err *e)
{
    const struct sh_generate_args *a = w->a;
    if (positional->n)
        return sh_misused(e, "generate: \"%.80s\" belongs to no option", positional->at[0]);
    const struct sh_file_use files[] = {{"--dump-kept", a->dump, 1}, {"--prompt-file", a->prompt_file, 0},
                                        {"--tokens", a->tokens, 0}, {"--jsonl", a->jsonl, 0}, {0}};
    if (sh_live_read(&w->live, &a->live, w->common, "generate", e) || sh_files_apart(files, e) || read_policy(w, e))
        return -1;
    if (!a->temperature && (a->top_k || a->top_p < 1))
        return sh_misused(e, "--top-k and --top-p draw at random: give a --temperature above 0");
    if (w->common->columns && sh_common_format(w->common) == SH_OUT_TEXT)
        return sh_misused(e, "--columns: what goes to stdout is the text, no table: give --csv, too");
    if (a->field && !a->jsonl)
        return sh_misused(e, "--field: only documents of --jsonl FILE have fields");
    if (a->dump_every && !a->dump)
        return sh_misused(e, "--dump-every: nothing is dumped without --dump-kept FILE");
    w->is_many = a->jsonl || (a->tokens && a->count);
    if (!w->is_many && (a->count || a->batch))
        return sh_misused(e, "--%s: there is one prompt; several come from --jsonl FILE, or --tokens FILE with --count",
                          a->count ? "count" : "batch");
    w->prompts = (struct sh_prompts){.is_bounded = w->live.positions == SH_POSITIONS_ORIGINAL, .text = a->prompt,
                                     .file = a->prompt_file, .tokens = a->tokens, .jsonl = a->jsonl,
                                     .field = a->field ? a->field : "text", .count = (int)a->count,
                                     .wants_ends = a->stop_at_end};
    return 0;
}

/* The texts that are wanted; as long as the model's positions let them be. */
static int plan_texts(struct sh_generate_work *w, int *longest_prompt, int *longest, struct sh_err *e)
{
    const struct sh_generate_args *a = w->a;
    int max_pos = sh_model_arch(w->live.model)->max_pos;
    w->n = w->prompts.texts.n;
    w->text = xcalloc((size_t)w->n, sizeof *w->text);
    for (int i = 0; i < w->n; i++) {
        const struct sh_trace_sequence *q = &w->prompts.texts.sequence[i];
        struct sh_written *t = &w->text[i];
        int room = max_pos - q->n_tokens + 1, n_token;          /* the last token is not read */
        *t = (struct sh_written){.name = w->is_many ? q->source : NULL, .prompt = q->tokens, .n_prompt = q->n_tokens};
        t->most = a->max_tokens < room || !w->prompts.is_bounded ? (int)a->max_tokens : room;
        n_token = t->n_prompt + t->most - 1;
        if (sh_writing_shape(&w->live, &w->writing.cache, t, e))
            return t->name ? sh_err_prefix(e, "%s", t->name) : -1;
        *longest_prompt = t->n_prompt > *longest_prompt ? t->n_prompt : *longest_prompt;
        *longest = n_token > *longest ? n_token : *longest;
    }
    if (a->live.prefill >= *longest && a->budget && !w->common->quiet)
        fprintf(stderr, "shears: --prefill %lld reaches beyond the text's %d tokens: nothing is ever dropped\n",
                a->live.prefill, *longest);
    return 0;
}

static int open_all(struct sh_generate_work *w, struct sh_err *e)
{
    const struct sh_generate_args *a = w->a;
    int longest_prompt = 0, longest = 0, block = 0;
    w->writing = (struct sh_writing){.live = &w->live, .cache = {&w->policy, a->budget ? &w->budget : NULL, 0},
                                     .sampler = {a->temperature, (int)a->top_k, a->top_p, w->live.seed},
                                     .batch = (int)a->batch, .is_end = a->stop_at_end ? is_end : NULL,
                                     .is_end_to = &w->prompts, .dump = a->dump ? &w->dump : NULL,
                                     .wants_likeness = a->repetition, .on_token = sh_generate_show_token,
                                     .stops = sh_generate_show_stops, .to = w};
    if (sh_live_open(&w->live, w->common, e))
        return -1;
    const struct sh_arch *arch = sh_model_arch(w->live.model);
    unsigned long long since = sh_stage_begin(w->live.devices.stages);
    if (sh_prompts_open(&w->prompts, a->live.model, arch, e))
        return -1;
    sh_stage_end(w->live.devices.stages, SH_STAGE_TOKENS, since, 1);
    if (a->stop_at_end && !w->prompts.n_end)
        return sh_fail(e, "%s: --stop-at-end: the model names no token that ends a text (eos_token_id)", a->live.model);
    if (plan_texts(w, &longest_prompt, &longest, e))
        return -1;
    for (int i = 0; i < w->n; i++) {
        const struct sh_written *t = &w->text[i];
        block = t->shape.block > block ? t->shape.block : block;
        block = t->again.block > block ? t->again.block : block;
    }
    int side = a->batch ? (int)a->batch : SH_WRITING_SIDE;
    side = side < w->n ? side : w->n;
    if (sh_live_load(&w->live, longest, longest_prompt > side ? longest_prompt : side, block, e))
        return -1;
    w->dump = (struct sh_eval_dump){.kept_path = a->dump, .every = a->dump_every ? (int)a->dump_every : 1,
                                    .arch = w->live.positions == SH_POSITIONS_ORIGINAL ? arch : NULL,
                                    .n_vocab = arch->n_vocab};
    return sh_eval_dump_begin(&w->dump, 0, e);
}

static int write_texts(struct sh_generate_work *w, struct sh_err *e)
{
    sh_generate_show_begin(w);
    int bad = sh_generate_show_end(w, sh_write(&w->writing, w->text, w->n, e), e);
    return sh_eval_dump_end(&w->dump, bad, e);
}

static void close_all(struct sh_generate_work *w)
{
    for (int i = 0; i < w->n; i++)
        sh_written_free(&w->text[i]);
    free(w->text);
    sh_prompts_close(&w->prompts);
    sh_live_close(&w->live);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct sh_generate_work w = {.a = args, .common = common};
    w.live.devices.stages = sh_timing_begin(&w.timing, w.a->timing);
    int bad = read_options(&w, positional, e) || open_all(&w, e) || write_texts(&w, e);
    if (!bad && !common->quiet)
        sh_generate_tell(&w);
    if (!bad && w.goes_out)
        sh_timing_tell(&w.timing, stderr);
    if (!bad && !w.goes_out)
        bad = sh_generate_report(&w, e);
    close_all(&w);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_generate = {
    .name = "generate",
    .usage = "--model DIR (--prompt TEXT | --prompt-file FILE | --tokens FILE | --jsonl FILE)\n"
             "        [--policy NAME[:knob=value,...]] [--budget B] [--max-tokens N] [--temperature F] [options]",
    .summary = "text from a model under a KV budget",
    .about = "Goes on from a prompt, token by token, through a real cache of fixed size; prompt and text alike are\n"
             "evicted from it, the text as it comes, the prompt behind each of its blocks. The text is written to\n"
             "stdout as it grows, in whole characters, and what it took to stderr; with --json both are one object on\n"
             "stdout. The same seed gives the same text.\n\n"
             "Many prompts (--jsonl, or --tokens with --count) are written side by side: where a text ends, the next\n"
             "prompt takes its place in the cache. Each is the text that it would be alone: always on the CPU with\n"
             "whole weights in f32 or f16; with --weight-bits 8|4, with bf16 where the processor multiplies it, and\n"
             "on a GPU up to the rounding of products, which follows how many tokens go through a layer together and\n"
             "may turn one token into another. They come in the order of their prompts, each behind a line\n"
             "== FILE:LINE, lines counted from 0.\n\n"
             "  shears generate --model opt-125m --prompt \"Once upon a time\" --policy h2o --budget 64\n"
             "  shears generate --model opt-125m --jsonl prompts.jsonl --policy h2o --budget 0.2 --json",
    .opts = opts,
    .args_bytes = sizeof(struct sh_generate_args),
    .preset = preset,
    .run = run,
};
