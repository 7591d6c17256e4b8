/* SPDX-License-Identifier: Apache-2.0 */
/* shears generate: text from a model that reads and writes under a KV budget. */
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/cli/commands.h"
#include "src/cli/eval_dump.h"
#include "src/cli/live.h"
#include "src/cli/paths.h"
#include "src/cli/prompt.h"
#include "src/engine/repetition.h"
#include "src/engine/sampler.h"
#include "src/engine/text_stream.h"

struct generate_args {
    struct sh_live_options live;
    const char *prompt, *prompt_file, *tokens, *policy, *budget, *dump;
    long long max_tokens, top_k, dump_every;
    double temperature, top_p;
    int stop_at_end, repetition;
};

#define F(name) offsetof(struct generate_args, name)
static const struct sh_opt opts[] = {
    {"model", SH_OPT_TEXT, F(live.model), "DIR", "checkpoint folder, or a .gguf file", 0, 0, 0},
    {"prompt", SH_OPT_TEXT, F(prompt), "TEXT", "what to go on from", 0, 0, 0},
    {"prompt-file", SH_OPT_TEXT, F(prompt_file), "FILE", "the same from a file, every byte of it", 0, 0, 0},
    {"tokens", SH_OPT_TEXT, F(tokens), "FILE", "the same as a JSON array of token ids; the first line counts", 0, 0, 0},
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
     "(default: 32 with --dtype f32, else 16)", 4, 32, 0},
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
     "8, 4: codes in groups of 64 (the output matrix: 8)", 0, 0, 0},
    {"weight-prune", SH_OPT_REAL, F(live.weight_prune), "F",
     "set the share F of the smallest weights (by magnitude) of\n"
     "each matrix of the layers to 0 (default: 0)", 0, 0.99, 0},
    {"repetition", SH_OPT_FLAG, F(repetition), NULL,
     "tell how much the text repeats itself, and how much alike\nneighbouring rows of its attention are", 0, 0, 0},
    {"dump-kept", SH_OPT_TEXT, F(dump), "FILE", "kept positions as JSON lines, one per layer, head and step", 0, 0, 0},
    {"dump-every", SH_OPT_INT, F(dump_every), "N", "only every so many steps (default: 1)", 1, 1 << 22, 0},
    {"device-memory", SH_OPT_BYTES, F(live.device_memory), "BYTES",
     "what may be taken of the device (default: what is free)", 0, 0, 0},
    {0}};
#undef F

static void preset(void *args)
{
    struct generate_args *a = args;
    sh_live_preset(&a->live);
    a->live.prefill_mode = "blocks";
    a->max_tokens = 128;
    a->top_p = 1;
    a->dump_every = 1;
}

struct work {
    const struct generate_args *a;
    const struct sh_common *common;
    struct sh_live live;
    struct sh_prompt prompt;
    struct sh_policy_spec policy;
    struct sh_budget budget;
    struct sh_sampler sampler;
    struct sh_session *session;
    struct sh_eval_dump dump;
    struct sh_row_likeness *likeness;   /* [n_layer * n_kv_head]; NULL: not wanted                */
    struct sh_text_stream stream;
    int32_t *made;                      /* [most]                                                 */
    int n_made, most, streams;          /* streams: text goes to stdout as it comes               */
    const char *stopped;
    double prompt_s, made_s;            /* seconds of steps                                       */
};

static int read_options(struct work *w, const struct sh_list *positional, struct sh_err *e)
{
    const struct generate_args *a = w->a;
    struct sh_budget all[SH_MAX_BUDGETS];
    int n = 0;
    if (positional->n)
        return sh_misused(e, "generate: \"%.80s\" belongs to no option", positional->at[0]);
    const struct sh_file_use files[] = {
        {"--dump-kept", a->dump, 1}, {"--prompt-file", a->prompt_file, 0}, {"--tokens", a->tokens, 0}, {0}};
    if (sh_live_read(&w->live, &a->live, w->common, "generate", e) || sh_files_apart(files, e))
        return -1;
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
    if (!a->temperature && (a->top_k || a->top_p < 1))
        return sh_misused(e, "--top-k and --top-p draw at random: give a --temperature above 0");
    w->sampler = (struct sh_sampler){a->temperature, (int)a->top_k, a->top_p, w->live.seed};
    w->prompt = (struct sh_prompt){.is_bounded = w->live.positions == SH_POSITIONS_ORIGINAL,
                                   .text = a->prompt, .file = a->prompt_file, .tokens = a->tokens};
    w->streams = sh_common_format(w->common) == SH_OUT_TEXT;
    return 0;
}

