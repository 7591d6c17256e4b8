/* SPDX-License-Identifier: Apache-2.0 */
/* shears trace: runs a model over texts and records its attention. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/read_number.h"
#include "src/cli/options.h"
#include "src/app/store/describe.h"
#include "src/app/trace/trace_job.h"

#define F(name) offsetof(struct sh_trace_args, name)
static const struct sh_opt opts[] = {
    SH_MODEL_OPT(F(model)),
    SH_NEW_STORE_OPT(F(db)),
    SH_TEXT_OPTS(F, 1, "all"),
    SH_TEXT("layers", F(layers), "A-B", "record only these layers, numbered from 0 (default: all)"),
    SH_TEXT("record", F(record), "WHAT", "full: every score (default)\nsparse: scores above the row's mean, and the "
        "mass of the rest\nsummary: statistics only"),
    SH_TEXT("codec", F(codec), "NAME", "log8: one byte, accurate to 4 %, from 1e-8 to 1 (default)\n"
                                       "f16, f32: to that format's precision"),
    SH_TEXT("vectors", F(vectors), "KINDS", "also record queries, keys, values: any letters of qkv"),
    SH_WEIGHT_OPTS(F),
    SH_BYTES("memory", F(memory), "BYTES", 0, 0, "limit for hidden states, which go to a temporary file next to the\n"
                                                 "store if larger, and for a layer's experts (default: half of the\n"
                                                 "memory)"),
    SH_DEVICE_MEMORY_OPT(F(device_memory)),
    SH_FLAG("random-weights", F(random_weights), "use random weights seeded by --seed: the untrained control"),
    SH_LIST("alpha", F(alpha), "A...", "with --record summary: thresholds row, K/t, split or a number\n"
                                       "(default: row 2/t 5/t 10/t split); with --record full and log8:\n"
                                       "further thresholds to count exactly (1/t, 2/t, 5/t and 10/t are exact\n"
                                       "already)"),
    SH_TEXT("recent", F(recent), "R,...", "with --record summary: recent windows to ignore (default: 0,1,10,50)"),
    SH_TEXT("split", F(split), "F,...", "with --record summary: split points (default: 0.25,0.5,0.75)"),
    SH_INT("window", F(window), "W", 1, 1 << 22, "with --record summary: number of rows whose low scores are\n"
                                                 "counted (default: 400)"),
    SH_PART_OPT(F(shard)),
    SH_TIMING_OPT(F(timing)),
    SH_FLAG("pipeline", F(pipeline), "under mpirun or srun: each rank holds some of the layers and passes\n"
                                     "hidden states on, so the weights are read only once in total"),
    SH_CLUSTER_OPT(F(rank_timeout)),
    {0}};

#define HALF_OF_MEMORY SIZE_MAX          /* the default of --memory */

static const struct sh_trace_args defaults = {
    .field = "text", .record = "full", .codec = "log8", .vectors = "", .dtype = "f32", .weight_bits = 16,
    .rank_timeout = SH_RANK_TIMEOUT_S, .memory = HALF_OF_MEMORY};

static int read_statistics(struct sh_trace_job *t, enum sh_record record, struct sh_stats_spec *spec, struct sh_err *e)
{
    const struct sh_trace_args *a = t->a;
    sh_stats_spec_default(spec);
    if (a->window)
        spec->window = (int)a->window;
    if (a->recent && sh_read_ints("--recent", a->recent, spec->recent, SH_STATS_MAX, &spec->n_recent, e))
        return -1;
    if (a->split && sh_read_reals("--split", a->split, 1, spec->split, SH_STATS_MAX, &spec->n_split, e))
        return -1;
    if (a->alpha.n > SH_STATS_MAX)
        return sh_misused(e, "--alpha: found %d thresholds, expected at most %d", a->alpha.n, SH_STATS_MAX);
    for (int i = 0; i < a->alpha.n; i++)
        if (sh_alpha_parse(a->alpha.at[i], &spec->alpha[i], e))
            return sh_err_prefix(e, "--alpha");
    spec->n_alpha = a->alpha.n ? a->alpha.n : spec->n_alpha;
    if (sh_stats_spec_check(spec, e))
        return sh_err_prefix(e, "--alpha, --recent, --split");
    sh_recorder_thresholds(record, t->run.codec, a->alpha.n, spec);
    return 0;
}

