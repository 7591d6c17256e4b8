/* SPDX-License-Identifier: Apache-2.0 */
/* shears generate: text generation under a KV budget. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/cli/generate_job.h"
#include "src/cli/paths.h"

#define F(name) offsetof(struct sh_generate_args, name)
#define L(name) F(live.name)
static const struct sh_opt opts[] = {
    SH_MODEL_OPT(F(live.model)),
    SH_TEXT("prompt", F(prompt), "TEXT", "prompt to continue; -: standard input, without its last newline"),
    SH_TEXT("prompt-file", F(prompt_file), "FILE", "file with the prompt, read verbatim"),
    SH_TEXT("tokens", F(tokens), "FILE", "prompts as token ids, one JSON array per line: only the first line, or\n"
                                         "--count lines as a batch"),
    SH_TEXT("jsonl", F(jsonl), "FILE", "prompts as JSON lines, one object per prompt, continued as a batch"),
    SH_FIELD_OPT(F(field)),
    SH_INT("count", F(count), "N", 1, 1e9, "read at most N prompts of --jsonl (default: all) or --tokens"),
    SH_INT("batch", F(batch), "N", 1, 1 << 16, "texts to write at once; when one ends, the next takes its slot\n"
        "(default: as many as fit in memory, up to 256)"),
    SH_INT("max-tokens", F(max_tokens), "N", 1, 1 << 22, "tokens to write (default: 128); fewer if the model's context "
                                                         "ends\n"
                                                         "first"),
    SH_SAMPLER_OPTS(F, 1e6, 1 << 30, 1e-9),
    SH_FLAG("stop-at-end", F(stop_at_end), "stop at the end token (config.json: eos_token_id)"),
    SH_POLICY_OPT(F(policy), "eviction policy (see shears info policies; default: full)"),
    SH_TEXT("budget", F(budget), "B", "tokens per KV head (17) or a fraction of prompt and --max-tokens\n"
        "together (0.2)"),
    SH_TEXT("plan", F(plan), "FILE", "a shears plan file: policy, prefill and a budget for every head, as\n"
        "shares of prompt and --max-tokens together"),
    SH_PREFILL_OPT(F(live.prefill), "the\nplan's, or 0"),
    SH_TEXT("prefill-mode", F(live.prefill_mode), "blocks|once|stream", "how a prompt longer than the budget is read. "
        "blocks (default): each\nblock attends to itself and what is kept, then the cache is\ncompressed; once: one "
        "block, compressed once; stream: token by token"),
    SH_INT("prefill-block", F(live.prefill_block), "N", 1, 1 << 22, "tokens per block (default: 128)"),
    SH_TEXT("positions", F(live.positions), "original|cache", "number tokens by their place in the text (default) or "
        "in the cache;\ncache lets a text outgrow the model's context length"),
    SH_KV_OPTS(L),
    SH_KV_KEYS_OPTS(L),
    SH_WEIGHT_OPTS(L),
    SH_ACTIVATION_OPT(L(activation_bits), "16"),
    SH_FLAG("repetition", F(repetition), "report how much the text repeats itself and how similar adjacent\n"
        "attention rows are"),
    SH_DUMP_OPTS(F),
    SH_DEVICE_MEMORY_OPT(F(live.device_memory)),
    SH_TIMING_OPT(F(timing)),
    {0}};

static const struct sh_generate_args defaults = {
    .live = {.dtype = "f32", .weight_bits = 16, .kv_group = 64, .prefill_mode = "blocks"}, .max_tokens = 128,
    .top_p = 1};

static int is_end(const void *prompts, int32_t token)
{
    return sh_prompts_is_end(prompts, token);
}

/* The plan's prefill, unless another was given or the whole prompt is read first. */
static int read_plan(struct sh_generate_job *w, struct sh_err *e)
{
    if (sh_plan_read(&w->plan, w->a->plan, e))
        return -1;
    w->policy = w->plan.policy;
    if (!w->a->live.prefill && w->live.prefill_mode != SH_PREFILL_ONCE)
        w->live.prefill = w->plan.prefill;
    return 0;
}

static int read_policy(struct sh_generate_job *w, struct sh_err *e)
{
    const struct sh_generate_args *a = w->a;
    if (a->plan && (a->policy || a->budget))
        return sh_misused(e, "--plan FILE sets policy and budgets itself: remove %s",
                          a->policy ? "--policy" : "--budget");
    if (a->plan)
        return read_plan(w, e);
    if (a->budget && !a->policy)
        return sh_misused(e, "--budget requires --policy NAME");
    if (sh_policy_parse(a->policy ? a->policy : "full", &w->policy, e))
        return sh_err_prefix(e, "--policy");
    return a->budget ? sh_read_budget(a->budget, &w->budget, e) : 0;
}

