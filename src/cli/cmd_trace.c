/* SPDX-License-Identifier: Apache-2.0 */
/* shears trace: run a model over texts, record its attention. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/cli/cluster.h"
#include "src/cli/commands.h"
#include "src/cli/describe.h"
#include "src/cli/devices.h"
#include "src/cli/part.h"
#include "src/cli/pipeline.h"
#include "src/tracer/sweep.h"
#include "src/tracer/texts.h"
#include "src/tracer/units.h"
#include "traces/claim.h"

struct trace_args {
    const char *model, *db, *jsonl, *field, *tokens, *layers, *record, *codec, *vectors, *dtype, *recent, *split,
        *shard;
    struct sh_list text, alpha;
    long long length, count, least, window, weight_bits;
    size_t memory, device_memory;
    int random_weights, pipeline;
    double rank_timeout, weight_prune;
};

#define F(name) offsetof(struct trace_args, name)
static const struct sh_opt opts[] = {
    {"model", SH_OPT_TEXT, F(model), "DIR", "checkpoint folder: config.json, *.safetensors, tokenizer files;\n"
     "or a .gguf file (llama.cpp's format)", 0, 0, 0},
    {"db", SH_OPT_TEXT, F(db), "FILE", "trace store to write; an existing one is added to", 0, 0, 0},
    {"text", SH_OPT_LIST, F(text), "FILE...", "plain texts, cut into sequences of --length tokens", 0, 0, 0},
    {"jsonl", SH_OPT_TEXT, F(jsonl), "FILE", "one JSON object a line, each document one sequence", 0, 0, 0},
    {"field", SH_OPT_TEXT, F(field), "NAME", "where a jsonl document's text is (default: text)", 0, 0, 0},
    {"tokens", SH_OPT_TEXT, F(tokens), "FILE", "one JSON array of token ids a line, each one sequence", 0, 0, 0},
    {"length", SH_OPT_INT, F(length), "N", "tokens of a sequence (default: the model's positions)", 1, 1 << 22, 0},
    {"min-tokens", SH_OPT_INT, F(least), "N", "leave out texts and documents of fewer tokens", 1, 1 << 22, 0},
    {"count", SH_OPT_INT, F(count), "N", "at most so many sequences (default: all there are)", 1, 1e9, 0},
    {"layers", SH_OPT_TEXT, F(layers), "A-B", "record only these layers, from 0 (default: all)", 0, 0, 0},
    {"record", SH_OPT_TEXT, F(record), "WHAT", "full: every score (default)\n"
     "sparse: scores above the row's mean and the rest's mass\nsummary: statistics only", 0, 0, 0},
    {"codec", SH_OPT_TEXT, F(codec), "NAME", "log8: one byte, at most 4 % off, from 1e-8 to 1 (default)\n"
     "f16, f32: exact to the format", 0, 0, 0},
    {"vectors", SH_OPT_TEXT, F(vectors), "KINDS", "record queries, keys, values too: any of q, k, v", 0, 0, 0},
    {"dtype", SH_OPT_TEXT, F(dtype), "TYPE", "operands of products: f32 (default), bf16 or f16", 0, 0, 0},
    {"weight-bits", SH_OPT_INT, F(weight_bits), "16|8|4", "what a weight of the layers takes on the device\n"
     "16: as --dtype (default); 8, 4: codes, in groups of\n64 with a scale, 8.5 and 4.5 bits in all", 0, 0, 0},
    {"weight-prune", SH_OPT_REAL, F(weight_prune), "F", "set the share F of the smallest weights (by magnitude)\n"
     "of each matrix of the layers to 0 (default: 0)", 0, 0.99, 0},
    {"memory", SH_OPT_BYTES, F(memory), "BYTES", "hidden states above this are kept in a temporary file\n"
     "beside the store (default: half of the memory)", 0, 0, 0},
    {"device-memory", SH_OPT_BYTES, F(device_memory), "BYTES", "what may be taken of each device\n"
     "(default: what is free)", 0, 0, 0},
    {"random-weights", SH_OPT_FLAG, F(random_weights), NULL, "fresh weights from --seed instead of the trained ones:\n"
     "the untrained control", 0, 0, 0},
    {"alpha", SH_OPT_LIST, F(alpha), "A...", "thresholds row, K/t, split or a number, of summary\n"
     "(default: row 2/t 5/t 10/t split); with full and log8: to be\n"
     "exact, too (1/t, 2/t, 5/t, 10/t are)", 0, 0, 0},
    {"recent", SH_OPT_TEXT, F(recent), "R,...", "summary: recent windows left out (default: 0,1,10,50)", 0, 0, 0},
    {"split", SH_OPT_TEXT, F(split), "F,...", "summary: split points (default: 0.25,0.5,0.75)", 0, 0, 0},
    {"window", SH_OPT_INT, F(window), "W", "summary: rows whose low scores are counted (default: 400)", 1, 1 << 22, 0},
    SH_PART_OPT(F(shard)),
    {"pipeline", SH_OPT_FLAG, F(pipeline), NULL, "under mpirun or srun: each rank holds its share of the layers and\n"
     "passes hidden states on, so all together read the weights once", 0, 0, 0},
    SH_CLUSTER_OPT(F(rank_timeout)),
    {0}};
#undef F

static void preset(void *args)
{
    struct trace_args *a = args;
    a->field = "text";
    a->record = "full";
    a->codec = "log8";
    a->vectors = "";
    a->dtype = "f32";
    a->weight_bits = 16;
    a->rank_timeout = SH_RANK_TIMEOUT_S;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    a->memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 2 : (size_t)1 << 32;
}

static void release(void *args)
{
    struct trace_args *a = args;
    sh_list_free(&a->text);
    sh_list_free(&a->alpha);
}

/* Everything that one trace holds open. */
struct trace {
    const struct trace_args *a;
    const struct sh_common *common;
    struct sh_devices devices;
    struct sh_model *model;
    struct sh_tokenizer *tokenizer;
    struct sh_texts texts;
    struct sh_sweep sweep;
    struct sh_sweep_needs needs;
    struct sh_trace_run run;
    char *chips, *statistics, *weights, *folder;
    unsigned char *done;                /* [n * layers]: what the store of the run has            */
    struct sh_store *store;
    char key[20];
    struct sh_part part;
    char *path;                         /* of the store that is written: --db, or its shard       */
    struct sh_cluster cluster;
    struct sh_unit *unit;               /* [n_unit]                                               */
    int n_unit, own_run;                /* own_run: in this rank's store; 0: not begun            */
};

