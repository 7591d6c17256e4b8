/* SPDX-License-Identifier: Apache-2.0 */
/* shears import: imports attention that another program recorded into a trace store. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/read_number.h"
#include "src/cli/options.h"
#include "src/app/store/begin.h"
#include "src/app/store/describe.h"
#include "src/cli/paths.h"
#include "src/tracer/import.h"
#include "src/tracer/texts.h"

enum { MOST_WINDOWS = 256, MOST_TOKENS = 1 << 22 };

struct import_args {
    const char *db, *key, *kind, *window, *tokens, *name, *vectors, *record, *codec;
    struct sh_list attention;
    long long kv_heads, d_head;
    double tolerance;
};

#define F(name) offsetof(struct import_args, name)
static const struct sh_opt opts[] = {
    SH_NEW_STORE_OPT(F(db)),
    SH_LIST("attention", F(attention), "FILE...", "recorded attention: .safetensors or .npy of f32, f16 or bf16"),
    SH_TEXT("key", F(key), "PATTERN", "tensor names (for .npy, file names) with the placeholders {sequence},\n{layer} "
        "and {kind} (attn, q, k, v) (default: s{sequence}.l{layer}.{kind},\ns{sequence}.{kind}, or the only tensor)"),
    SH_TEXT("kind", F(kind), "KIND", "causal: no query sees a later key (default)\nbidirectional: every query sees "
        "every key\ncross: keys belong to another sequence"),
    SH_TEXT("window", F(window), "W,...", "sliding window of causal attention in tokens, 0: none; one value per\n"
                                          "layer, repeated as needed (default: 0)"),
    SH_REAL("tolerance", F(tolerance), "X", 0, 0.1, "largest deviation of a row's sum from 1\n"
        "(default: 0.001; for 16-bit files 0.01)"),
    SH_TEXT("tokens", F(tokens), "FILE", "token ids: one JSON array, and so one sequence, per line; attention\n"
                                         "beyond the end of a sequence's array is padding"),
    SH_TEXT("name", F(name), "NAME", "model name (default: the file's name)"),
    SH_INT("kv-heads", F(kv_heads), "N", 1, 100000,
        "KV heads (default: as in the vectors, else the number of query heads)"),
    SH_INT("d-head", F(d_head), "N", 1, 1000000,
        "elements per key, for cache sizes (default: as in the vectors, else 1)"),
    SH_TEXT("vectors", F(vectors), "KINDS", "vectors to import: any of q, k, v, or none (default: all)"),
    SH_TEXT("record", F(record), "WHAT", "full, sparse or summary, as in shears trace (default: full)"),
    SH_TEXT("codec", F(codec), "NAME", "log8, f16 or f32, as in shears trace (default: log8)"),
    {0}};

static const struct import_args defaults = {.kind = "causal", .record = "full", .codec = "log8"};

struct import {
    const struct import_args *a;
    const struct sh_common *common;
    struct sh_dump dump;
    struct sh_import m;
    struct sh_texts texts;
    struct sh_trace_run run;
    struct sh_store *store;
    struct sh_progress progress;
    int window[MOST_WINDOWS];
    char vectors[4], *statistics, *device, *name;
    unsigned char *done;
};

static int read_windows(struct import *t, struct sh_err *e)
{
    if (!t->a->window)
        return 0;
    if (t->m.kind != SH_IMPORT_CAUSAL)
        return sh_misused(e, "--window requires --kind causal");
    if (sh_read_ints("--window", t->a->window, t->window, MOST_WINDOWS, &t->m.n_window, e))
        return -1;
    for (int i = 0; i < t->m.n_window; i++)
        if (t->window[i] < 0 || t->window[i] > MOST_TOKENS)
            return sh_misused(e, "--window: found %d, expected 0 to %d", t->window[i], MOST_TOKENS);
    t->m.window = t->window;
    return 0;
}

static int read_options(struct import *t, const struct sh_list *positional, struct sh_err *e)
{
    const struct import_args *a = t->a;
    const struct sh_need needs[] = {{"--db FILE", a->db != NULL}, {"--attention FILE", a->attention.n > 0}, {0}};
    if (sh_args_none("import", positional, e) || sh_args_need("import", needs, e))
        return -1;
    for (int i = 0; i < a->attention.n; i++)
        if (sh_output_differs("--db", a->db, a->attention.at[i], e))
            return -1;
    int kind = sh_read_name("kind", a->kind, sh_import_kinds, e);
    int record = sh_read_name("record", a->record, sh_record_names, e);
    int codec = sh_read_name("codec", a->codec, sh_codec_names, e);
    if (kind < 0 || record < 0 || codec < 0)
        return -1;
    t->m.kind = (enum sh_import_kind)kind;
    t->m.record.record = t->run.record = (enum sh_record)record;
    t->m.record.codec = t->run.codec = (enum sh_codec)codec;
    if (kind != SH_IMPORT_CAUSAL && record != SH_RECORD_FULL)
        return sh_misused(e, "--kind %s requires --record full: statistics are defined for causal rows only", a->kind);
    if (record == SH_RECORD_SPARSE && codec == SH_CODEC_F16)
        return sh_misused(e, "--record sparse requires --codec log8 or f32: rounding to f16 moves scores across its "
                             "thresholds");
    if (a->vectors && strcmp(a->vectors, "none") && strspn(a->vectors, "qkv") != strlen(a->vectors))
        return sh_misused(e, "--vectors: \"%s\", expected any of q, k, v, or none", a->vectors);
    sh_stats_spec_default(&t->m.record.statistics);
    if (record == SH_RECORD_SPARSE)
        sh_recorder_thresholds(t->run.record, t->run.codec, 0, &t->m.record.statistics);
    return read_windows(t, e);
}

static int choose_vectors(struct import *t, struct sh_err *e)
{
    const char *asked = t->a->vectors;
    int n = 0;
    for (int kind = SH_DUMP_Q; kind <= SH_DUMP_V; kind++) {
        int letter = sh_dump_kinds[kind][0], wanted = asked && strcmp(asked, "none") && strchr(asked, letter);
        if (wanted && !t->dump.has[kind])
            return sh_misused(e, "--vectors %s: %s has no %c", asked, t->a->attention.at[0], letter);
        if (t->dump.has[kind] && (!asked || wanted))
            t->vectors[n++] = (char)letter;
    }
    if (n && t->m.kind == SH_IMPORT_CROSS)
        return sh_misused(e, "--kind cross requires --vectors none: its keys and values belong to another sequence");
    t->m.vectors = t->vectors;
    return 0;
}

/* The tolerance for the type that the scores were rounded to. */
static double tolerance_of(const struct import *t)
{
    int narrow = 0;
    for (int i = 0; i < t->dump.n_part; i++)
        narrow |= t->dump.part[i].kind == SH_DUMP_ATTN && t->dump.part[i].type != SH_F32;
    return t->a->tolerance > 0 ? t->a->tolerance : narrow ? 0.01 : 0.001;
}