/* What the query of a token attends over goes to whoever wants to see it. */
static void watch(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct work *w = to;
    if (w->dump.kept)
        sh_eval_dump_kept(&w->dump, sequence, layer, head, t, c, row);
    if (w->likeness && (size_t)t >= w->prompt.ids.n)
        sh_row_likeness_add(&w->likeness[layer * w->live.resident->arch->n_kv_head + head], t, c->pos, row, c->n_slot);
}

static int open_all(struct work *w, struct sh_err *e)
{
    const struct generate_args *a = w->a;
    if (sh_live_open(&w->live, w->common, e))
        return -1;
    const struct sh_arch *arch = sh_model_arch(w->live.model);
    if (sh_prompt_open(&w->prompt, a->live.model, arch, e))
        return -1;
    if (a->stop_at_end && !w->prompt.n_end)
        return sh_fail(e, "%s: --stop-at-end: config.json names no eos_token_id", a->live.model);
    int n_prompt = (int)w->prompt.ids.n, room = arch->max_pos - n_prompt + 1;   /* the last token is not read */
    w->most = a->max_tokens < room || !w->prompt.is_bounded ? (int)a->max_tokens : room;
    int n_token = n_prompt + w->most - 1;
    if (a->live.prefill >= n_token && a->budget && !w->common->quiet)
        fprintf(stderr, "shears: --prefill %lld reaches beyond the text's %d tokens: nothing is ever dropped\n",
                a->live.prefill, n_token);
    if (sh_live_read_prompt(&w->live, a->budget ? &w->budget : NULL, n_prompt, n_token, e) ||
        sh_live_load(&w->live, n_token, n_prompt, e))
        return -1;
    w->session = sh_live_session(&w->live, &w->policy, a->budget ? &w->budget : NULL, 1, n_token, e);
    if (!w->session)
        return -1;
    if (w->sampler.temperature <= 0)
        sh_session_only_best(w->session);
    w->made = xcalloc((size_t)w->most, sizeof *w->made);
    if (a->repetition)
        w->likeness = xcalloc((size_t)(arch->n_layer * arch->n_kv_head), sizeof *w->likeness);
    if (a->repetition || a->dump)
        sh_session_set_watch(w->session, watch, w);
    w->dump = (struct sh_eval_dump){.kept_path = a->dump, .every = (int)a->dump_every, .n_vocab = arch->n_vocab};
    return sh_eval_dump_begin(&w->dump, 0, e);
}

/* ---- the text ---- */

/* Ids where there is no tokenizer. */
static void show(struct work *w, int32_t token)
{
    size_t bytes;
    if (!w->streams)
        return;
    if (!w->prompt.tokenizer) {
        printf("%s%d", w->n_made > 1 ? " " : "", token);
    } else {
        char *text = sh_text_stream_add(&w->stream, token, &bytes);
        fwrite(text, 1, bytes, stdout);
        free(text);
    }
    fflush(stdout);
}

static int show_rest(struct work *w, struct sh_err *e)
{
    size_t bytes = 0;
    if (!w->streams)
        return 0;
    char *text = w->prompt.tokenizer ? sh_text_stream_rest(&w->stream, &bytes) : NULL;
    if (bytes)
        fwrite(text, 1, bytes, stdout);
    free(text);
    putchar('\n');
    return fflush(stdout) || ferror(stdout) ? sh_fail(e, "the text cannot be written to stdout") : 0;
}