static int choice(const char *option, const char *value, const char *const names[], struct sh_err *e)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], value))
            return i;
    char known[80] = "";
    for (int i = 0; names[i]; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    }
    return sh_misused(e, "--%s: \"%s\" is not known, expected one of %s", option, value, known);
}

static int read_statistics(struct trace *t, enum sh_record record, struct sh_stats_spec *spec, struct sh_err *e)
{
    const struct trace_args *a = t->a;
    sh_stats_spec_default(spec);
    if (a->window)
        spec->window = (int)a->window;
    if (a->recent && sh_args_ints("--recent", a->recent, spec->recent, SH_STATS_MAX, &spec->n_recent, e))
        return -1;
    if (a->split && sh_args_reals("--split", a->split, spec->split, SH_STATS_MAX, &spec->n_split, e))
        return -1;
    if (a->alpha.n > SH_STATS_MAX)
        return sh_misused(e, "--alpha: %d thresholds, at most %d", a->alpha.n, SH_STATS_MAX);
    for (int i = 0; i < a->alpha.n; i++)
        if (sh_alpha_parse(a->alpha.at[i], &spec->alpha[i], e))
            return sh_err_prefix(e, "--alpha");
    spec->n_alpha = a->alpha.n ? a->alpha.n : spec->n_alpha;
    if (sh_stats_spec_check(spec, e))
        return sh_err_prefix(e, "--alpha, --recent, --split");
    if (record == SH_RECORD_FULL && (!a->alpha.n || t->run.codec != SH_CODEC_LOG8))
        spec->n_alpha = 0;
    int n = 0;                                  /* what the stored scores themselves answer needs no statistics */
    for (int i = 0; i < spec->n_alpha; i++)
        if (record == SH_RECORD_SUMMARY || !(record == SH_RECORD_SPARSE ? sh_stats_sparse_can(&spec->alpha[i])
                                                                        : sh_stats_log8_can(&spec->alpha[i])))
            spec->alpha[n++] = spec->alpha[i];
    spec->n_alpha = n;
    return 0;
}

