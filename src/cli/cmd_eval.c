/* SPDX-License-Identifier: Apache-2.0 */
/* shears eval: perplexity and task accuracy of a model under a KV budget. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/read_number.h"
#include "src/jobs/mpi_job.h"
#include "src/cli/options.h"
#include "src/app/common/devices.h"
#include "src/app/eval/eval_dump.h"
#include "src/app/eval/eval_results.h"
#include "src/app/eval/eval_job.h"
#include "src/jobs/shard_option.h"
#include "src/cli/paths.h"
#include "src/app/plan/plan_file.h"
#include "src/app/common/text_source.h"

#define F(name) offsetof(struct sh_eval_args, name)
static const struct sh_opt opts[] = {
    SH_MODEL_OPT(F(model)),
    SH_TEXT_OPTS(F, 1, "all"),
    SH_TEXT("answers", F(answers), "NAME", "key of the answers in each --jsonl object, {\"at\": byte, \"answer\":\n"
                                           "text, \"said_at\": byte}: counts exact answers and measures the\n"
                                           "answers' perplexity"),
    SH_TEXT("by", F(by), "position|length|distance", "break the table down by position in the text, length of the text "
                                                     "or\n"
                                                     "tokens since the answer was said; --json has all three"),
    SH_TEXT("task", F(task), "NAME", "few-shot task: hellaswag, piqa, winogrande, mathqa, openbookqa,\n"
        "arc_easy, copa or lambada"),
    SH_TEXT("data", F(data), "FILE", "records of the task, one JSON object per line"),
    SH_INT("shots", F(shots), "N", 0, 1000, "examples before each question (default: 0): the first N records,\n"
        "which are not scored"),
    SH_TEXT("shots-data", F(shots_data), "FILE", "take the examples from this file and score all of --data"),
    SH_TEXT("items", F(items), "FILE", "write the log-likelihood of every choice as JSON lines"),
    SH_FLAG("stream", F(stream), "read texts token by token, as a server decodes: slower, the same result\n"
                                 "except for rounding (default: layer by layer, whole texts)"),
    SH_INT("batch", F(batch), "N", 1, 4096, "texts of equal length to read together (default: as many\n"
                                            "as fit, up to 64)"),
    SH_POLICIES_OPT(F(policy), "eviction policies (see shears info policies; default: the full cache\nonly)"),
    SH_BUDGETS_OPT(F(budget)),
    SH_LIST("plan", F(plan), "FILE...", "shears plan files: policy, prefill and a budget for every head;\n"
        "without --budget, only the plans are evaluated"),
    SH_PREFILL_OPT(F(prefill), "the\nplan's, or 0"),
    SH_INT("prefill-block", F(prefill_block), "N", 1, 1 << 22, "read the tokens of --prefill in blocks of N: each "
        "block\nattends to itself and the kept tokens, then the cache is\ncompressed (default: one block)"),
    SH_KV_OPTS(F),
    SH_KV_KEYS_OPTS(F),
    SH_WEIGHT_OPTS(F),
    SH_ACTIVATION_OPT(F(activation_bits), "32; 16 with --stream and --task"),
    SH_RESULTS_OPTS(F),
    SH_TEXT("logits", F(logits), "FILE.npy", "write the logits of every row, float32 [tokens, vocabulary]"),
    SH_DUMP_OPTS(F),
    SH_DEVICE_MEMORY_OPT(F(device_memory)),
    SH_TIMING_OPT(F(timing)),
    SH_PART_OPT(F(shard)),
    SH_CLUSTER_OPT(F(rank_timeout)),
    {0}};

static const struct sh_eval_args defaults = {
    .field = "text", .dtype = "f32", .weight_bits = 16, .kv_group = 64, .dump_every = 1, .prefill = -1,
    .rank_timeout = SH_RANK_TIMEOUT_S};

/* ---- the request ---- */

static int of_plan(const void *plan, int layer, int head, int n_token)
{
    return sh_plan_tokens(plan, layer, head, n_token);
}

