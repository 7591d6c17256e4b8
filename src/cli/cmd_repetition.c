/* SPDX-License-Identifier: Apache-2.0 */
/* shears repetition: does repeated attention go along with repeated text, and what changes if the cache keeps
 * random tokens instead? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/cli/options.h"
#include "src/app/common/text_source.h"
#include "src/app/generate/generate_batch.h"
#include "src/app/store/results.h"
#include "src/engine/eval.h"
#include "traces/store.h"

struct repetition_args {
    struct sh_live_options live;
    const char *jsonl, *field, *tokens, *policy, *budget, *db;
    struct sh_list text;
    long long length, count, least, prompt, max_tokens, top_k;
    double temperature, top_p;
};

#define F(name) offsetof(struct repetition_args, name)
#define L(name) F(live.name)
static const struct sh_opt opts[] = {
    SH_MODEL_OPT(F(live.model)),
    SH_TEXT_OPTS(F, 2, "16"),
    SH_INT("prompt-tokens", F(prompt), "N", 1, 1 << 22,
        "tokens of each sequence used as the prompt (default: half of it)"),
    SH_INT("max-tokens", F(max_tokens), "N", 2, 1 << 22, "tokens to write after each prompt (default: 128)"),
    SH_POLICY_OPT(F(policy), "eviction policy (see shears info policies)"),
    SH_TEXT("budget", F(budget), "B", "tokens per KV head (64) or a fraction of prompt and output together\n(0.2)"),
    SH_SAMPLER_OPTS(F, 100, 1 << 24, 0),
    SH_PREFILL_OPT(F(live.prefill), "0"),
    SH_KV_OPTS(L),
    SH_WEIGHT_OPTS(L),
    SH_ACTIVATION_OPT(L(activation_bits), "16"),
    SH_TEXT("db", F(db), "FILE", "store for the results, which shears report reads"),
    SH_DEVICE_MEMORY_OPT(F(live.device_memory)),
    {0}};

static const struct repetition_args defaults = {
    .live = {.dtype = "f32", .weight_bits = 16, .kv_group = 64}, .field = "text", .count = 16, .max_tokens = 128,
    .top_p = 1};

enum condition { FULL, POLICY, UNIFORM, N_CONDITION };
static const char *const condition_name[N_CONDITION] = {"full cache", "policy", "uniform retention"};
static const char *const condition_key[N_CONDITION] = {"full", "policy", "uniform"};

struct work {
    const struct repetition_args *a;
    const struct sh_common *common;
    struct sh_live live;
    struct sh_text_source source;
    struct sh_policy_spec spec[N_CONDITION];
    struct sh_budget budget;
    struct sh_sampler sampler;
    struct sh_written *text;            /* [texts]: those that are being written                  */
    double (*at)[N_CONDITION][SH_N_REPETITION_METRIC];        /* [texts]                                        */
    struct sh_eval_total total[N_CONDITION];    /* what the texts themselves cost                 */
    struct sh_progress progress;
    double done;
};

/* Uniform retention: a random sample, with the policy's sinks, recent tokens and budget, so that only the part
 * that attention decides differs. */
static int read_policies(struct work *w, struct sh_err *e)
{
    char uniform[96];
    if (sh_policy_parse("full", &w->spec[FULL], e))
        return -1;
    if (sh_policy_parse(w->a->policy, &w->spec[POLICY], e))
        return sh_err_prefix(e, "--policy");
    snprintf(uniform, sizeof uniform, "random:sinks=%.0f,recent=%.17g", sh_policy_knob(&w->spec[POLICY], "sinks", 0),
             sh_policy_knob(&w->spec[POLICY], "recent", 0));
    return sh_policy_parse(uniform, &w->spec[UNIFORM], e) ? -1 : sh_read_budget(w->a->budget, &w->budget, e);
}

static int read_options(struct work *w, const struct sh_list *positional, struct sh_err *e)
{
    const struct repetition_args *a = w->a;
    const struct sh_need needs[] = {{"--policy NAME", a->policy != NULL}, {"--budget B", a->budget != NULL}, {0}};
    if (sh_args_none("repetition", positional, e) ||
        sh_live_read(&w->live, &a->live, w->common, "repetition", e) || sh_args_need("repetition", needs, e))
        return -1;
    if ((a->text.n > 0) + (a->jsonl != NULL) + (a->tokens != NULL) != 1)
        return sh_misused(e, "repetition requires one of --text, --jsonl and --tokens");
    if (!(a->temperature > 0) && (a->top_k || a->top_p < 1))
        return sh_misused(e, "--top-k and --top-p require a --temperature above 0");
    w->sampler = (struct sh_sampler){a->temperature, (int)a->top_k, a->top_p, w->live.seed};
    return read_policies(w, e);
}

