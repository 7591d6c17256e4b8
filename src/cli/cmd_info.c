/* SPDX-License-Identifier: Apache-2.0 */
/* shears info: describes a trace store, a checkpoint, or this program. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/err.h"
#include "src/cli/commands.h"
#include "src/app/store/describe.h"
#include "src/cli/info.h"
#include "src/model/files/checkpoint.h"
#include "src/model/layers/layer.h"
#include "traces/codec.h"
#include "traces/digest.h"

struct info_args {
    const char *model;
    int hash;
};

static const struct sh_opt opts[] = {
    SH_TEXT("model", offsetof(struct info_args, model), "DIR", "describe this checkpoint folder or .gguf file"),
    SH_FLAG("hash", offsetof(struct info_args, hash), "hash of the store's content; independent of who wrote it and "
        "in\nwhich order"),
    {0}};

enum { SAMPLES = 256 };                 /* blocks whose code entropy is measured */

struct entropy {
    uint64_t histogram[256];
    double bits, scores;                /* summed over blocks: each block has its own tables */
    int blocks;
};

static int measure(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct entropy *t = to;
    uint64_t count[256] = {0}, n = 0;
    if (b->codec != SH_CODEC_LOG8 || t->blocks >= SAMPLES)
        return 0;
    if (sh_codec_histogram(b, count, e))
        return -1;
    for (int c = 0; c < 256; c++)
        n += count[c];
    for (int c = 0; c < 256; c++)
        if (count[c])
            t->bits -= (double)count[c] * log2((double)count[c] / (double)n);
    t->scores += (double)n;
    t->blocks++;
    return 0;
}

/* Entropy of the log8 codes in bits per score, over blocks spread evenly through the run. */
static int code_entropy(struct sh_store *s, const struct sh_stored_run *r, struct entropy *t, struct sh_err *e)
{
    struct sh_stored_sequence *q;
    int n, bad = 0, n_layer = r->last_layer - r->first_layer + 1;
    if (r->record != SH_RECORD_FULL || r->codec != SH_CODEC_LOG8)
        return 0;
    if (sh_store_sequences(s, r->id, &q, &n, e))
        return -1;
    long long per_sequence = (long long)n_layer * r->n_head, heads = n * per_sequence;
    for (long long at = 0; at < heads && !bad; at += heads > SAMPLES ? heads / SAMPLES : 1) {
        int sequence = (int)(at / per_sequence), rest = (int)(at % per_sequence);
        bad = sh_store_blocks(s, SH_BLOCK_SCORES, q[sequence].id, r->first_layer + rest / r->n_head, rest % r->n_head,
                              measure, t, e);
    }
    sh_stored_sequences_free(q, n);
    return bad;
}

static int info_store(const char *path, const struct sh_common *common, struct sh_err *e)
{
    struct sh_stored_run *runs = NULL;
    int n = 0;
    struct sh_store *s = sh_store_open(path, e);
    int bad = !s || sh_store_runs(s, &runs, &n, e);
    if (!bad && !n)
        bad = sh_fail(e, "%s: contains no runs", path);
    struct sh_out *o = sh_out_new();
    if (!bad)
        bad = sh_describe_run(o, s, &runs[n - 1], e);
    struct entropy t = {0};
    if (!bad)
        bad = code_entropy(s, &runs[n - 1], &t, e);
    if (!bad) {
        if (t.blocks) {
            sh_out_real(o, "code_entropy_bits", "entropy of the codes, bits per score", t.bits / t.scores, 3);
            sh_out_real(o, "code_entropy_bytes", "  in bytes per score", t.bits / t.scores / 8, 4);
            sh_out_int(o, "code_entropy_blocks", "  blocks measured", t.blocks);
        }
        sh_out_text(o, "statistics", "statistics", runs[n - 1].statistics);
        sh_out_text(o, "started", "started", runs[n - 1].started);
        sh_out_text(o, "command", "command", runs[n - 1].command);
        sh_out_list(o, "runs", "runs of this store (the values above are of the last run)");
        for (int i = 0; i < n && !bad; i++) {
            long long bytes = sh_store_blob_bytes(s, runs[i].id, e);
            bad = bytes < 0;
            sh_out_item(o);
            sh_out_int(o, "run", "run", runs[i].id);
            sh_out_text(o, "model", "model", runs[i].model);
            sh_out_text(o, "weights", "weights", runs[i].weights);
            sh_out_text(o, "record", "record", sh_record_names[runs[i].record]);
            sh_out_text(o, "codec", "codec", sh_codec_names[runs[i].codec]);
            sh_out_text(o, "dtype", "dtype", runs[i].dtype);
            sh_out_int(o, "sequences", "sequences", runs[i].n_sequence);
            sh_out_int(o, "tokens", "tokens", runs[i].n_tokens);
            sh_out_int(o, "bytes", "bytes", bytes);
        }
        sh_out_end(o);
    }
    bad = sh_common_write(common, o, bad, e);
    sh_stored_runs_free(runs, n);
    sh_store_close(s);
    return bad;
}