static void add_plan(struct sh_eval_job *w, int number)
{
    const struct sh_plan *p = &w->plan[number];
    double share = sh_plan_mean(p) / p->n_token;
    int i = w->n_spec * w->n_budget + number;
    w->cell[i] = (struct sh_eval_cell){.spec = &p->policy, .budget = {.share = share}, .tokens = of_plan, .plan = p,
                                       .format = w->format};
    w->result[i].plan = basename(w->a->plan.at[number]);
    w->result[i].plan_hash = sh_plan_hash(p);
}

static void make_cells(struct sh_eval_job *w)
{
    int even = w->n_spec * w->n_budget;
    w->reference = (struct sh_eval_cell){.spec = &w->full, .budget = {.share = 1}, .format = {.bits = 32}};
    w->n = even + w->n_plan;
    w->cell = xcalloc((size_t)w->n, sizeof *w->cell);
    w->result = xcalloc((size_t)w->n + 1, sizeof *w->result);
    w->twin = xcalloc((size_t)w->n, sizeof *w->twin);
    for (int i = 0; i < w->n; i++) {
        w->result[i].cell = &w->cell[i];
        w->result[i].at[SH_E_TOKENS] = (double)NAN;     /* another shard's */
        w->twin[i] = i;
    }
    for (int i = 0; i < even; i++) {
        const struct sh_policy_spec *p = &w->spec[i / w->n_budget];
        w->cell[i] = (struct sh_eval_cell){.spec = p, .budget = w->budget[i % w->n_budget], .format = w->format};
        if (sh_live_keeps_all(p, sh_model_arch(w->source.model)->n_layer))
            w->twin[i] = strcmp(p->policy->name, "full") || w->format.bits < 32 ? i - i % w->n_budget : w->n;
    }
    for (int i = 0; i < w->n_plan; i++)
        add_plan(w, i);
    w->result[w->n].cell = &w->reference;
}

static int read_part(struct sh_eval_job *w, struct sh_err *e)
{
    const char *by = w->a->by;
    w->part = -1;
    for (int p = 0; by && sh_eval_part_names[p].name; p++)
        if (!strcmp(by, sh_eval_part_names[p].name))
            w->part = p;
    if (by && w->part < 0)
        return sh_misused(e, "--by %s: expected position, length or distance", by);
    if (w->part == SH_EVAL_DISTANCE && !w->a->answers)
        return sh_misused(e, "--by distance requires --answers NAME");
    return 0;
}

static int read_source(struct sh_eval_job *w, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    int n = (a->text.n > 0) + (a->jsonl != NULL) + (a->tokens != NULL);
    if (!n)
        return sh_misused(e, "eval requires one of --text, --jsonl, --tokens and --task");
    if (n > 1)
        return sh_misused(e, "%s and %s cannot be combined", a->text.n ? "--text" : "--jsonl",
                          a->tokens ? "--tokens" : "--jsonl");
    if (a->answers && !a->jsonl)
        return sh_misused(e, "--answers requires --jsonl FILE");
    return read_part(w, e);
}

/* The plans, which must agree on the prefill, because all caches read side by side. */
static int read_plans(struct sh_eval_job *w, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    w->prefill = a->prefill < 0 ? 0 : (int)a->prefill;
    w->plan = xcalloc((size_t)a->plan.n + 1, sizeof *w->plan);
    for (int i = 0; i < a->plan.n; i++, w->n_plan++) {
        if (sh_plan_read(&w->plan[i], a->plan.at[i], e))
            return -1;
        if (a->prefill < 0 && !i)
            w->prefill = w->plan[i].prefill;
        if (w->plan[i].prefill != w->prefill) {
            sh_misused(e, "%s: the plan has prefill %d, the others "
                          "have %d", a->plan.at[i], w->plan[i].prefill, w->prefill);
            return sh_hint(e, "evaluate it in a separate command");
        }
    }
    return 0;
}

/* What a plan promised holds for texts as long as those that judged it. */
static void tell_length(const struct sh_eval_job *w)
{
    int longest = sh_text_source_longest(&w->source);
    for (int i = 0; i < w->n_plan && !w->common->quiet; i++)
        if (w->plan[i].n_token != longest)
            sh_sayf("shears: ", "%s: made for texts of %d tokens, these have up to %d: heads keep the same shares of "
                    "them, but the plan promises nothing at other lengths", w->a->plan.at[i], w->plan[i].n_token,
                    longest);
}