/* What the prompt went through the cache as. */
static const char *way(const struct work *w)
{
    static char text[64];
    if (w->live.prefill_mode == SH_PREFILL_BLOCKS && w->live.block < (int)w->prompt.ids.n) {
        snprintf(text, sizeof text, "in blocks of %d", w->live.block);
        return text;
    }
    return w->live.prefill_mode == SH_PREFILL_STREAM ? "token by token" : "as one block";
}

static int step(struct work *w, const int32_t *tokens, int n, int is_prompt, double *seconds, struct sh_err *e)
{
    double began = sh_now_s();
    int bad = (is_prompt ? sh_session_prompt : sh_session_step)(w->session, tokens, (int[]){0, n}, NULL, NULL, e);
    *seconds += sh_now_s() - began;
    return bad;
}

static int write_tokens(struct work *w, struct sh_choice *room, struct sh_err *e)
{
    int n_vocab = w->live.resident->arch->n_vocab;
    w->stopped = w->most < w->a->max_tokens ? "positions" : "length";
    if (step(w, w->prompt.ids.at, (int)w->prompt.ids.n, 1, &w->prompt_s, e))
        return -1;
    for (;;) {
        int32_t token = w->sampler.temperature > 0
                            ? sh_sampler_pick(&w->sampler, sh_session_logits(w->session, 0), n_vocab,
                                              (uint64_t)w->n_made, room, e)
                            : sh_session_best(w->session, 0, e);
        if (token < 0)
            return sh_err_prefix(e, "behind token %d", (int)w->prompt.ids.n + w->n_made - 1);
        w->made[w->n_made++] = token;
        if (w->a->stop_at_end && sh_prompt_is_end(&w->prompt, token)) {
            w->stopped = "end";
            return 0;
        }
        show(w, token);
        if (sh_interrupted())
            return sh_fail(e, "interrupted after %d tokens", w->n_made);
        if (w->n_made == w->most || (w->streams && ferror(stdout)))
            return 0;
        if (step(w, &token, 1, 0, &w->made_s, e))
            return -1;
    }
}

static int write_text(struct work *w, struct sh_err *e)
{
    struct sh_choice *room = xcalloc((size_t)w->live.resident->arch->n_vocab, sizeof *room);
    struct sh_err later;
    if (w->prompt.tokenizer)
        sh_text_stream_begin(&w->stream, w->prompt.tokenizer, w->prompt.ids.at, w->prompt.ids.n);
    int bad = write_tokens(w, room, e), rest = w->n_made ? show_rest(w, &later) : 0;
    if (rest && !bad) {
        *e = later;
        bad = -1;
    }
    sh_text_stream_end(&w->stream);
    free(room);
    return sh_eval_dump_end(&w->dump, bad, e);
}

/* ---- what it took ---- */

struct figures {
    struct sh_kv_bytes bytes;
    size_t all_bytes;
    double budget, kept;                /* means over heads, at the end                           */
    int peak;
    size_t block_bytes, activation_bytes;       /* beside the cache, while the prompt was read    */
    double prompt_rate, rate;           /* tokens a second                                        */
    double likeness, chance;
};

static struct figures take_figures(const struct work *w)
{
    struct sh_kv_kept kept = sh_session_kept(w->session);
    int n = w->live.resident->arch->n_layer * w->live.resident->arch->n_kv_head;
    struct figures f = {.bytes = sh_session_bytes(w->session), .budget = kept.budget, .kept = kept.kept,
                        .peak = kept.peak};
    struct sh_row_likeness all = {0};
    f.all_bytes = sh_kv_bytes_sum(&f.bytes);
    f.block_bytes = sh_session_prompt_bytes(w->session);
    f.activation_bytes = sh_activations_bytes(w->live.resident->arch, w->live.resident->setup.rows, w->live.dtype);
    for (int i = 0; i < n && w->likeness; i++) {
        all.sum += w->likeness[i].sum;
        all.chance += w->likeness[i].chance;
        all.pairs += w->likeness[i].pairs;
    }
    f.likeness = all.sum / (double)all.pairs;           /* NaN without a pair */
    f.chance = all.chance / (double)all.pairs;
    f.prompt_rate = (double)w->prompt.ids.n / w->prompt_s;
    f.rate = (w->n_made - 1) / w->made_s;               /* the first token comes with the prompt */
    return f;
}