static int info_hash(const char *path, const struct sh_common *common, struct sh_err *e)
{
    struct sh_digest d;
    struct sh_digest_counts n;
    char hex[40];
    struct sh_store *s = sh_store_open(path, e);
    int bad = !s || sh_digest_store(s, &d, &n, e);
    sh_store_close(s);
    if (bad)
        return -1;
    struct sh_out *o = sh_out_new();
    snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, d.high, d.low);
    sh_out_text(o, "hash", "hash", hex);
    sh_out_int(o, "runs", "runs", n.runs);
    sh_out_int(o, "sequences", "sequences", n.sequences);
    sh_out_int(o, "layers_done", "layers finished", n.layers);
    sh_out_int(o, "blocks", "blocks", n.blocks);
    sh_out_int(o, "results", "results", n.results);
    sh_out_int(o, "plans", "plans", n.plans);
    return sh_common_write(common, o, 0, e);
}

/* The layers with a window as ranges: "0-4, 6-10", or "none". Caller frees. */
static char *local_layers(const struct sh_arch *c)
{
    char *text = NULL;
    for (int first = 0; first < c->n_layer; first++) {
        int last = first;
        if (!sh_arch_window(c, first))
            continue;
        while (last + 1 < c->n_layer && sh_arch_window(c, last + 1))
            last++;
        char *more = xasprintf(last > first ? "%s%s%d-%d" : "%s%s%d", text ? text : "", text ? ", " : "", first, last);
        free(text);
        text = more;
        first = last;
    }
    return text ? text : xstrdup("none");
}

static void info_shape(struct sh_out *o, const struct sh_model *m)
{
    static const char *const positions[] = {[SH_POS_LEARNED] = "learned", [SH_POS_ROTARY] = "rotary",
                                            [SH_POS_ALIBI] = "alibi", [SH_POS_NONE] = "none",
                                            [SH_POS_WAVES] = "sinusoidal"};
    const struct sh_arch *c = sh_model_arch(m);
    sh_out_text(o, "model", "model", sh_model_name(m));
    sh_out_text(o, "family", "family", sh_model_family(m));
    sh_out_int(o, "layers", "layers", c->n_layer);
    sh_out_int(o, "heads", "heads", c->n_head);
    sh_out_int(o, "kv_heads", "KV heads", c->n_kv_head);
    sh_out_int(o, "head_dim", "head width", c->d_key ? c->d_key : c->d_head);
    sh_out_int(o, "hidden_size", "hidden width", c->d_model);
    sh_out_int(o, "ffn_dim", "feed-forward width", c->d_ff);
    sh_out_int(o, "vocab_size", "vocabulary", c->n_vocab);
    sh_out_int(o, "max_positions", "positions", c->max_pos);
    sh_out_text(o, "position_kind", "position encoding", positions[c->pos]);
    sh_out_text(o, "norm", "norm", c->norm == SH_NORM_RMS ? "rms" : c->norm == SH_NORM_LENGTH ? "length" : "layer");
    sh_out_bool(o, "gated", "gated feed-forward", (c->flags & SH_GATED) != 0);
    sh_out_bool(o, "tied_head", "head tied to embedding", (c->flags & SH_TIED_HEAD) != 0);
    char *local = local_layers(c);
    sh_out_int(o, "window", "window, tokens", c->window);
    sh_out_text(o, "local_layers", "windowed layers", local);
    free(local);
}