static int check_plans(const struct sh_eval_job *w, struct sh_err *e)
{
    const struct sh_arch *arch = sh_model_arch(w->source.model);
    char fingerprint[24];
    int *heads = sh_live_heads(arch), bad = 0;
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, sh_model_fingerprint(w->source.model));
    for (int i = 0; i < w->n_plan && !bad; i++)
        bad = sh_plan_check_model(&w->plan[i], w->a->plan.at[i], w->a->model, fingerprint, arch->n_layer,
                                  arch->n_kv_head, heads, e);
    free(heads);
    return bad;
}

static int read_cells(struct sh_eval_job *w, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    int is_even = a->budget.n || !a->plan.n;            /* else the plans alone                   */
    if (sh_read_policies(&a->policy, w->spec, SH_EVAL_POLICIES, &w->n_spec, e))
        return -1;
    if (!is_even)
        w->n_spec = 0;
    if (!w->n_spec && is_even && sh_policy_parse("full", &w->spec[w->n_spec++], e))
        return -1;
    if (!a->budget.n && is_even && sh_budget_parse(a->policy.n ? "0.1,0.2,0.3,0.5" : "1.0", w->budget, &w->n_budget, e))
        return -1;
    if (sh_read_budgets(&a->budget, w->budget, &w->n_budget, e) || read_plans(w, e))
        return -1;
    if (a->prefill_block && w->prefill < 1)
        return sh_misused(e, "--prefill-block requires --prefill N, the tokens that come in blocks");
    return sh_policy_parse("full", &w->full, e);
}

static int read_options(struct sh_eval_job *w, const struct sh_list *positional, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    if (sh_args_none("eval", positional, e))
        return -1;
    if (!a->model)
        return sh_misused(e, "eval requires --model DIR");
    if (read_source(w, e))
        return -1;
    if (sh_live_read_bits(a->weight_bits, a->activation_bits, a->weight_prune, e))
        return -1;
    if (a->force && !a->db)
        return sh_misused(e, "--force requires --db FILE");
    if (a->budget.n && !a->policy.n)
        return sh_misused(e, "--budget requires --policy NAME");
    if (sh_read_dtype(a->dtype, &w->dtype, e))
        return -1;
    w->format = (struct sh_kv_format){.bits = a->kv_bits ? (int)a->kv_bits : w->dtype == SH_F32 ? 32 : 16,
                                      .group = (int)a->kv_group, .meta = SH_F16};
    if (w->format.bits != 32 && w->format.bits != 16 && !sh_code_bits_fit(w->format.bits))
        return sh_misused(e, "--kv-bits: found %d, expected 32, 16, 8 or 4", w->format.bits);
    if (w->format.group % 8)
        return sh_misused(e, "--kv-group: found %d, expected a multiple of 8", w->format.group);
    return sh_live_read_keys(a->kv_keys, a->kv_residual, &w->format, e) || read_cells(w, e) ? -1 : 0;
}

/* ---- the work ---- */

static int open_all(struct sh_eval_job *w, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    w->source = (struct sh_text_source){.path = a->model, .text = &a->text, .jsonl = a->jsonl, .field = a->field,
                                        .tokens = a->tokens, .length = (int)a->length, .count = (int)a->count,
                                        .least = (int)a->least, .prune = a->weight_prune};
    w->devices.stages = sh_timing_begin(&w->timing, a->timing);
    w->devices.x_bits = a->activation_bits ? (int)a->activation_bits : a->stream ? 16 : 32;
    if (sh_devices_open(&w->devices, w->common, a->device_memory, e))
        return -1;
    unsigned long long since = sh_stage_begin(w->devices.stages);
    if (sh_text_source_open(&w->source, e) || sh_live_check_activations(w->source.model, a->activation_bits, e))
        return -1;
    sh_stage_end(w->devices.stages, SH_STAGE_TOKENS, since, 1);
    w->chips = sh_devices_chips(&w->devices);
    tell_length(w);
    if (check_plans(w, e) || (a->answers && sh_eval_answers_read(&w->answers, &w->source, a->answers, e)))
        return -1;
    make_cells(w);
    if ((a->logits || a->dump) && a->batch > 1)
        return sh_misused(e, "--batch cannot be combined with %s, which needs one text at a time",
                          a->logits ? "--logits" : "--dump-kept");
    if ((a->logits || a->dump) && w->n > 1)
        return sh_misused(e, "%s: found %d combinations of policy and budget, expected one",
                          a->logits ? "--logits" : "--dump-kept", w->n),
               sh_hint(e, "give one --policy and one --budget");
    for (int i = 0; i <= a->text.n + a->plan.n; i++) {
        const char *in = i < a->text.n ? a->text.at[i] : i < a->text.n + a->plan.n ? a->plan.at[i - a->text.n] : NULL;
        const struct sh_file_use files[] = {
            {"--db", a->db, 1}, {"--dump-kept", a->dump, 1}, {"--logits", a->logits, 1}, {"--tokens", a->tokens, 0},
            {"--jsonl", a->jsonl, 0}, {"--text", in, 0}, {0}};
        if (sh_files_apart(files, e))
            return -1;
    }
    return 0;
}