static int repeats_a_letter(const char *word)
{
    for (; *word; word++)
        if (strchr(word + 1, *word))
            return 1;
    return 0;
}

static int read_options(struct trace *t, const struct sh_list *positional, struct sh_err *e)
{
    static const char *const types[] = {"f32", "bf16", "f16", NULL};
    static const enum sh_type type_of[] = {SH_F32, SH_BF16, SH_F16};
    const struct trace_args *a = t->a;
    if (positional->n)
        return sh_misused(e, "trace: \"%.80s\" belongs to no option", positional->at[0]);
    const struct sh_need needs[] = {{"--model DIR", a->model != NULL}, {"--db FILE", a->db != NULL}, {0}};
    if (sh_args_need("trace", needs, e))
        return -1;
    if (!a->text.n && !a->jsonl && !a->tokens)
        return sh_misused(e, "trace needs something to run on: --text, --jsonl or --tokens");
    int record = choice("record", a->record, sh_record_names, e), codec = choice("codec", a->codec, sh_codec_names, e);
    int type = choice("dtype", a->dtype, types, e);
    if (record < 0 || codec < 0 || type < 0)
        return -1;
    if (record == SH_RECORD_SPARSE && codec == SH_CODEC_F16)
        return sh_misused(e, "--record sparse takes --codec log8 or f32: f16 would blur its thresholds");
    if (!sh_code_bits_fit((int)a->weight_bits))
        return sh_misused(e, "--weight-bits: %lld, expected 16, 8 or 4", a->weight_bits);
    if (strspn(a->vectors, "qkv") != strlen(a->vectors) || repeats_a_letter(a->vectors))
        return sh_misused(e, "--vectors: \"%s\", expected some of q, k, v, each at most once", a->vectors);
    t->run.record = t->sweep.record.record = (enum sh_record)record;
    t->run.codec = t->sweep.record.codec = (enum sh_codec)codec;
    t->sweep.dtype = type_of[type];
    t->sweep.weight_bits = (int)a->weight_bits;
    return read_statistics(t, t->run.record, &t->sweep.record.statistics, e);
}

static int open_model(struct trace *t, struct sh_err *e)
{
    const struct trace_args *a = t->a;
    t->model = a->random_weights ? sh_model_open_random(a->model, (uint64_t)t->common->seed, e)
                                 : sh_model_open(a->model, e);
    if (!t->model)
        return -1;
    sh_model_prune(t->model, a->weight_prune);
    const struct sh_arch *c = sh_model_arch(t->model);
    t->sweep.record.n_head = c->n_head;
    t->sweep.last_layer = c->n_layer - 1;
    if (a->layers && sh_args_range("--layers", a->layers, &t->sweep.first_layer, &t->sweep.last_layer, e))
        return -1;
    if (t->sweep.last_layer >= c->n_layer)
        return sh_misused(e, "--layers %s: the model has layers 0-%d", a->layers, c->n_layer - 1);
    if (a->length > c->max_pos)
        return sh_misused(e, "--length %lld: the model knows %d positions", a->length, c->max_pos);
    if (a->text.n || a->jsonl)
        if (!(t->tokenizer = sh_tokenizer_open(a->model, e)))
            return -1;
    if (t->tokenizer && sh_tokenizer_size(t->tokenizer) > c->n_vocab)
        return sh_fail(e, "%s: the tokenizer has %d tokens, the model's vocabulary %d", a->model,
                       sh_tokenizer_size(t->tokenizer), c->n_vocab);
    return 0;
}