static int read_options(struct sh_generate_job *w, const struct sh_list *positional, struct sh_err *e)
{
    const struct sh_generate_args *a = w->a;
    const struct sh_file_use files[] = {{"--dump-kept", a->dump, 1}, {"--prompt-file", a->prompt_file, 0},
                                        {"--tokens", a->tokens, 0}, {"--jsonl", a->jsonl, 0},
                                        {"--plan", a->plan, 0}, {0}};
    if (sh_args_none("generate", positional, e) || sh_live_read(&w->live, &a->live, w->common, "generate", e) ||
        sh_files_apart(files, e) || read_policy(w, e))
        return -1;
    if (!a->temperature && (a->top_k || a->top_p < 1))
        return sh_misused(e, "--top-k and --top-p require a --temperature above 0");
    if (w->common->columns && sh_common_format(w->common) == SH_OUT_TEXT)
        return sh_misused(e, "--columns requires --csv: without it stdout is the text");
    if (a->field && !a->jsonl)
        return sh_misused(e, "--field requires --jsonl FILE");
    if (a->dump_every && !a->dump)
        return sh_misused(e, "--dump-every requires --dump-kept FILE");
    w->is_many = a->jsonl || (a->tokens && a->count);
    if (!w->is_many && (a->count || a->batch))
        return sh_misused(e, "--%s requires several prompts: --jsonl FILE, or --tokens FILE with --count",
                          a->count ? "count" : "batch");
    w->prompts = (struct sh_prompts){.is_bounded = w->live.positions == SH_POSITIONS_ORIGINAL, .text = a->prompt,
                                     .file = a->prompt_file, .tokens = a->tokens, .jsonl = a->jsonl,
                                     .field = a->field ? a->field : "text", .count = (int)a->count,
                                     .wants_ends = a->stop_at_end};
    return 0;
}

/* The texts to write, limited to the model's positions. */
static int plan_texts(struct sh_generate_job *w, int *longest_prompt, int *longest, struct sh_err *e)
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
    if (w->live.prefill >= *longest && (a->budget || a->plan) && !w->common->quiet)
        fprintf(stderr, "shears: %s %d exceeds the text's %d tokens: nothing will be evicted\n",
                a->live.prefill ? "--prefill" : "the plan's prefill,", w->live.prefill, *longest);
    return 0;
}

static int check_plan(const struct sh_generate_job *w, const struct sh_arch *arch, struct sh_err *e)
{
    char fingerprint[24];
    int *heads = sh_live_heads(arch);
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, sh_model_fingerprint(w->live.model));
    int bad = sh_plan_check_model(&w->plan, w->a->plan, w->a->live.model, fingerprint, arch->n_layer, arch->n_kv_head,
                                  heads, e);
    free(heads);
    return bad;
}

static int open_all(struct sh_generate_job *w, struct sh_err *e)
{
    const struct sh_generate_args *a = w->a;
    int longest_prompt = 0, longest = 0, block = 0;
    w->writing = (struct sh_writing){.live = &w->live, .cache = {&w->policy, a->budget ? &w->budget : NULL, 0,
                                                            a->plan ? &w->plan : NULL},
                                     .sampler = {a->temperature, (int)a->top_k, a->top_p, w->live.seed},
                                     .batch = (int)a->batch, .is_end = a->stop_at_end ? is_end : NULL,
                                     .is_end_to = &w->prompts, .dump = a->dump ? &w->dump : NULL,
                                     .wants_likeness = a->repetition, .on_token = sh_generate_show_token,
                                     .stops = sh_generate_show_stops, .to = w};
    if (sh_live_open(&w->live, w->common, e))
        return -1;
    const struct sh_arch *arch = sh_model_arch(w->live.model);
    if (a->plan && check_plan(w, arch, e))
        return -1;
    unsigned long long since = sh_stage_begin(w->live.devices.stages);
    if (sh_prompts_open(&w->prompts, a->live.model, arch, e))
        return -1;
    sh_stage_end(w->live.devices.stages, SH_STAGE_TOKENS, since, 1);
    if (a->stop_at_end && !w->prompts.n_end)
        return sh_fail(e, "%s: --stop-at-end: config.json has no eos_token_id", a->live.model);
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

static int write_texts(struct sh_generate_job *w, struct sh_err *e)
{
    sh_generate_show_begin(w);
    int bad = sh_generate_show_end(w, sh_write(&w->writing, w->text, w->n, e), e);
    return sh_eval_dump_end(&w->dump, bad, e);
}

static void close_all(struct sh_generate_job *w)
{
    for (int i = 0; i < w->n; i++)
        sh_written_free(&w->text[i]);
    free(w->text);
    sh_prompts_close(&w->prompts);
    sh_plan_clear(&w->plan);
    sh_live_close(&w->live);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct sh_generate_job w = {.a = args, .common = common};
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
             "        [--policy NAME[:knob=value,...]] [--budget B] [--plan FILE] [--max-tokens N] [options]",
    .summary = "generate text from a model under a KV budget",
    .about = "Continues a prompt token by token with a real cache of fixed size. Prompt tokens are evicted after\n"
             "each block of the prompt, generated tokens as they are written. The text goes to stdout as it grows,\n"
             "in whole characters, and its cost to stderr; with --json both are one object on stdout. The same seed\n"
             "gives the same text.\n"
             "\n"
             "Many prompts (--jsonl, or --tokens with --count) are continued together: when a text ends, the next\n"
             "prompt takes its place in the cache. Each text is the same as if it were written alone: exactly on the\n"
             "CPU with unquantised weights in f32 or f16; only up to rounding with --weight-bits 8|4, on processors\n"
             "that multiply bf16, and on a GPU: there the rounding of products depends on how many tokens go through\n"
             "a layer together, and may change a token. Texts are printed in the order of their prompts, each after\n"
             "a line == FILE:LINE (lines are counted from 0).\n"
             "\n"
             "  shears generate --model opt-125m --prompt \"Once upon a time\" --policy h2o --budget 64\n"
             "  shears generate --model opt-125m --jsonl prompts.jsonl --policy h2o --budget 0.2 --json",
    .opts = opts, .args_bytes = sizeof(struct sh_generate_args), .defaults = &defaults, .run = run};