/* Whether some product of the model may round activations. */
static int rounds(const struct sh_eval_job *w)
{
    return w->devices.x_bits < 32 && sh_model_has_integers(w->source.model);
}

static void name_results(struct sh_eval_job *w)
{
    struct sh_eval_scene scene = {.model = sh_model_fingerprint(w->source.model),
                                  .on = sh_text_source_measured(&w->source), .dtype = w->a->dtype,
                                  .prefill = w->prefill, .prefill_block = w->a->prefill_block,
                                  .weight_bits = w->a->weight_bits, .is_stream = w->a->stream,
                                  .activation_bits = sh_model_has_integers(w->source.model) ? w->devices.x_bits : 0,
                                  .weight_prune = w->a->weight_prune,
                                  .unpruned = sh_model_fingerprint_unpruned(w->source.model),
                                  .seed = (uint64_t)w->common->seed,
                                  .answers = w->a->answers ? sh_eval_answers_hash(&w->answers) : 0};
    for (int i = 0; i <= w->n; i++)
        sh_eval_result_name(&w->result[i], &scene);
}

static int mark(struct sh_eval_job *w, struct sh_store *store, int is_whole, struct sh_err *e)
{
    int n = w->n + 1, *of = xcalloc((size_t)n, sizeof *of), own = sh_eval_own_cells(w, of);
    struct sh_part_results r = {.command = "eval", .settings = xcalloc((size_t)n, sizeof *r.settings),
                                .own = xcalloc((size_t)n, 1), .n = n, .has_weights = 1,
                                .model = sh_model_fingerprint(w->source.model)};
    for (int i = 0; i < n; i++)
        r.settings[i] = w->result[i].settings;
    for (int i = 0; i < own; i++)               /* every shard computes the reference */
        r.own[of[i]] = 1;
    int bad = sh_part_mark_results(store, &w->shard, &r, is_whole, e);
    free(r.settings);
    free(r.own);
    free(of);
    return bad;
}

static void put_errors_over(const struct sh_eval_result *r, struct sh_out *o)
{
    int n = (int)r->bound[SH_B_SEQUENCES];
    char *over = n ? xasprintf("%d sequences", n)
                   : xasprintf("tokens, as if they were independent: fewer than %d sequences", SH_EVAL_LEAST_SEQUENCES);
    sh_out_text(o, "errors_over", "standard errors over", over);
    free(over);
}