static int open_dump(struct import *t, struct sh_err *e)
{
    const struct import_args *a = t->a;
    struct sh_dump *d = &t->dump;
    if (sh_dump_open(d, a->attention.at, a->attention.n, a->key, e))
        return -1;
    for (int i = 0; i < d->n_seq; i++)
        if (t->m.kind != SH_IMPORT_CROSS && d->sequence[i].n_row != d->sequence[i].n_key) {
            sh_fail(e, "%s: sequence %d: found %d queries and %d keys, expected equal numbers", a->attention.at[0],
                    d->sequence[i].number, d->sequence[i].n_row, d->sequence[i].n_key);
            return sh_hint(e, "use --kind cross for attention over another sequence");
        }
    long long kv = a->kv_heads ? a->kv_heads : d->n_kv_head ? d->n_kv_head : d->n_head;
    if (d->n_kv_head && kv != d->n_kv_head)
        return sh_misused(e, "--kv-heads: found %lld, expected %d as in the vectors", kv, d->n_kv_head);
    if (kv > d->n_head || d->n_head % kv)
        return sh_misused(e, "--kv-heads: found %lld, expected a divisor of the %d query heads", kv, d->n_head);
    if (d->d_head && a->d_head && a->d_head != d->d_head)
        return sh_misused(e, "--d-head: found %lld, expected %d as in the vectors", a->d_head, d->d_head);
    t->run.model.n_kv_head = (int)kv;
    t->run.model.d_head = a->d_head ? (int)a->d_head : d->d_head ? d->d_head : 1;
    t->m.dump = d;
    t->m.tolerance = tolerance_of(t);
    t->m.record.n_head = d->n_head;
    return choose_vectors(t, e);
}

/* Unknown ids are -1. */
static void make_texts(struct import *t)
{
    t->texts.n = t->dump.n_seq;
    t->texts.sequence = xcalloc((size_t)t->dump.n_seq, sizeof *t->texts.sequence);
    for (int i = 0; i < t->dump.n_seq; i++) {
        struct sh_trace_sequence *q = &t->texts.sequence[i];
        q->source = xasprintf("%s:%d", basename(t->a->attention.at[0]), t->dump.sequence[i].number);
        q->n_tokens = t->dump.sequence[i].n_row;
        q->tokens = xmalloc((size_t)q->n_tokens * sizeof *q->tokens);
        memset(q->tokens, 0xff, (size_t)q->n_tokens * sizeof *q->tokens);
    }
}