static int read_texts(struct trace *t, struct sh_err *e)
{
    const struct trace_args *a = t->a;
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
        bad = sh_fail(e, "%s: no sequence came out, expected a text of at least %lld token%s",
                      a->jsonl ? a->jsonl : a->tokens ? a->tokens : a->text.at[0], a->least > 1 ? a->least : 1,
                      a->least > 1 ? "s" : "");
    return bad;
}

/* FNV-1a over everything that decides the content of a run. */
static void hash(uint64_t *h, const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *h = (*h ^ ((const unsigned char *)at)[i]) * 0x100000001b3u;
}

static void run_key(const struct trace *t, char key[20])
{
    uint64_t h = 0xcbf29ce484222325u, fingerprint = t->run.model.fingerprint;
    int is_without = t->run.record == SH_RECORD_FULL && !t->sweep.record.statistics.n_alpha;
    /* What was said about statistics that a full trace does not have does not make it another one. */
    const char *text[] = {t->weights, t->a->dtype, t->a->record, t->a->codec, t->a->vectors,
                          is_without ? "" : t->statistics};
    hash(&h, &fingerprint, sizeof fingerprint);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        hash(&h, text[i], strlen(text[i]) + 1);
    hash(&h, &t->sweep.first_layer, sizeof(int));
    hash(&h, &t->sweep.last_layer, sizeof(int));
    if (t->sweep.weight_bits < 16)              /* the runs of stores from before there were codes keep their keys */
        hash(&h, &t->sweep.weight_bits, sizeof(int));
    for (int i = 0; i < t->texts.n; i++) {
        const struct sh_trace_sequence *q = &t->texts.sequence[i];
        hash(&h, &q->n_tokens, sizeof q->n_tokens);     /* the same tokens cut otherwise are another run */
        hash(&h, q->tokens, 4 * (size_t)q->n_tokens);
    }
    snprintf(key, 20, "%016" PRIx64, h);
}

static void describe_run(struct trace *t)
{
    const struct sh_arch *c = sh_model_arch(t->model);
    char pruned[32] = "";
    if (t->a->weight_prune > 0)
        snprintf(pruned, sizeof pruned, "%spruned:%g", t->a->random_weights ? "," : "", t->a->weight_prune);
    t->weights = t->a->random_weights ? xasprintf("random:%lld%s", t->common->seed, pruned)
                                      : xstrdup(*pruned ? pruned : "checkpoint");
    t->statistics = sh_stats_spec_write(&t->sweep.record.statistics);
    t->run.model = (struct sh_trace_model){
        .name = sh_model_name(t->model), .family = sh_model_family(t->model), .weights = t->weights,
        .fingerprint = sh_model_fingerprint(t->model), .n_layer = c->n_layer, .n_head = c->n_head,
        .n_kv_head = c->n_kv_head, .d_head = c->d_head, .d_model = c->d_model, .n_vocab = c->n_vocab,
        .max_pos = c->max_pos};
    t->run.program = PACKAGE_VERSION;
    t->run.backend = t->devices.backend->name;
    t->run.device = t->chips;
    t->run.dtype = t->a->dtype;
    t->run.weight_bits = t->sweep.weight_bits;
    t->run.vectors = t->a->vectors;
    t->run.statistics = t->statistics;
    t->run.command = t->common->line;
    t->run.first_layer = t->sweep.first_layer;
    t->run.last_layer = t->sweep.last_layer;
    t->run.seed = t->common->seed;
}

static int say_needs(struct trace *t, struct sh_err *e)
{
    const struct sh_sweep_needs *n = &t->needs;
    const double mib = 1 << 20;
    if (sh_sweep_needs(&t->sweep, &t->needs, e))
        return -1;
    if (t->common->verbose || (n->spills && !t->common->quiet))
        fprintf(stderr, "shears: %s; one layer %.1f MiB, activations %.1f MiB, hidden states %.1f MiB%s\n",
                t->chips, (double)n->layer_bytes / mib, (double)n->activation_bytes / mib,
                (double)n->hidden_bytes / mib, n->spills ? " in a temporary file" : "");
    if (n->device_bytes && t->common->verbose)
        fprintf(stderr, "shears: %.1f MiB of device memory: %d layer%s, %d tokens at once\n",
                (double)n->device_bytes / mib, n->layers_at_once, n->layers_at_once == 1 ? "" : "s", n->rows);
    return 0;
}