static int repeats_a_letter(const char *word)
{
    for (; *word; word++)
        if (strchr(word + 1, *word))
            return 1;
    return 0;
}

static int read_options(struct sh_trace_job *t, const struct sh_list *positional, struct sh_err *e)
{
    static const char *const types[] = {"f32", "bf16", "f16", NULL};
    static const enum sh_type type_of[] = {SH_F32, SH_BF16, SH_F16};
    const struct sh_trace_args *a = t->a;
    const struct sh_need needs[] = {{"--model DIR", a->model != NULL}, {"--db FILE", a->db != NULL}, {0}};
    if (sh_args_none("trace", positional, e) || sh_args_need("trace", needs, e))
        return -1;
    if (!a->text.n && !a->jsonl && !a->tokens)
        return sh_misused(e, "trace requires one of --text, --jsonl and --tokens");
    int record = sh_read_name("record", a->record, sh_record_names, e);
    int codec = sh_read_name("codec", a->codec, sh_codec_names, e), type = sh_read_name("dtype", a->dtype, types, e);
    if (record < 0 || codec < 0 || type < 0)
        return -1;
    if (record == SH_RECORD_SPARSE && codec == SH_CODEC_F16)
        return sh_misused(e, "--record sparse requires --codec log8 or f32: rounding to f16 moves scores across its "
                             "thresholds");
    if (!sh_code_bits_fit((int)a->weight_bits))
        return sh_misused(e, "--weight-bits: found %lld, expected 16, 8 or 4", a->weight_bits);
    if (strspn(a->vectors, "qkv") != strlen(a->vectors) || repeats_a_letter(a->vectors))
        return sh_misused(e, "--vectors: \"%s\", expected any of q, k, v, each at most once", a->vectors);
    t->run.record = t->sweep.record.record = (enum sh_record)record;
    t->run.codec = t->sweep.record.codec = (enum sh_codec)codec;
    t->sweep.dtype = type_of[type];
    t->sweep.weight_bits = (int)a->weight_bits;
    return read_statistics(t, t->run.record, &t->sweep.record.statistics, e);
}

static int open_model(struct sh_trace_job *t, struct sh_err *e)
{
    const struct sh_trace_args *a = t->a;
    t->model = a->random_weights ? sh_model_open_random(a->model, (uint64_t)t->common->seed, e)
                                 : sh_model_open(a->model, e);
    if (!t->model)
        return -1;
    sh_model_prune(t->model, a->weight_prune);
    const struct sh_arch *c = sh_model_arch(t->model);
    t->sweep.last_layer = c->n_layer - 1;
    if (a->layers && sh_read_range("--layers", a->layers, &t->sweep.first_layer, &t->sweep.last_layer, e))
        return -1;
    if (t->sweep.last_layer >= c->n_layer)
        return sh_misused(e, "--layers: found %s, expected layers 0-%d", a->layers, c->n_layer - 1);
    if (a->length > c->max_pos)
        return sh_misused(e, "--length: found %lld, expected at most the model's %d positions", a->length, c->max_pos);
    if (a->text.n || a->jsonl)
        if (!(t->tokenizer = sh_tokenizer_open(a->model, e)))
            return -1;
    if (t->tokenizer && sh_tokenizer_size(t->tokenizer) > c->n_vocab)
        return sh_fail(e, "%s: the tokenizer has %d tokens, more than the model's vocabulary of %d", a->model,
                       sh_tokenizer_size(t->tokenizer), c->n_vocab);
    return 0;
}

static int read_texts(struct sh_trace_job *t, struct sh_err *e)
{
    const struct sh_trace_args *a = t->a;
    const struct sh_arch *c = sh_model_arch(t->model);
    t->texts = (struct sh_texts){.tokenizer = t->tokenizer, .length = (int)a->length, .max_pos = c->max_pos,
                                 .n_vocab = c->n_vocab, .most = (int)a->count, .least = (int)a->least};
    int bad = 0;
    for (int i = 0; i < a->text.n && !bad; i++)
        bad = sh_texts_text(&t->texts, a->text.at[i], e);
    if (!bad && a->jsonl)
        bad = sh_texts_jsonl(&t->texts, a->jsonl, a->field, e);
    if (!bad && a->tokens)
        bad = sh_texts_tokens(&t->texts, a->tokens, e);
    if (!bad && !t->texts.n)
        bad = sh_fail(e, "%s: found no sequence, expected a text of at least %lld token%s",
                      a->jsonl ? a->jsonl : a->tokens ? a->tokens : a->text.at[0], a->least > 1 ? a->least : 1,
                      a->least > 1 ? "s" : "");
    return bad;
}