static int read_texts(struct import *t, struct sh_err *e)
{
    t->texts = (struct sh_texts){.max_pos = MOST_TOKENS, .n_vocab = INT32_MAX};
    if (!t->a->tokens)
        make_texts(t);
    else if (sh_texts_tokens(&t->texts, t->a->tokens, e))
        return -1;
    if (t->texts.n != t->dump.n_seq)
        return sh_fail(e, "%s: found %d line%s of tokens, expected %d: one per sequence of %s", t->a->tokens,
                       t->texts.n, t->texts.n == 1 ? "" : "s", t->dump.n_seq, t->a->attention.at[0]);
    for (int i = 0; i < t->texts.n; i++) {
        int n = t->texts.sequence[i].n_tokens, have = t->dump.sequence[i].n_row;
        if (n > have)
            return sh_fail(e, "%s: line %d: found %d tokens, expected at most the %d queries of sequence %d of %s",
                           t->a->tokens, i + 1, n, have, t->dump.sequence[i].number, t->a->attention.at[0]);
    }
    t->m.sequence = t->texts.sequence;
    return 0;
}

/* FNV-1a */
static void hash(uint64_t *h, const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *h = (*h ^ ((const unsigned char *)at)[i]) * 0x100000001b3u;
}

static void hash_text(uint64_t *h, const char *text)
{
    hash(h, text, strlen(text) + 1);
}

/* Hashes a tensor's shape and samples of its numbers, spread over it. */
static void hash_part(uint64_t *h, const struct sh_dump_part *p)
{
    enum { SAMPLES = 16, BYTES = 1024 };
    int what[] = {p->kind, p->sequence, p->layer, p->type, p->n_head, p->n_row, p->n_col};
    size_t all = (size_t)p->n_head * (size_t)p->n_row * (size_t)p->n_col * sh_type_bytes(p->type);
    size_t n = all < BYTES ? all : BYTES;
    hash(h, what, sizeof what);
    for (size_t i = 0; i < SAMPLES; i++)
        hash(h, p->at + (all - n) / (SAMPLES - 1) * i, n);
    hash(h, p->at + all - n, n);
    sh_dump_drop(p);
}

static void run_key(const struct import *t, char key[20])
{
    uint64_t h = 0xcbf29ce484222325u;
    const char *text[] = {"import", t->name, t->a->kind, t->a->record, t->a->codec, t->vectors,
                          t->run.record == SH_RECORD_FULL ? "" : t->statistics};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        hash_text(&h, text[i]);
    hash(&h, &t->run.model.n_kv_head, sizeof(int));
    hash(&h, &t->run.model.d_head, sizeof(int));
    hash(&h, t->window, (size_t)t->m.n_window * sizeof *t->window);
    for (int i = 0; i < t->texts.n; i++) {
        hash(&h, &t->texts.sequence[i].n_tokens, sizeof(int));
        hash(&h, t->texts.sequence[i].tokens, 4 * (size_t)t->texts.sequence[i].n_tokens);
    }
    for (int i = 0; i < t->dump.n_part; i++)
        hash_part(&h, &t->dump.part[i]);
    snprintf(key, 20, "%016" PRIx64, h);
}

/* Imports with one fingerprint count as one model, of which only the shape is known. */
static uint64_t fingerprint(const struct import *t)
{
    uint64_t h = 0xcbf29ce484222325u;
    int shape[] = {t->dump.last_layer + 1, t->dump.n_head, t->run.model.n_kv_head, t->run.model.d_head};
    hash_text(&h, t->name);
    hash_text(&h, t->a->kind);
    hash(&h, shape, sizeof shape);
    return h;
}

static void describe_run(struct import *t)
{
    const struct sh_dump *d = &t->dump;
    const char *file = basename(t->a->attention.at[0]), *dot = strrchr(file, '.');
    t->name = t->a->name ? xstrdup(t->a->name) : xasprintf("%.*s", (int)(dot ? dot - file : (long)strlen(file)), file);
    t->device = xasprintf("%s attention of %s", t->a->kind, file);
    t->statistics = sh_stats_spec_write(&t->m.record.statistics);
    struct sh_trace_model *m = &t->run.model;
    m->name = t->name;
    m->family = m->weights = t->run.backend = "import";
    m->n_layer = d->last_layer + 1;
    m->n_head = d->n_head;
    m->d_model = m->d_head * m->n_head;
    for (int i = 0; i < t->texts.n; i++) {
        const struct sh_trace_sequence *q = &t->texts.sequence[i];
        m->max_pos = q->n_tokens > m->max_pos ? q->n_tokens : m->max_pos;
        for (int k = 0; k < q->n_tokens; k++)
            m->n_vocab = q->tokens[k] >= m->n_vocab ? q->tokens[k] + 1 : m->n_vocab;
    }
    m->fingerprint = fingerprint(t);
    t->run.program = PACKAGE_VERSION;
    t->run.device = t->device;
    t->run.dtype = sh_type_name(d->part[0].type);
    t->run.weight_bits = 16;
    t->run.vectors = t->vectors;
    t->run.statistics = t->statistics;
    t->run.command = t->common->line;
    t->run.first_layer = d->first_layer;
    t->run.last_layer = d->last_layer;
    t->run.orderless = t->m.kind != SH_IMPORT_CAUSAL;
    t->run.seed = t->common->seed;
}