/* Layers that attend by other heads, or have another feed-forward width, than others. */
static void info_layers(struct sh_out *o, const struct sh_arch *c)
{
    int differ = sh_arch_widths_differ(c);
    for (int l = 0; l < c->n_layer && c->sizes; l++) {
        int heads = sh_arch_query_heads(c, l), kv_heads = sh_arch_kv_heads(c, l);
        differ |= sh_arch_attention_kind(c, l) || sh_arch_feed_kind(c, l) || sh_arch_d_ff(c, l) != c->d_ff ||
                  (heads && heads != c->n_head) || (kv_heads && kv_heads != c->n_kv_head);
    }
    if (!differ)
        return;
    sh_out_list(o, "layer_sizes", "layers, which differ (0: the layer does not have it)");
    for (int l = 0; l < c->n_layer; l++) {
        sh_out_item(o);
        sh_out_int(o, "layer", "layer", l);
        sh_out_int(o, "heads", "heads", sh_arch_query_heads(c, l));
        sh_out_int(o, "kv_heads", "KV heads", sh_arch_kv_heads(c, l));
        sh_out_int(o, "head_dim", "head width", sh_arch_attends(c, l) ? sh_arch_d_head(c, l) : 0);
        sh_out_int(o, "ffn_dim", "feed-forward width", sh_arch_feeds(c, l) ? sh_arch_d_ff(c, l) : 0);
    }
    sh_out_end(o);
}

/* What the CPU backend keeps of the weights for products in f32, by format, and what a step reads. */
static void info_resident(struct sh_out *o, const struct sh_model *m)
{
    enum { MOST = 16 };
    struct sh_kept_format of[MOST], all = {0};
    int n = sh_model_kept_formats(m, SH_F32, of, MOST);
    for (int i = 0; i < n; i++) {
        all.bytes += of[i].bytes;
        all.mapped += of[i].mapped;
        all.step += of[i].step;
    }
    sh_out_int(o, "resident_bytes", "weights in memory (CPU), bytes", (long long)all.bytes);
    sh_out_int(o, "resident_mapped_bytes", "  of these where the file is mapped", (long long)all.mapped);
    sh_out_int(o, "step_bytes", "  read by a step of one token", llround(all.step));
    sh_out_list(o, "resident", "weights in memory, by format");
    for (int i = 0; i < n; i++) {
        sh_out_item(o);
        sh_out_text(o, "format", "format", of[i].name);
        sh_out_int(o, "parameters", "parameters", (long long)of[i].parameters);
        sh_out_int(o, "bytes", "bytes", (long long)of[i].bytes);
        sh_out_int(o, "mapped_bytes", "mapped", (long long)of[i].mapped);
        sh_out_int(o, "step_bytes", "read by a step", llround(of[i].step));
    }
    sh_out_end(o);
}

/* Sizes of the weights, the cache and a trace: in f32 on the CPU, of one sequence of the model's context length
 * or 1024 tokens, whichever is less. */
static void info_sizes(struct sh_out *o, const struct sh_model *m)
{
    const struct sh_arch *c = sh_model_arch(m);
    long long most = 0, kept = 0, cached = 0;
    int rows = c->max_pos < 1024 ? c->max_pos : 1024;
    for (int i = 0; i < c->n_layer; i++) {
        long long layer = (long long)sh_model_layer_bytes(m, i);
        most = layer > most ? layer : most;
        layer = (long long)sh_model_kept_bytes(m, i, SH_F32, 1);
        kept = layer > kept ? layer : kept;
        cached += 2 * (long long)sh_arch_kept(c, i);
    }
    sh_out_int(o, "parameters", "parameters", (long long)sh_model_parameters(m));
    sh_out_text(o, "dtype", "weights stored as", sh_model_stored_as(m));
    char *formats = sh_model_formats(m);
    if (formats)
        sh_out_text(o, "formats", "formats of the weights", formats);
    free(formats);
    sh_out_int(o, "weights_bytes", "weights, bytes", (long long)sh_model_bytes(m));
    sh_out_int(o, "layer_bytes", "largest layer, bytes", most);
    sh_out_int(o, "kv_bytes_per_token_f16", "KV cache, bytes per token in f16", cached);
    sh_out_int(o, "trace_rows", "trace: tokens at once", rows);
    sh_out_int(o, "trace_bytes", "trace: bytes for layer, activations, hidden states",
               kept + (long long)sh_activations_bytes(c, rows, SH_F32) + 4LL * rows * c->d_model);
}