static int report(const struct sh_eval_job *w, struct sh_err *e)
{
    const struct sh_eval_result *full = &w->result[w->n];
    struct sh_out *o = sh_out_new();
    struct sh_props props;
    int known = 0;
    w->devices.backend->props(w->devices.at[0], &props);
    sh_out_text(o, "model", "model", sh_model_name(w->source.model));
    sh_out_text(o, "backend", "backend", w->devices.backend->name);
    sh_out_text(o, "device", "device", w->chips);
    sh_out_text(o, "dtype", "dtype", w->a->dtype);
    sh_out_int(o, "weight_bits", "weight bits", w->a->weight_bits);
    if (rounds(w))
        sh_out_int(o, "activation_bits", "activation bits", w->devices.x_bits);
    if (w->a->weight_prune > 0)
        sh_out_real(o, "weight_prune", "share of weights pruned", w->a->weight_prune, 4);
    sh_measured_write(&full->on, o);
    sh_out_int(o, "sequences", "sequences", w->source.texts.n);
    sh_out_int(o, "tokens", "tokens", sh_text_source_tokens(&w->source));
    sh_out_int(o, "prefill", "prefill", w->prefill);
    if (w->a->prefill_block)
        sh_out_int(o, "prefill_block", "in blocks of", w->a->prefill_block);
    if (w->answers.texts) {
        sh_out_int(o, "answers", "answers", w->answers.all);
        sh_out_int(o, "answers_cut", "answers after the last token read", w->answers.cut);
    }
    sh_out_text(o, "stream", "texts are read", w->a->stream ? "token by token" : "layer by layer");
    put_errors_over(full, o);
    sh_out_real(o, "full_nll", "full cache: nll", full->at[SH_E_NLL], 4);
    sh_out_real(o, "full_ppl", "full cache: perplexity", full->at[SH_E_PPL], 4);
    sh_out_real(o, "full_ppl_stderr", "+-", full->at[SH_E_PPL_STDERR], 4);
    sh_out_int(o, "full_kv_bytes", "full cache: bytes", (long long)full->at[SH_E_KV_BYTES]);
    if (w->answers.texts) {
        sh_out_real(o, "full_answer_exact", "full cache: exact answers", full->answer[SH_A_EXACT], 4);
        sh_out_real(o, "full_answer_ppl", "full cache: perplexity of answers", full->answer[SH_A_PPL], 4);
    }
    if (w->part >= 0)
        sh_out_show(o, sh_eval_part_names[w->part].list);
    sh_live_put_peak(o, &w->devices);
    sh_out_list(o, "results", "policies and budgets (nats per token; change, kl, top 1: compared with the full cache)");
    for (int i = 0; i < w->n; i++) {
        if (isnan(w->result[i].at[SH_E_TOKENS]))
            continue;
        known += w->result[i].is_known;
        sh_eval_result_write(&w->result[i], w->n_plan > 0, !props.is_host, o);
    }
    sh_out_end(o);
    sh_timing_put(o, &w->timing);
    sh_note_one_token(o, w->budget, w->n_budget);
    if (w->timing.on && w->cluster.ranks)
        sh_out_note(o, "The times are those of the first rank.");
    if (known)
        sh_out_note(o, "%d of %d rows were read from the store; --force recomputes them.", known, w->n);
    return sh_common_write(w->common, o, 0, e);
}

static void close_all(struct sh_eval_job *w)
{
    sh_resident_close(w->eval.resident);
    if (w->result)
        sh_eval_results_free(w->result, w->n + 1);
    free(w->cell);
    free(w->twin);
    sh_eval_answers_free(&w->answers);
    for (int i = 0; i < w->n_plan; i++)
        sh_plan_clear(&w->plan[i]);
    free(w->plan);
    sh_text_source_close(&w->source);
    sh_devices_close(&w->devices);
    free(w->chips);
}

static int run_task(const struct sh_eval_args *a, const struct sh_common *common, const struct sh_list *positional,
                    struct sh_err *e)
{
    struct sh_task_request q = {
        .live = {.model = a->model, .dtype = a->dtype, .kv_bits = a->kv_bits, .kv_group = a->kv_group,
                 .kv_keys = a->kv_keys, .kv_residual = a->kv_residual, .weight_bits = a->weight_bits,
                 .weight_prune = a->weight_prune, .activation_bits = a->activation_bits,
                 .prefill = a->prefill < 0 ? 0 : a->prefill, .device_memory = a->device_memory},
        .task = a->task, .data = a->data, .shots_data = a->shots_data, .items = a->items, .policy = &a->policy,
        .budget = &a->budget, .shots = a->shots, .count = a->count, .db = a->db, .force = a->force,
        .timing = a->timing};
    if (sh_args_none("eval", positional, e))
        return -1;
    if (a->shard || sh_ranks_are_there())
        return sh_misused(e, "--task cannot be combined with --shard or mpirun");
    if (a->text.n || a->jsonl || a->tokens || a->length || a->logits || a->dump || a->answers || a->by ||
        a->plan.n || a->batch || a->stream || a->prefill_block)
        return sh_misused(e, "--task cannot be combined with --text, --jsonl, --tokens, --answers, --by, --length, "
                             "--plan, --batch, --stream, --prefill-block, --logits or --dump-kept");
    const struct sh_file_use files[] = {
        {"--db", q.db, 1}, {"--items", q.items, 1}, {"--data", q.data, 0}, {"--shots-data", q.shots_data, 0}, {0}};
    if (sh_files_apart(files, e))
        return -1;
    struct sh_out *o = sh_out_new();
    return sh_common_write(common, o, sh_eval_tasks(&q, common, o, e), e);
}