static int prompt_of(const struct work *w, int i)
{
    int n = w->source.texts.sequence[i].n_tokens;
    return w->a->prompt ? (int)w->a->prompt : n / 2;
}

static int open_all(struct work *w, struct sh_err *e)
{
    const struct repetition_args *a = w->a;
    w->source = (struct sh_text_source){.path = a->live.model, .text = &a->text, .jsonl = a->jsonl, .field = a->field,
                                        .tokens = a->tokens, .length = (int)a->length, .count = (int)a->count,
                                        .least = (int)a->least};
    if (sh_text_source_open(&w->source, e) || sh_live_open(&w->live, w->common, e))
        return -1;
    int longest = 0, max_pos = sh_model_arch(w->live.model)->max_pos;
    for (int i = 0; i < w->source.texts.n; i++) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[i];
        int n = prompt_of(w, i), all = n + (int)a->max_tokens;
        if (n < 1 || n > q->n_tokens)
            return sh_misused(e, "%s: found %d tokens, expected more than the prompt's %d", q->source, q->n_tokens, n);
        if (all > max_pos)
            return sh_misused(e, "%s: a prompt of %d tokens and %lld more exceed the model's %d positions", q->source,
                              n, a->max_tokens, max_pos);
        longest = all > longest ? all : longest;
        longest = q->n_tokens > longest ? q->n_tokens : longest;
    }
    w->at = xcalloc((size_t)w->source.texts.n, sizeof *w->at);
    w->text = xcalloc((size_t)w->source.texts.n, sizeof *w->text);
    return sh_live_load(&w->live, longest, longest < 256 ? longest : 256, 0, e);
}

/* ---- one cache ---- */

static void on_token(void *to, int text)
{
    struct work *w = to;
    (void)text;
    sh_progress_at(&w->progress, ++w->done, "");
}

static void take_figures(const struct sh_written *t, double *at)
{
    at[SH_REP_4] = sh_repetition(t->made, t->n_made, 4);
    at[SH_REP_DISTINCT_1] = sh_distinct(t->made, t->n_made, 1);
    at[SH_REP_DISTINCT_2] = sh_distinct(t->made, t->n_made, 2);
    at[SH_REP_LONGEST] = sh_longest_repeat(t->made, t->n_made);
    at[SH_REP_LIKENESS] = t->likeness.sum / (double)t->likeness.pairs;
    at[SH_REP_CHANCE] = t->likeness.chance / (double)t->likeness.pairs;
}

static int run_condition(struct work *w, int condition, struct sh_err *e)
{
    int n = w->source.texts.n, bad = 0;
    struct sh_writing writing = {.live = &w->live,
                                 .cache = {&w->spec[condition], condition == FULL ? NULL : &w->budget, 0},
                                 .sampler = w->sampler, .wants_likeness = 1, .on_token = on_token, .to = w};
    for (int i = 0; i < n && !bad; i++) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[i];
        w->text[i] = (struct sh_written){.name = q->source, .prompt = q->tokens, .n_prompt = prompt_of(w, i),
                                         .most = (int)w->a->max_tokens};
        bad = sh_writing_shape(&w->live, &writing.cache, &w->text[i], e) && sh_err_prefix(e, "%s", q->source);
    }
    bad = bad || sh_write(&writing, w->text, n, e);
    for (int i = 0; i < n; i++) {
        if (!bad)
            take_figures(&w->text[i], w->at[i][condition]);
        sh_written_free(&w->text[i]);
    }
    return bad ? -1 : 0;
}

/* The perplexity of the texts with each cache: what less repetition costs. */
static int read_texts(struct work *w, struct sh_err *e)
{
    struct sh_eval_cell cell[N_CONDITION - 1];
    for (int c = POLICY; c < N_CONDITION; c++)
        cell[c - 1] = (struct sh_eval_cell){.spec = &w->spec[c], .budget = w->budget, .format = w->live.format};
    struct sh_eval v = {.resident = w->live.resident, .cell = cell, .n_cell = N_CONDITION - 1,
                        .prefill = (int)w->a->live.prefill, .seed = w->live.seed, .watched = -1};
    for (int i = 0; i < w->source.texts.n; i++) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[i];
        struct sh_eval_text text = {.tokens = q->tokens, .n_token = q->n_tokens};
        struct sh_eval_total total[N_CONDITION];        /* the full cache's is the last one */
        if (sh_eval_check(&v, q->n_tokens, e) || sh_eval_read(&v, &text, 1, total, e) ||
            sh_eval_check_finite(&v, total, e))
            return sh_err_prefix(e, "%s", q->source);
        for (int c = 0; c < N_CONDITION; c++)
            sh_eval_total_add(&w->total[c], &total[(c + N_CONDITION - 1) % N_CONDITION]);
    }
    return 0;
}