static void tell(const struct work *w, const struct figures *f)
{
    const int32_t *ids = w->made;
    fprintf(stderr, "shears: prompt of %zu tokens %s through the cache at %.1f tokens/s; %d written",
            w->prompt.ids.n, way(w), f->prompt_rate, w->n_made);
    if (w->n_made > 1)
        fprintf(stderr, " at %.1f tokens/s", f->rate);
    fprintf(stderr, "; cache %zu bytes, %.1f of %d tokens a head kept at the end, %d at most\n", f->all_bytes,
            f->kept, sh_session_length(w->session, 0), f->peak);
    if (w->live.block)
        fprintf(stderr, "shears: while the prompt was read, blocks took %zu bytes beside the cache, activations %zu\n",
                f->block_bytes, f->activation_bytes);
    if (!strcmp(w->stopped, "positions"))
        fprintf(stderr, "shears: stopped at the model's %d positions; with --positions cache it would go on\n",
                w->live.resident->arch->max_pos);
    if (w->likeness)
        fprintf(stderr, "shears: rep-4 %.4f, distinct-1 %.4f, distinct-2 %.4f, longest repeat %d tokens; "
                "neighbouring rows alike %.4f (by chance %.4f)\n", sh_repetition(ids, w->n_made, 4),
                sh_distinct(ids, w->n_made, 1), sh_distinct(ids, w->n_made, 2), sh_longest_repeat(ids, w->n_made),
                f->likeness, f->chance);
}