static int info_model(const char *folder, const struct sh_common *common, struct sh_err *e)
{
    struct sh_model *m = sh_model_open(folder, e);
    if (!m)
        return -1;
    struct sh_out *o = sh_out_new();
    info_shape(o, m);
    info_sizes(o, m);
    info_resident(o, m);
    info_layers(o, sh_model_arch(m));
    int bad = sh_common_write(common, o, 0, e);
    sh_model_close(m);
    return bad;
}

/* A folder is a checkpoint, and a file of one stands for it; another file is a store. For free(); NULL: a store. */
static char *model_of(const char *path)
{
    struct stat about;
    size_t n = strlen(path);
    int is_gguf = n >= 5 && !strcasecmp(path + n - 5, ".gguf");
    return is_gguf || (!stat(path, &about) && S_ISDIR(about.st_mode)) ? xstrdup(path) : sh_checkpoint_folder(path);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct info_args *a = args;
    if (a->hash && (a->model || positional->n != 1))
        return sh_misused(e, "--hash requires one store: shears info FILE.db --hash");
    if (a->model)
        return info_model(a->model, common, e);
    if (positional->n > 1)
        return sh_misused(e, "info: unexpected argument \"%s\", expected one", positional->at[1]);
    if (!positional->n)
        return sh_misused(e, "info requires a store, --model DIR, or one of backends, families, gpus, models, "
                             "policies");
    if (!strcmp(positional->at[0], "backends"))
        return sh_info_backends(common, e);
    if (!strcmp(positional->at[0], "families"))
        return sh_info_families(common, e);
    if (!strcmp(positional->at[0], "gpus"))
        return sh_info_gpus(common, e);
    if (!strcmp(positional->at[0], "models"))
        return sh_info_models(common, e);
    if (!strcmp(positional->at[0], "policies"))
        return sh_info_policies(common, e);
    if (a->hash)
        return info_hash(positional->at[0], common, e);
    const char *what = positional->at[0];
    char *model = model_of(what);
    int bad = model ? info_model(model, common, e) : info_store(what, common, e);
    free(model);
    if (bad && access(what, F_OK))
        sh_hint_near(e, what, strlen(what), "backends\nfamilies\ngpus\nmodels\npolicies", "");
    return bad;
}

const struct sh_cmd sh_cmd_info = {
    .name = "info",
    .usage = "[FILE.db [--hash] | DIR | FILE.gguf | --model DIR | backends | families | gpus | models | policies]",
    .summary = "describe a trace store, a checkpoint or this program",
    .about = "  shears info traces.db          runs, sizes, bytes per score and the entropy of the score codes\n"
             "  shears info traces.db --hash   a hash of the content; merged shards hash the same as the unsplit job\n"
             "  shears info opt-125m           a checkpoint's shape, size, windowed layers and the memory needed to "
             "trace it\n"
             "  shears info backends           usable backends and devices, and why others are not\n"
             "  shears info families           model families: which run, GGUF architectures, features\n"
             "  shears info gpus               GPUs that shears capacity knows by name\n"
             "  shears info models             models that shears capacity knows by name\n"
             "  shears info policies           eviction policies: what they need, and their knobs\n"
             "\n"
             "--columns, --json and --csv show further columns of these lists. For gpus and models, the column\n"
             "status says which numbers were checked against the row's source (verified) and which were not\n"
             "(background).",
    .opts = opts, .args_bytes = sizeof(struct info_args), .run = run};