static int join(struct sh_eval_job *w, const struct sh_common *common, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    if (sh_job_enter(&w->cluster, common, a->db, a->shard, &w->shard, a->rank_timeout, e))
        return -1;
    w->cluster.shares = w->cluster.ranks != NULL;
    if ((a->logits || a->dump) && (w->shard.parts || w->cluster.ranks))
        return sh_misused(e, "%s cannot be combined with --shard or mpirun", a->logits ? "--logits" : "--dump-kept");
    return 0;
}

static int work(struct sh_eval_job *w, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    int is_first = sh_job_is_first(&w->cluster);
    char *path = sh_part_path(a->db, &w->shard);
    struct sh_store *store = NULL;
    name_results(w);
    int bad = (path && is_first && !(store = sh_store_typed(sh_store_create(path, e), w->common->line))) ||
              (w->shard.parts && mark(w, store, 0, e)) || sh_evaluate(w, store, e) ||
              (w->shard.parts && mark(w, store, 1, e)) || (is_first && report(w, e));
    int is_empty = bad && store && sh_store_was_made(store) && sh_store_is_empty(store);
    sh_store_close(store);
    if (is_empty)
        sh_store_remove(path);
    free(path);
    return bad;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct sh_eval_args *asked = args;
    if (asked->task)
        return run_task(asked, common, positional, e);
    if (asked->data || asked->shots || asked->shots_data || asked->items)
        return sh_misused(e, "--data, --shots, --shots-data and --items require --task NAME");
    struct sh_eval_job *w = xcalloc(1, sizeof *w);
    w->a = args;
    w->common = &w->cluster.common;
    int bad = join(w, common, e) || read_options(w, positional, e) || open_all(w, e) || work(w, e);
    close_all(w);
    bad = sh_job_leave(&w->cluster, bad ? -1 : 0, e);
    free(w);
    return bad;
}

const struct sh_cmd sh_cmd_eval = {
    .name = "eval",
    .usage = "--model DIR (--text FILE... | --jsonl FILE [--field NAME] | --tokens FILE |\n"
             "        --task NAME --data FILE [--shots N])\n"
             "        [--policy NAME[:knob=value,...]...] [--budget LIST] [--kv-bits N] [options]",
    .summary = "measure perplexity and task accuracy under a KV budget",
    .about = "Runs the model over texts: once with the full cache, and once for each policy and budget with a real\n"
             "cache of fixed size, from which tokens are evicted one after another. All policies, budgets and plans\n"
             "go through the model together, layer by layer. Reports perplexity and, compared with the full cache,\n"
             "the paired change in log-likelihood, the divergence KL(full || compressed) and how often the most\n"
             "likely token is the same. The policies are those of shears replay, driven by the model's own attention.\n"
             "Standard errors are over the texts; with fewer than six texts, over blocks of 512 tokens; with fewer\n"
             "than six blocks, over tokens, as if tokens were independent. 95 % bound: one-sided upper confidence\n"
             "bound of the increase of the perplexity. slots: tokens that a head has room for; peak: the most that\n"
             "one held; cache (for devices with their own memory): device, host or both, and the reason if host. A\n"
             "dash marks values that are not known, for instance in results read from the store.\n"
             "\n"
             "With --task: accuracy on multiple-choice questions, with eviction from the cache as the prompt is read.\n"
             "The answer is the choice with the largest log-likelihood (acc) or the largest log-likelihood per\n"
             "character (acc_norm). Prompts are those of the lm-evaluation-harness.\n"
             "\n"
             "  shears eval --model opt-125m --text book.txt --policy window h2o --budget 0.1,0.2,0.5 --db traces.db",
    .opts = opts, .args_bytes = sizeof(struct sh_eval_args), .defaults = &defaults, .run = run};