/* The text of the written tokens by themselves; a NUL in it, which would end a C string, is U+FFFD. */
static void put_text(struct sh_out *o, const struct work *w)
{
    size_t bytes, n = 0;
    int shown = w->n_made - !strcmp(w->stopped, "end");
    if (!w->prompt.tokenizer) {
        sh_out_text(o, "text", "text", NULL);
        return;
    }
    char *text = sh_tokenizer_decode(w->prompt.tokenizer, w->made, (size_t)shown, &bytes);
    char *safe = xmalloc(3 * bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        if (text[i])
            safe[n++] = text[i];
        else
            for (const char *mark = "\xEF\xBF\xBD"; *mark; mark++)
                safe[n++] = *mark;
    safe[n] = '\0';
    sh_out_text(o, "text", "text", safe);
    free(safe);
    free(text);
}

static void put_repetition(struct sh_out *o, const struct work *w, const struct figures *f)
{
    const int32_t *ids = w->made;
    sh_out_real(o, "rep_4", "rep-4", sh_repetition(ids, w->n_made, 4), 4);
    sh_out_real(o, "distinct_1", "distinct-1", sh_distinct(ids, w->n_made, 1), 4);
    sh_out_real(o, "distinct_2", "distinct-2", sh_distinct(ids, w->n_made, 2), 4);
    sh_out_int(o, "longest_repeat_tokens", "longest repeat", sh_longest_repeat(ids, w->n_made));
    sh_out_real(o, "row_likeness", "neighbouring rows alike", f->likeness, 4);
    sh_out_real(o, "row_likeness_chance", "by chance", f->chance, 4);
}

static int report(const struct work *w, const struct figures *f, struct sh_err *e)
{
    char knobs[SH_POLICY_TEXT];
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "model", "model", sh_model_name(w->live.model));
    sh_out_text(o, "backend", "backend", w->live.devices.backend->name);
    sh_out_text(o, "dtype", "dtype", w->a->live.dtype);
    sh_out_text(o, "policy", "policy", w->policy.policy->name);
    sh_out_text(o, "knobs", "knobs", sh_policy_knobs(&w->policy, knobs));
    sh_out_real(o, "budget_tokens", "budget", f->budget, 1);
    sh_out_int(o, "kv_bits", "bits", w->live.format.bits);
    sh_out_int(o, "prefill", "prefill", w->a->live.prefill);
    sh_out_text(o, "prefill_mode", "prompt", w->a->live.prefill_mode);
    sh_out_int(o, "prefill_block", "tokens of a block", w->live.block);
    sh_out_text(o, "stream", "the prompt goes through the cache", way(w));
    sh_out_text(o, "positions", "positions", w->live.positions == SH_POSITIONS_CACHE ? "cache" : "original");
    sh_out_int(o, "prompt_tokens", "prompt tokens", (long long)w->prompt.ids.n);
    sh_out_int(o, "generated_tokens", "written tokens", w->n_made);
    sh_out_text(o, "stopped", "stopped by", w->stopped);
    put_text(o, w);
    sh_out_real(o, "prompt_tokens_per_s", "prompt tokens/s", f->prompt_rate, 1);
    sh_out_real(o, "tokens_per_s", "tokens/s", f->rate, 1);
    sh_out_int(o, "kv_bytes", "cache bytes", (long long)f->all_bytes);
    sh_live_put_peak(o, &w->live.devices);
    sh_out_int(o, "kv_policy_bytes", "of them the policy's", (long long)f->bytes.policy);
    sh_out_int(o, "prompt_block_bytes", "blocks of the prompt, beside it", (long long)f->block_bytes);
    sh_out_int(o, "activation_bytes", "activations", (long long)f->activation_bytes);
    sh_out_real(o, "kept_tokens", "kept at the end", f->kept, 1);
    sh_out_int(o, "peak_tokens", "at most", f->peak);
    if (w->likeness)
        put_repetition(o, w, f);
    sh_out_list(o, "ids", "tokens");
    for (int i = 0; i < w->n_made; i++) {
        sh_out_item(o);
        sh_out_int(o, "id", "id", w->made[i]);
        sh_out_text(o, "piece", "piece",
                    w->prompt.tokenizer ? sh_tokenizer_piece(w->prompt.tokenizer, w->made[i]) : NULL);
    }
    sh_out_end(o);
    int bad = sh_common_write(w->common, o, e);
    sh_out_free(o);
    return bad;
}

static void close_all(struct work *w)
{
    int n = w->likeness ? w->live.resident->arch->n_layer * w->live.resident->arch->n_kv_head : 0;
    for (int i = 0; i < n; i++)
        sh_row_likeness_clear(&w->likeness[i]);
    free(w->likeness);
    free(w->made);
    sh_session_free(w->session);
    sh_prompt_close(&w->prompt);
    sh_live_close(&w->live);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct work w = {.a = args, .common = common};
    int bad = read_options(&w, positional, e) || open_all(&w, e) || write_text(&w, e);
    if (!bad) {
        struct figures f = take_figures(&w);
        if (!common->quiet)
            tell(&w, &f);
        bad = w.streams ? 0 : report(&w, &f, e);
    }
    close_all(&w);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_generate = {
    .name = "generate",
    .usage = "--model DIR (--prompt TEXT | --prompt-file FILE | --tokens FILE) [--policy NAME[:knob=value,...]]\n"
             "        [--budget B] [--max-tokens N] [--temperature F] [options]",
    .summary = "text from a model under a KV budget",
    .about = "Goes on from a prompt, token by token, through a real cache of fixed size; prompt and text alike are\n"
             "evicted from it, the text as it comes, the prompt behind each of its blocks. The text is written to\n"
             "stdout as it grows, in whole characters, and what it took to stderr; with --json both are one object on\n"
             "stdout. The same seed gives the same text.\n\n"
             "  shears generate --model opt-125m --prompt \"Once upon a time\" --policy h2o --budget 64",
    .opts = opts,
    .args_bytes = sizeof(struct generate_args),
    .preset = preset,
    .run = run,
};