static char *folder_of(const char *path)
{
    char *copy = xstrdup(path), *slash = strrchr(copy, '/');
    if (!slash) {
        free(copy);
        return xstrdup(".");
    }
    slash[slash == copy] = '\0';
    return copy;
}

/* What is done of a unit, [n, its layers]; caller frees. */
static unsigned char *done_of(const struct trace *t, const struct sh_unit *u)
{
    int n_layer = u->last_layer - u->first_layer + 1, all = t->run.last_layer - t->run.first_layer + 1;
    unsigned char *done = xcalloc((size_t)u->n * (size_t)n_layer, 1);
    for (int i = 0; i < u->n; i++)
        memcpy(done + i * n_layer, t->done + (u->first + i) * all + u->first_layer - t->run.first_layer,
               (size_t)n_layer);
    return done;
}

static double choose_unit(struct trace *t, const struct sh_unit *u)
{
    double tokens = 0;
    t->sweep.sequence = t->texts.sequence + u->first;
    t->sweep.n = u->n;
    t->sweep.first_sequence = u->first;
    t->sweep.first_layer = u->first_layer;
    t->sweep.last_layer = u->last_layer;
    for (int i = 0; i < u->n; i++)
        tokens += t->sweep.sequence[i].n_tokens;
    const struct sh_sweep_link *link = t->sweep.link;
    return tokens * (link ? link->last - link->first + 1 : u->last_layer + 1);
}

/* One unit into a run of a store. */
static int sweep(struct trace *t, const struct sh_unit *u, struct sh_store *store, int run, struct sh_err *e)
{
    struct sh_progress progress;
    double work = choose_unit(t, u);
    sh_progress_begin(&progress, "tracing", "token-layers", work, t->common->quiet);
    t->sweep.progress = &progress;
    if (say_needs(t, e))
        return -1;
    if (!(t->sweep.writer = sh_writer_begin(store, run, (size_t)256 << 20, e)))
        return -1;
    unsigned char *done = done_of(t, u);
    t->sweep.done = done;
    double began = sh_now_s();
    int bad = sh_sweep_run(&t->sweep, e);
    struct sh_err write_error;
    if (sh_writer_end(t->sweep.writer, &write_error)) {
        *e = write_error;
        bad = -1;
    }
    free(done);
    sh_progress_end(&progress);
    struct sh_err ignored;
    sh_store_add_seconds(store, run, sh_now_s() - began, bad ? &ignored : e);
    return bad;
}

static int report(struct trace *t, int run, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int bad = sh_describe_run_of(o, t->store, run, e);
    sh_describe_memory(o, &t->devices, t->needs.device_bytes);
    sh_out_text(o, "db", "store", t->path);
    if (!bad)
        bad = sh_common_write(t->common, o, e);
    sh_out_free(o);
    return bad;
}

/* ---- by several ranks ---- */

/* A run is of one backend: what another wrote would be refused when it is joined, after the work. */
static int check_backend(const struct trace *t, struct sh_store *joint, int run, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n, bad = 0;
    if (sh_store_runs(joint, &runs, &n, e))
        return -1;
    for (int i = 0; i < n && !bad; i++)
        if (runs[i].id == run && strcmp(runs[i].backend, t->run.backend)) {
            bad = sh_fail(e, "%s: the run was begun by %s, and this process has %s", t->path, runs[i].backend,
                          t->run.backend);
            sh_hint(e, "--backend %s tells on every rank why it is not there", runs[i].backend);
        }
    sh_stored_runs_free(runs, n);
    return bad;
}