static int read_timed(struct sh_trace_job *t, struct sh_err *e)
{
    unsigned long long since = sh_stage_begin(t->devices.stages);
    int bad = read_texts(t, e);
    sh_stage_end(t->devices.stages, SH_STAGE_TOKENS, since, 1);
    return bad;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? xasprintf("%.*s", slash == path ? 1 : (int)(slash - path), path) : xstrdup(".");
}

static void close_all(struct sh_trace_job *t)
{
    sh_store_close(t->store);
    sh_sequences_free(t->texts.sequence, t->texts.n);
    sh_tokenizer_free(t->tokenizer);
    sh_model_close(t->model);
    sh_devices_close(&t->devices);
    free(t->chips);
    free(t->statistics);
    free(t->weights);
    free(t->folder);
    free(t->done);
    free(t->unit);
    free(t->path);
}

static size_t half_of_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 2 : (size_t)1 << 32;
}

static void set_sweep(struct sh_trace_job *t)
{
    t->sweep.backend = t->devices.backend;
    t->sweep.device = t->devices.at;
    t->sweep.n_device = t->devices.n;
    t->sweep.model = t->model;
    t->sweep.model_path = t->a->model;
    t->sweep.vectors = t->a->vectors;
    t->sweep.n_threads = t->devices.n_threads;
    t->sweep.stages = t->devices.stages;
    t->sweep.memory_bytes = t->a->memory == HALF_OF_MEMORY ? half_of_memory() : t->a->memory;
    t->sweep.spill_folder = t->folder = folder_of(t->a->db);
}

static int enter(struct sh_trace_job *t, const struct sh_common *common, struct sh_err *e)
{
    const struct sh_trace_args *a = t->a;
    if (a->pipeline && a->shard)
        return sh_misused(e, "--pipeline cannot be combined with --shard");
    if (sh_job_enter(&t->cluster, common, a->db, a->shard, &t->part, a->rank_timeout, e))
        return -1;
    t->cluster.shares = t->cluster.ranks && !a->pipeline;
    t->cluster.in_line = t->cluster.ranks && a->pipeline;
    return 0;
}

static int report(struct sh_trace_job *t, int run, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int bad = sh_describe_run_of(o, t->store, run, e);
    sh_describe_memory(o, &t->devices, t->needs.device_bytes);
    sh_out_text(o, "db", "store", t->path);
    sh_timing_put(o, &t->timing);
    if (t->timing.on && t->cluster.ranks)
        sh_out_note(o, "The times are those of the first rank.");
    return sh_common_write(t->common, o, bad, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct sh_trace_job t = {.a = args, .common = &t.cluster.common, .report = report};
    t.devices.stages = sh_timing_begin(&t.timing, t.a->timing);
    int bad = enter(&t, common, e) || read_options(&t, positional, e);
    if (!bad) {
        t.path = sh_part_path(t.a->db, &t.part);
        bad = sh_devices_open(&t.devices, t.common, t.a->device_memory, e);   /* before much is read */
    }
    bad = bad || open_model(&t, e) || read_timed(&t, e);
    if (!bad) {
        t.chips = sh_devices_chips(&t.devices);
        set_sweep(&t);
        bad = sh_trace_record(&t, e);
    }
    close_all(&t);
    return sh_job_leave(&t.cluster, bad ? -1 : 0, e);
}

const struct sh_cmd sh_cmd_trace = {
    .name = "trace",
    .usage = "--model DIR --db FILE (--text FILE... | --jsonl FILE [--field NAME] | --tokens FILE) [options]",
    .summary = "run a model over texts and record its attention",
    .about = "Runs the model layer by layer over all sequences and writes the attention of every head to a SQLite\n"
             "file. Each layer of each sequence is one transaction, so a run that was stopped or killed leaves only\n"
             "complete layers: run the same command again to resume.\n"
             "\n"
             "  shears trace --model opt-125m --db traces.db --text book.txt --length 512 --count 4",
    .opts = opts, .args_bytes = sizeof(struct sh_trace_args), .defaults = &defaults, .run = run};