static int run_all(struct work *w, struct sh_err *e)
{
    int n = w->source.texts.n, bad = read_texts(w, e);
    sh_progress_begin(&w->progress, "writing", "tokens", (double)n * N_CONDITION * (double)w->a->max_tokens,
                      w->common->quiet);
    for (int c = 0; c < N_CONDITION && !bad; c++)
        bad = run_condition(w, c, e);
    sh_progress_end(&w->progress);
    return bad ? -1 : 0;
}

/* ---- the answer ---- */

/* Mean and standard error over texts of a figure, or of its difference from another condition (-1: none). */
static struct sh_eval_mean over_texts(const struct work *w, int condition, int from, int f)
{
    int n = w->source.texts.n;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        double x = w->at[i][condition][f] - (from < 0 ? 0 : w->at[i][from][f]);
        sum += x;
        squares += x * x;
    }
    double mean = sum / n, variance = n > 1 ? fmax(squares - sum * mean, 0) / (n - 1) : (double)NAN;
    return (struct sh_eval_mean){mean, sqrt(variance / n)};
}

/* Pearson's correlation, over texts, of row similarity in excess of chance with rep-4. */
static double correlation(const struct work *w, int condition)
{
    int n = w->source.texts.n;
    double x[2] = {0, 0}, xx[3] = {0, 0, 0};
    for (int i = 0; i < n; i++) {
        const double *f = w->at[i][condition], like = f[SH_REP_LIKENESS] - f[SH_REP_CHANCE];
        x[0] += like / n;
        x[1] += f[SH_REP_4] / n;
    }
    for (int i = 0; i < n; i++) {
        const double *f = w->at[i][condition], a = f[SH_REP_LIKENESS] - f[SH_REP_CHANCE] - x[0], b = f[SH_REP_4] - x[1];
        xx[0] += a * a;
        xx[1] += b * b;
        xx[2] += a * b;
    }
    return n > 2 && xx[0] > 0 && xx[1] > 0 ? xx[2] / sqrt(xx[0] * xx[1]) : (double)NAN;
}

/* One set of figures for each cache. */
static char *settings_of(const struct work *w, int c)
{
    const struct sh_live_options *live = &w->a->live;
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    return sh_settings_text("repetition", (const struct sh_value[]){
        {"model", .text = sh_model_name(w->live.model)}, {"texts", .text = w->source.texts.sequence[0].source},
        {"n_texts", .whole = w->source.texts.n}, {"length", .whole = w->a->length},
        {"prompt_tokens", .whole = w->a->prompt}, {"tokens_written", .whole = w->a->max_tokens},
        {"condition", .text = condition_key[c]}, {"policy", .text = w->spec[c].policy->name},
        {"knobs", .text = sh_policy_knobs(&w->spec[c], knobs)}, {"budget", .text = sh_budget_text(&w->budget, budget)},
        {"prefill", .whole = live->prefill}, {"kv_bits", .whole = w->live.format.bits},
        {"weight_bits", .whole = live->weight_bits}, {"weight_prune", .real = live->weight_prune},
        SH_ACTIVATION_SETTING(live->activation_bits, 16),
        {"temperature", .real = w->a->temperature}, {"top_k", .whole = w->a->top_k}, {"top_p", .real = w->a->top_p},
        {"seed", .whole = (long long)w->live.seed}, {0}});
}

static int keep_condition(const struct work *w, int c, struct sh_store *s, const char *settings, struct sh_err *e)
{
    struct sh_result_row row = {0};
    sh_result_add(&row, -1, sh_eval_perplexity(&w->total[c].all).value, "ppl");
    for (int f = 0; f < SH_N_REPETITION_METRIC; f++) {
        struct sh_eval_mean m = over_texts(w, c, -1, f);
        sh_result_add(&row, -1, m.value, "%s", sh_repetition_metrics.metric[f].key);
        sh_result_add(&row, -1, m.error, "%s_stderr", sh_repetition_metrics.metric[f].key);
    }
    sh_result_add(&row, -1, correlation(w, c), "correlation");
    return sh_result_keep(s, "repetition", settings, &row, e);
}