/* This rank's own run; what the joint store has is not done again. */
static int begin_own(struct trace *t, struct sh_err *e)
{
    struct sh_store *joint = sh_cluster_is_first(&t->cluster) ? NULL : sh_store_look(t->a->db, e);
    int run = joint ? sh_store_finished(joint, &t->run, t->key, t->texts.n, t->done, e) : 0;
    int bad = run < 0 || (run > 0 && check_backend(t, joint, run, e));
    sh_store_close(joint);
    struct sh_store *own = bad || (!joint && !sh_cluster_is_first(&t->cluster)) ? NULL : sh_cluster_own(&t->cluster, e);
    if (!own)
        return -1;
    t->own_run = sh_store_begin(own, &t->run, t->key, t->texts.sequence, t->texts.n, t->done, e);
    return t->own_run < 0 ? -1 : 0;
}

static int run_unit(void *to, int unit, struct sh_err *e)
{
    struct trace *t = to;
    if (!t->own_run && begin_own(t, e))
        return -1;
    return sweep(t, &t->unit[unit], t->cluster.own, t->own_run, e);
}

static int share(struct trace *t, struct sh_err *e)
{
    double *size = xcalloc((size_t)t->n_unit, sizeof *size);
    unsigned char *whole = xcalloc((size_t)t->n_unit, 1);
    for (int i = 0; i < t->n_unit; i++) {
        const struct sh_unit *u = &t->unit[i];
        unsigned char *done = done_of(t, u);
        size[i] = u->work;
        whole[i] = !memchr(done, 0, (size_t)(u->n * (u->last_layer - u->first_layer + 1)));
        free(done);
    }
    struct sh_share s = {.n = t->n_unit, .size = size, .done = whole, .run = run_unit, .to = t,
                         .timeout_s = t->a->rank_timeout, .what = "tracing", .quiet = t->common->quiet};
    int bad = sh_cluster_run(&t->cluster, &s, t->store, e);
    free(size);
    free(whole);
    return bad;
}

/* All sequences through this rank's layers. */
static int pass_on(struct trace *t, struct sh_err *e)
{
    const struct sh_unit whole = {.n = t->texts.n, .first_layer = t->run.first_layer, .last_layer = t->run.last_layer};
    size_t cells = (size_t)t->texts.n * (size_t)(t->run.last_layer - t->run.first_layer + 1);
    struct sh_pipeline p;
    if (sh_pipeline_begin(&p, &t->cluster, t->run.last_layer, e))
        return -1;
    sh_cluster_together(&t->cluster);
    int bad = sh_pipeline_start(&p, e) || begin_own(t, e);
    t->sweep.link = &p.link;
    if (!bad && memchr(t->done, 0, cells))      /* all ranks see the same */
        bad = sweep(t, &whole, t->cluster.own, t->own_run, e);
    sh_pipeline_finish(&p, &t->cluster, bad, e);
    sh_cluster_apart(&t->cluster);
    return sh_cluster_is_first(&t->cluster) ? sh_cluster_gather(&t->cluster, t->store, e) : 0;
}

/* ---- the run ---- */

static void cut(struct trace *t)
{
    enum { UNITS_OF_A_RANK = 4 };
    int wanted = t->part.parts ? t->part.parts : t->cluster.ranks ? UNITS_OF_A_RANK * t->cluster.me.size : 1;
    t->unit = xcalloc((size_t)wanted, sizeof *t->unit);
    t->n_unit = sh_units_cut(t->unit, wanted, t->texts.sequence, t->texts.n, t->run.first_layer, t->run.last_layer);
}

/* Alone: all of it, or the one unit that is this shard; a shard may be empty. */
static int record_alone(struct trace *t, int run, struct sh_err *e)
{
    uint64_t job = strtoull(t->key, NULL, 16);
    if (t->part.parts && sh_part_mark(t->store, &t->part, job, t->run.model.fingerprint, 0, e))
        return -1;
    int i = t->part.parts ? t->part.part - 1 : 0, bad = i < t->n_unit && sweep(t, &t->unit[i], t->store, run, e);
    return bad || (t->part.parts && sh_part_mark(t->store, &t->part, job, t->run.model.fingerprint, 1, e)) ? -1 : 0;
}