static double layers_of(const struct import *t)
{
    return (double)t->dump.n_seq * (t->dump.last_layer - t->dump.first_layer + 1);
}

static int write_all(struct import *t, int run, struct sh_err *e)
{
    struct sh_writer *writer = sh_writer_begin(t->store, run, (size_t)256 << 20, e);
    if (!writer)
        return -1;
    double began = sh_now_s();
    sh_progress_begin(&t->progress, "importing", "layers", layers_of(t), t->common->quiet);
    int bad = sh_import(&t->m, writer, e);
    struct sh_err write_error;
    if (sh_writer_end(writer, &write_error)) {
        *e = write_error;
        bad = -1;
    }
    sh_progress_end(&t->progress);
    struct sh_err ignored;
    sh_store_add_seconds(t->store, run, sh_now_s() - began, bad ? &ignored : e);
    return bad;
}

static int report(struct import *t, int run, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int bad = sh_describe_run_of(o, t->store, run, e);
    sh_out_text(o, "db", "store", t->a->db);
    return sh_common_write(t->common, o, bad, e);
}

/* Checks everything before the first byte is written. */
static int record(struct import *t, struct sh_err *e)
{
    char key[20];
    sh_progress_begin(&t->progress, "checking", "layers", layers_of(t), t->common->quiet);
    int bad = sh_import(&t->m, NULL, e);
    sh_progress_end(&t->progress);
    if (bad)
        return -1;
    run_key(t, key);
    if (!(t->store = sh_store_create(t->a->db, e)))
        return -1;
    t->m.done = t->done = xcalloc((size_t)layers_of(t), 1);
    int run = sh_begin_claim(t->store, e)
                  ? -1 : sh_store_begin(t->store, &t->run, key, t->texts.sequence, t->texts.n, t->done, e);
    if (run > 0 && sh_begin_tell(t->store, run, t->common->quiet, e))
        run = -1;
    if (run < 0 && sh_store_was_made(t->store)) {       /* leave no empty store */
        sh_store_close(t->store);
        t->store = NULL;
        sh_store_remove(t->a->db);
    }
    if (run < 0)
        return -1;
    if (!memchr(t->done, 0, (size_t)layers_of(t)))
        return report(t, run, e);               /* everything was stored before */
    if (!write_all(t, run, e) && !report(t, run, e))
        return 0;
    return e->hint[0] ? -1
                      : sh_hint(e, "all layers committed to %s are complete; run the same command again to resume",
                                t->a->db);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct import t = {.a = args, .common = common};
    t.m.n_threads = (int)common->threads;
    t.m.progress = &t.progress;
    int bad = read_options(&t, positional, e) || open_dump(&t, e) || read_texts(&t, e);
    if (!bad) {
        describe_run(&t);
        bad = record(&t, e);
    }
    sh_store_close(t.store);
    sh_sequences_free(t.texts.sequence, t.texts.n);
    sh_dump_close(&t.dump);
    free(t.statistics);
    free(t.device);
    free(t.name);
    free(t.done);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_import = {
    .name = "import",
    .usage = "--db FILE --attention FILE... [--key PATTERN] [options]",
    .summary = "import attention that another program recorded",
    .about = "Attention is a tensor [heads, queries, keys] of f32, f16 or bf16. If its name does not give the layer\n"
             "or the sequence, these are leading dimensions: layers first, then sequences (a batch). Before anything\n"
             "is written, every row is checked: its scores must be finite, not below 0, and 0 for keys that the\n"
             "query cannot see, and they must sum to 1. Vectors, if any, are [heads, tokens, d_head] in the same\n"
             "files. doc/import.md shows how to record both in Python.\n"
             "\n"
             "Attention that is not causal (--kind bidirectional or cross) is accepted by info, export, verify,\n"
             "report and plot heatmap; commands about caches refuse it.\n"
             "\n"
             "  shears import --db traces.db --attention attention.safetensors --tokens tokens.jsonl --name gpt2",
    .opts = opts, .args_bytes = sizeof(struct import_args), .defaults = &defaults, .run = run};