static int keep(const struct work *w, struct sh_store *s, struct sh_err *e)
{
    int bad = 0;
    for (int c = 0; c < N_CONDITION && s && !bad; c++) {
        char *settings = settings_of(w, c);
        bad = settings ? keep_condition(w, c, s, settings, e)
                       : sh_fail(e, "--db: a name is not valid UTF-8, which the store requires");
        free(settings);
    }
    return bad;
}

static void write_condition(const struct work *w, int c, struct sh_out *o)
{
    struct sh_eval_mean ppl = sh_eval_perplexity(&w->total[c].all);
    sh_out_item(o);
    sh_out_text(o, "condition", "cache", condition_key[c]);
    sh_policy_write(&w->spec[c], o);
    sh_out_real(o, "ppl", "ppl of the texts", ppl.value, 4);
    for (int f = 0; f < SH_N_REPETITION_METRIC; f++) {
        struct sh_eval_mean m = over_texts(w, c, -1, f);
        char *key = xasprintf("%s_stderr", sh_repetition_metrics.metric[f].key);
        sh_metric_write(&sh_repetition_metrics, f, m.value, o);
        if (f == SH_REP_4 || f == SH_REP_LIKENESS)
            sh_out_real(o, key, "+-", m.error, 4);
        free(key);
    }
    sh_out_real(o, "correlation", "correlation", correlation(w, c), 3);
}

static int report(const struct work *w, struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "model", "model", sh_model_name(w->live.model));
    sh_out_int(o, "texts", "texts", w->source.texts.n);
    sh_out_int(o, "tokens_written", "tokens written per prompt", w->a->max_tokens);
    sh_out_text(o, "budget", "budget", sh_budget_text(&w->budget, text));
    sh_out_list(o, "results", "means over texts (correlation: of row similarity beyond chance with rep-4)");
    for (int c = 0; c < N_CONDITION; c++)
        write_condition(w, c, o);
    sh_out_end(o);
    sh_out_list(o, "differences", "paired differences over texts");
    for (int c = POLICY; c < N_CONDITION; c++) {
        struct sh_eval_mean rep = over_texts(w, c, c - 1, SH_REP_4), like = over_texts(w, c, c - 1, SH_REP_LIKENESS);
        sh_out_item(o);
        sh_out_text(o, "from", "from", condition_name[c - 1]);
        sh_out_text(o, "to", "to", condition_name[c]);
        sh_out_real(o, "rep_4_change", "rep-4", rep.value, 4);
        sh_out_real(o, "rep_4_change_stderr", "+-", rep.error, 4);
        sh_out_real(o, "row_likeness_change", "row similarity", like.value, 4);
        sh_out_real(o, "row_likeness_change_stderr", "+-", like.error, 4);
    }
    sh_out_end(o);
    sh_out_note(o, "Uniform retention keeps the policy's sinks and recent tokens and fills the budget with a random\n"
                "sample, so differences are due to which tokens are kept, not to how many.");
    return sh_common_write(w->common, o, 0, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct work *w = xcalloc(1, sizeof *w);
    w->a = args;
    w->common = common;
    const char *db = w->a->db;
    struct sh_store *store = NULL;
    int bad = read_options(w, positional, e) || open_all(w, e) ||
              (db && !(store = sh_store_typed(sh_store_create(db, e), common->line))) || run_all(w, e) ||
              keep(w, store, e);
    int is_empty = bad && store && sh_store_was_made(store);
    sh_store_close(store);
    if (is_empty)
        sh_store_remove(db);
    bad = bad || report(w, e);
    free(w->at);
    free(w->text);
    sh_live_close(&w->live);
    sh_text_source_close(&w->source);
    free(w);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_repetition = {
    .name = "repetition",
    .usage = "--model DIR (--text FILE... | --jsonl FILE | --tokens FILE) --policy NAME --budget B [options]",
    .summary = "relate repeated attention to repeated text, with a random-retention control",
    .about = "Continues the beginning of each text with three caches: the full cache, one under the policy, and one\n"
             "of the same size that keeps a random sample of tokens. Reports for the output rep-4 (fraction of\n"
             "repeated 4-grams), distinct-n and the longest repeat; for its attention, how similar the pivotal sets\n"
             "of adjacent rows are, compared with chance; and the perplexity of the texts with each cache.\n\n"
             "  shears repetition --model opt-125m --text book.txt --length 256 --policy scissorhands --budget 64",
    .opts = opts, .args_bytes = sizeof(struct repetition_args), .defaults = &defaults, .run = run};