static int record(struct trace *t, struct sh_err *e)
{
    int is_first = sh_cluster_is_first(&t->cluster), run = 0, bad = 0;
    describe_run(t);
    run_key(t, t->key);
    cut(t);
    size_t cells = (size_t)t->texts.n * (size_t)(t->run.last_layer - t->run.first_layer + 1);
    t->done = xcalloc(cells, 1);
    if (is_first && (!(t->store = sh_store_create(t->path, e)) || (t->part.parts && sh_store_claim(t->store, e))))
        return -1;
    if (t->part.parts && sh_part_check(t->store, &t->part, strtoull(t->key, NULL, 16), e))
        return -1;
    if (is_first) {                             /* the run first: it decides which leftovers belong to it */
        run = sh_store_begin(t->store, &t->run, t->key, t->texts.sequence, t->texts.n, t->done, e);
        bad = run < 0 || (t->cluster.ranks && (sh_cluster_gather(&t->cluster, t->store, e) ||
              sh_store_finished(t->store, &t->run, t->key, t->texts.n, t->done, e) < 0 ||
              (memchr(t->done, 0, cells) && check_backend(t, t->store, run, e))));
    }
    t->cluster.in_line &= bad;
    if (!bad)
        bad = t->a->pipeline ? pass_on(t, e) : t->cluster.ranks ? share(t, e) : record_alone(t, run, e);
    if (!bad && is_first)
        bad = report(t, run, e);
    if (bad && t->store && sh_store_was_made(t->store) && sh_store_is_empty(t->store)) {
        sh_store_close(t->store);
        t->store = NULL;
        sh_store_remove(t->path);
    } else if (bad && run >= 0 && !e->hint[0] && e->status != SH_MISUSED) {
        sh_hint(e, "what was committed to %s is whole; the same command goes on from there", t->path);
    }
    return bad;
}

static void close_all(struct trace *t)
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

static void set_sweep(struct trace *t)
{
    t->sweep.backend = t->devices.backend;
    t->sweep.device = t->devices.at;
    t->sweep.n_device = t->devices.n;
    t->sweep.model = t->model;
    t->sweep.model_path = t->a->model;
    t->sweep.vectors = t->a->vectors;
    t->sweep.memory_bytes = t->a->memory;
    t->sweep.spill_folder = t->folder = folder_of(t->a->db);
}

static int enter(struct trace *t, const struct sh_common *common, struct sh_err *e)
{
    const struct trace_args *a = t->a;
    if (a->pipeline && a->shard)
        return sh_misused(e, "--pipeline and --shard: a shard is one process's, a pipeline is of several ranks");
    if (sh_cluster_enter(&t->cluster, common, a->db, a->shard, &t->part, a->rank_timeout, e))
        return -1;
    t->cluster.shares = t->cluster.ranks && !a->pipeline;
    t->cluster.in_line = t->cluster.ranks && a->pipeline;
    return 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct trace t = {.a = args, .common = &t.cluster.common};
    int bad = enter(&t, common, e) || read_options(&t, positional, e);
    if (!bad) {
        t.path = sh_part_path(t.a->db, &t.part);
        bad = sh_devices_open(&t.devices, t.common, t.a->device_memory, e);   /* before reading much in vain */
    }
    if (!bad)
        bad = open_model(&t, e) || read_texts(&t, e);
    if (!bad) {
        t.chips = sh_devices_chips(&t.devices);
        set_sweep(&t);
        bad = record(&t, e);
    }
    close_all(&t);
    return sh_cluster_leave(&t.cluster, bad ? -1 : 0, e);
}

const struct sh_cmd sh_cmd_trace = {
    .name = "trace",
    .usage = "--model DIR --db FILE (--text FILE... | --jsonl FILE --field NAME | --tokens FILE) [options]",
    .summary = "run a model over texts and record its attention",
    .about = "Runs the model layer by layer over all sequences and writes the attention of every head into a\n"
             "SQLite file. Each layer of each sequence is one transaction: a run that was stopped or killed\n"
             "leaves whole layers, and the same command goes on behind them.\n\n"
             "  shears trace --model opt-125m --db traces.db --text book.txt --length 512 --count 4",
    .opts = opts,
    .args_bytes = sizeof(struct trace_args),
    .preset = preset,
    .run = run,
    .release = release,
};
