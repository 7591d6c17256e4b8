/* SPDX-License-Identifier: Apache-2.0 */
/* Binds the names of a family's tables to the tensors of a checkpoint (model_bound.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/coded.h"
#include "src/model/config/config.h"
#include "src/model/model_bound.h"
#include "src/model/files/gguf_tensors.h"
#include "src/model/families/families.h"

enum { MOST_CUT = 10000000 };                   /* rows of a part that is cut anywhere                      */
#define MOST_TENSORS ((size_t)10000000)         /* of all layers, those that a model lacks among them */

/* Sets where a layer's places are. */
static void lay_out(struct sh_model *m)
{
    size_t n[N_LAYER_ROLE] = {0};
    for (const struct sh_param *p = m->family->params; p->name; p++)
        if (p->role >= SH_LAYER_ROLE)
            n[p->role - SH_LAYER_ROLE] = (size_t)sh_dim_size(&m->arch, p->count);
    for (int i = 0; i < N_LAYER_ROLE; i++)
        m->first[i + 1] = m->first[i] + (n[i] ? n[i] : 1);
    m->per_layer = m->first[N_LAYER_ROLE];
}

static const struct { const char *own; size_t field; } dims[] = {
    [SH_ONE] = {"1", 0},
    [SH_DIM_MODEL] = {"model width", offsetof(struct sh_arch, d_model)},
    [SH_DIM_EMBED] = {"embedding width", offsetof(struct sh_arch, d_embed)},
    [SH_DIM_FF] = {"feed-forward width", offsetof(struct sh_arch, d_ff)},
    [SH_DIM_VOCAB] = {"vocabulary", offsetof(struct sh_arch, n_vocab)},
    [SH_DIM_OUT] = {"rows of the output head", offsetof(struct sh_arch, n_out)},
    [SH_DIM_MORE] = {"further rows of the embedding", 0},
    [SH_DIM_POS] = {"positions", offsetof(struct sh_arch, max_pos)},
    [SH_DIM_Q] = {"query heads x head width", offsetof(struct sh_arch, d_head)},
    [SH_DIM_KV] = {"KV heads x head width", offsetof(struct sh_arch, d_head)},
    [SH_DIM_KV_VALUES] = {"KV heads x width of values", 0},
    [SH_DIM_HEAD] = {"head width", offsetof(struct sh_arch, d_head)},
    [SH_DIM_HEADS] = {"query heads", offsetof(struct sh_arch, n_head)},
    [SH_DIM_KV_HEADS] = {"KV heads", offsetof(struct sh_arch, n_kv_head)},
    [SH_DIM_GATES] = {"gates of query heads", offsetof(struct sh_arch, n_head)},
    [SH_DIM_Q_RANK] = {"query latent", offsetof(struct sh_arch, latent.q_rank)},
    [SH_DIM_KV_RANK] = {"latent", offsetof(struct sh_arch, latent.rank)},
    [SH_DIM_KV_A] = {"latent + rotary width", 0},
    [SH_DIM_Q_RANKS] = {"twice the latent of queries", 0},
    [SH_DIM_PAIR] = {"twice the width", 0},
    [SH_DIM_ADAPTER] = {"rank of adapters", offsetof(struct sh_arch, shared.rank)},
    [SH_DIM_NORM_RANK] = {"rank of a norm's gate", offsetof(struct sh_arch, norm_rank)},
    [SH_DIM_Q_B] = {"query heads x width of their queries", 0},
    [SH_DIM_KV_B] = {"query heads x width of keys and values in the latent", 0},
    [SH_DIM_VALUES] = {"query heads x width of values", 0},
    [SH_DIM_NOPE] = {"width of keys", offsetof(struct sh_arch, latent.d_nope)},
    [SH_DIM_VALUE] = {"width of values", offsetof(struct sh_arch, latent.d_v)},
    [SH_DIM_KV_SET] = {"KV heads x head width", 0},
    [SH_DIM_ONE_ROW] = {"1", 0},
    [SH_DIM_ROPE_PAIRS] = {"rotary pairs of a head", 0},
    [SH_DIM_OWN] = {"width of a layer's embedding", offsetof(struct sh_arch, streams.d_own)},
    [SH_DIM_OWN_ALL] = {"layers x width of their embeddings", 0},
    [SH_DIM_OWN_ROWS] = {"rows of the layers' embeddings", offsetof(struct sh_arch, streams.n_own)},
    [SH_DIM_STREAMS] = {"streams", offsetof(struct sh_arch, streams.n)},
    [SH_DIM_STREAM_PAIRS] = {"pairs of streams", 0},
    [SH_DIM_LAUREL] = {"rank", offsetof(struct sh_arch, streams.laurel)},
    [SH_DIM_HYPER] = {"weights of hyper-connections", 0},
    [SH_DIM_HYPER_IN] = {"streams x model width", 0},
    [SH_DIM_HYPER_SCALES] = {"kinds of these weights", 0},
    [SH_DIM_MIXER_RANK] = {"rank of streams' weights", offsetof(struct sh_arch, streams.rank)},
    [SH_DIM_NGRAM] = {"width of n-grams' embeddings", offsetof(struct sh_arch, ngrams.d)},
    [SH_DIM_NGRAM_HEAD] = {"width of one of n-grams' embeddings", 0},
    [SH_DIM_NGRAM_ROWS] = {"rows of a table of n-grams", 0},
    [SH_DIM_NGRAM_PARTS] = {"parts of a table of n-grams", offsetof(struct sh_arch, ngrams.parts)},
    [SH_DIM_NGRAM_KERNEL] = {"tokens of n-grams' convolution", offsetof(struct sh_arch, ngrams.kernel)},
    [SH_DIM_RECUR_KEYS] = {"recurrent key heads x width", 0},
    [SH_DIM_RECUR_VALUES] = {"recurrent value heads x width", 0},
    [SH_DIM_RECUR_HEADS] = {"recurrent value heads", offsetof(struct sh_arch, recurrent.n_v)},
    [SH_DIM_RECUR_HEAD] = {"width of a recurrent value head", offsetof(struct sh_arch, recurrent.d_v)},
    [SH_DIM_RECUR_CHANNELS] = {"channels of the convolution", 0},
    [SH_DIM_RECUR_KERNEL] = {"tokens of the convolution", offsetof(struct sh_arch, recurrent.kernel)},
    [SH_DIM_RECUR_STATE] = {"state of a channel", offsetof(struct sh_arch, recurrent.d_k)},
    [SH_DIM_RECUR_RANK] = {"rank of the steps", offsetof(struct sh_arch, recurrent.rank)},
    [SH_DIM_RECUR_DECAYS] = {"decays", 0},
    [SH_DIM_RECUR_GATE] = {"rank of gates", offsetof(struct sh_arch, recurrent.gate_rank)},
    [SH_DIM_RECUR_RANK_B_C] = {"rank of the steps + twice the state", 0},
    [SH_DIM_EXPERTS] = {"experts", offsetof(struct sh_arch, mix.n)},
    [SH_DIM_ROUTES] = {"experts and those that compute nothing", 0},
    [SH_DIM_EXPERT_IO] = {"width of an expert's input", 0},
    [SH_DIM_EXPERT_FF] = {"expert width", offsetof(struct sh_arch, mix.width)},
    [SH_DIM_SHARED_FF] = {"shared expert width", offsetof(struct sh_arch, mix.shared_width)}};

/* What config.json calls the dimension, for people who look for their mistake. */
static const char *dim_name(const struct sh_model *m, enum sh_dim dim)
{
    const char *name = NULL;
    if (dims[dim].field && dim != SH_DIM_Q && dim != SH_DIM_KV)
        name = sh_config_count_name(m->config, m->family, dims[dim].field);
    return name ? name : dims[dim].own;
}

/* The name of a parameter: its prefix, and numbers for '#', '%' and '@'. */
static char *spell(const struct sh_param *p, const char *prefix, int first, int second, int number)
{
    char *name = xasprintf("%s", p->form & SH_WHOLE_NAME ? "" : prefix);
    for (const char *at = p->name; *at;) {
        size_t plain = strcspn(at, "#%@");
        int i = at[plain] == '#' ? first : at[plain] == '%' ? second : number;
        char *longer = at[plain] ? xasprintf("%s%.*s%d", name, (int)plain, at, i) : xasprintf("%s%s", name, at);
        free(name);
        name = longer;
        at += plain + (at[plain] != '\0');
    }
    return name;
}

static char *full_name(const struct sh_model *m, const struct sh_param *p, const char *prefix, int layer, int number)
{
    struct sh_numbers n = sh_param_numbers(m->family, &m->arch, p, layer);
    return spell(p, prefix, n.layer, n.part, number);
}

/* The same of a tensor that the file may have only for the first layer with its block. */
static char *block_name(const struct sh_model *m, const struct sh_param *p, const char *prefix, int layer)
{
    return spell(p, prefix, sh_arch_block_layer(&m->arch, layer), sh_arch_block_number(&m->arch, layer), 0);
}

/* The rows of a tensor in words: of all its parts. */
static void rows_in_words(const struct sh_model *m, const struct sh_param *p, int layer, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct sh_param *part = m->family->params; part->name; part++)
        if (!strcmp(part->name, p->name) && sh_param_exists(part, &m->arch, layer) && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " + " : "",
                                     dim_name(m, p->rows == SH_ONE ? part->cols : part->rows));
    if (p->rows == SH_DIM_POS && m->arch.pos_offset && used < bytes)
        snprintf(text + used, bytes - used, " + offset");
}

static int is_conv(enum sh_role role)
{
    return role == SH_RECUR_CONV || role == SH_RECUR_CONV_K || role == SH_RECUR_CONV_V || role == SH_NGRAM_CONV;
}

/* A vector of n among dimensions of 1, as Kimi Linear has it. */
static int is_padded(const size_t *got, int rank, size_t n)
{
    int others = 0;
    for (int i = 0; i < rank; i++)
        others += got[i] != 1;
    for (int i = 0; i < rank && others == 1; i++)
        if (got[i] == n)
            return 1;
    return n == 1 && !others;
}

/* Are all slices one matrix, one after another? */
static int are_stacked(const struct sh_model *m, const struct bound *b, const size_t shape[2])
{
    const struct sh_stored *t = b->stored;
    return sh_bound_is_sliced(b->param) && t->rank == 2 && t->shape[1] == shape[1] &&
           t->shape[0] == (size_t)sh_dim_size(&m->arch, b->param->count) * shape[0];
}

/* Of slices, each. Vectors may be stored as one row, and matrices of one row as vectors. */
static int check_shape(const struct sh_model *m, const struct bound *b, int layer, struct sh_err *e)
{
    const struct sh_param *p = b->param;
    const struct sh_stored *t = b->stored;
    const struct sh_layout *l = &b->layout;
    int sliced = sh_bound_is_sliced(p), rank = t->rank - sliced;
    int padded = rank == 4 && t->shape[0] == 1;         /* [1, channels, 1, taps] in Kimi Linear's GGUF files */
    const size_t *got = t->shape + sliced;
    const size_t squeezed[2] = {rank > 2 ? got[padded] : 0, rank > 2 ? got[padded + 2] : 0};
    const char *cols = dim_name(m, p->cols);
    char found[200], rows[200];
    size_t shape[2] = {(size_t)(l->is_transposed ? l->cols : l->total),
                       (size_t)(l->is_transposed ? l->total : l->cols)};
    rows_in_words(m, p, layer, rows, sizeof rows);
    if (is_conv(p->role) && (rank == 3 || padded) && got[padded + 1] == 1) {        /* a group's one channel */
        got = squeezed;
        rank = 2;
    }
    if ((p->rows == SH_DIM_ONE_ROW && rank == 1 && got[0] == shape[1]) || are_stacked(m, b, shape))
        return 0;
    if (p->form & SH_WHOLE_NAME && !sliced && rank == 3 && got[0] * got[1] == shape[0] && got[2] == shape[1])
        return 0;                           /* parts one after another */
    if (sliced && (rank < 0 || t->shape[0] != (size_t)sh_dim_size(&m->arch, p->count)))
        return sh_fail(e, "%s: tensor '%s': found shape %s, expected %d slices (%s)", t->file, t->name,
                       sh_stored_shape(t, found, sizeof found), sh_dim_size(&m->arch, p->count), dim_name(m, p->count));
    if (p->rows == SH_ONE) {
        int in_parts = p->role == SH_RECUR_NORM_W || p->role == SH_RECUR_LOG_A || p->role == SH_RECUR_SKIP;
        int is_one = (!rank && shape[0] == 1) || (rank == 2 && got[0] == 1 && got[1] == shape[0]) ||
                     (p->form & SH_FIRST_ROW && rank == 2 && got[0] == 2 && got[1] == shape[0]) ||
                     (p->role == SH_RECUR_LOG_A && is_padded(got, rank, shape[0])) ||
                     (rank == 2 && in_parts && p->form & SH_WHOLE_NAME && got[0] * got[1] == shape[0]);
        if (!is_one && (rank != 1 || got[0] != shape[0]))
            return sh_fail(e, "%s: tensor '%s': found shape %s, expected [%zu] (%s)", t->file,
                           t->name, sh_stored_shape(t, found, sizeof found), shape[0], rows);
    } else if (rank != 2 || got[0] != shape[0] || got[1] != shape[1]) {
        sh_fail(e, "%s: tensor '%s': found shape %s, expected %s[%zu, %zu] (%s, %s)", t->file, t->name,
                sh_stored_shape(t, found, sizeof found), sliced ? "slices of " : "", shape[0], shape[1],
                l->is_transposed ? cols : rows, l->is_transposed ? rows : cols);
        return sh_hint(e, "the expected shape comes from the keys in %s", sh_config_path(m->config));
    }
    return 0;
}

/* GGUF files have the product of the latent whole, or its halves for keys and for values, head by head. */
static int is_in_halves(struct sh_model *m, const struct sh_param *p, int layer)
{
    if (p->role == SH_K_B_W || p->role == SH_V_B_W)
        return sh_bound_at(m, SH_KV_B_W, layer, 0)->stored != NULL;
    char half[40];
    snprintf(half, sizeof half, "blk.%d.attn_k_b.weight", layer);
    return p->role == SH_KV_B_W && sh_weights_find(m->file, half);
}

static int is_upright(const struct bound *b)
{
    int last = b->stored->rank - 1;
    return last > 0 && b->stored->shape[last - 1] == (size_t)b->layout.total &&
           b->stored->shape[last] == (size_t)b->layout.cols;
}

/* Does the table go on to another name for the same? */
static int has_other_name(const struct sh_model *m, const struct sh_param *p, int layer)
{
    for (const struct sh_param *other = p + 1; other->name; other++)
        if (other->role == p->role && sh_param_exists(other, &m->arch, layer))
            return 1;
    return 0;
}

/* The tensor of that name, or of the longer one that the head of a model with vision or hearing may have. */
static const struct sh_stored *find_whole(const struct sh_model *m, const struct sh_param *p, const char *prefix,
                                          const char *name)
{
    const struct sh_stored *t = sh_weights_find(m->file, name);
    size_t n = strcspn(prefix, ".");
    int is_inner = !strncmp(prefix, "language_model.", n + 1) || !strncmp(prefix, "thinker.", n + 1) ||
                   !strncmp(prefix, "text_model.", n + 1);
    if (t || !is_inner || !(p->form & SH_WHOLE_NAME))
        return t;
    char *longer = xasprintf("%.*s.%s", (int)n, prefix, name);
    t = sh_weights_find(m->file, longer);
    free(longer);
    return t;
}

/* The file does not have it. */
static int leave_out(struct bound *b)
{
    free(b->name);
    b->name = NULL;
    b->rows = sh_bound_is_table(b) || b->param->role == SH_MORE_EMBED ? 0 : b->rows;     /* others have them all */
    return 0;
}

static int bind(struct sh_model *m, const struct sh_param *p, const char *prefix, int layer, int number,
                struct sh_err *e)
{
    struct bound *b = sh_bound_at(m, p->role, layer, number);
    if (b->name)
        return 0;                       /* by an earlier name */
    struct sh_arch copy;
    const struct sh_arch *a = sh_arch_at(&m->arch, p->role < SH_LAYER_ROLE ? -1 : layer, &copy);
    *b = (struct bound){.name = full_name(m, p, prefix, layer, number), .param = p, .type = SH_F32,
                        .number = number, .layout = sh_layout_of(m->family, a, p, layer),
                        .rows = sh_dim_size(a, p->rows), .cols = sh_dim_size(a, p->cols),
                        .d_head = p->form & SH_GGUF_PAIRED ? a->d_head : 0};
    if (sh_bound_is_sliced(p))
        b->slice = (size_t)number * (size_t)b->layout.total * (size_t)b->layout.cols;
    if (!m->file)                       /* a table of n-grams is whole then */
        return number && sh_bound_is_table(b) ? leave_out(b) : 0;
    b->stored = sh_weights_find(m->file, b->name);
    if (!b->stored && p->form & SH_OF_BLOCK) {
        free(b->name);
        b->name = block_name(m, p, prefix, layer);
        b->stored = sh_weights_find(m->file, b->name);
    }
    if (!b->stored && (b->stored = find_whole(m, p, prefix, b->name))) {
        free(b->name);
        b->name = xstrdup(b->stored->name);
    }
    if (!b->stored && (p->form & SH_OPTIONAL || has_other_name(m, p, layer) || is_in_halves(m, p, layer)))
        return leave_out(b);
    if (!b->stored)
        return sh_fail(e, "%s: tensor '%s' is missing from the weights", m->path, b->name);
    if (b->stored->coded || (p->form & SH_EITHER_WAY && is_upright(b)))         /* coded: always [out, in] */
        b->layout.is_transposed = 0;
    if (p->form & SH_CUT_ANYWHERE && b->stored->rank && b->stored->shape[0] <= MOST_CUT)
        b->rows = b->layout.rows = b->layout.run = b->layout.step = b->layout.total = (int)b->stored->shape[0];
    return check_shape(m, b, layer, e) || sh_stored_type(b->stored, &b->type, e) ? -1 : 0;
}

/* Checkpoints of a family differ in the prefix of their names; the token embedding tells which. */
static const char *find_prefix(const struct sh_model *m, struct sh_err *e)
{
    char *wanted = NULL;
    const char *const *prefix = sh_config_is_wrapped(m->config) ? sh_wrapper_prefixes : m->family->prefixes;
    for (; *prefix; prefix++)
        for (const struct sh_param *p = m->family->params; p->name; p++) {
            if (p->role != SH_TOK_EMBED)
                continue;
            char *name = full_name(m, p, *prefix, 0, 0);
            int found = !m->file || sh_weights_find(m->file, name);
            char *longer = wanted ? xasprintf("%s or '%s'", wanted, name) : xasprintf("'%s'", name);
            free(name);
            free(wanted);
            wanted = longer;
            if (found) {
                free(wanted);
                return *prefix;
            }
        }
    sh_fail(e, "%s: found no token embedding, expected a tensor %s", m->path, wanted);
    free(wanted);
    return NULL;
}

/* A layer more than config.json promises means that one of the two is not of this model; but layers that predict
 * further tokens follow where it counts some. */
static int check_no_more_layers(const struct sh_model *m, const char *prefix, struct sh_err *e)
{
    int follow = sh_config_is_set(m->config, "num_nextn_predict_layers");
    for (const struct sh_param *p = m->family->params; m->file && p->name && !follow; p++) {
        if (p->role < SH_LAYER_ROLE)
            continue;
        char *name = full_name(m, p, prefix, m->arch.n_layer, 0);
        const struct sh_stored *t = sh_weights_find(m->file, name);
        free(name);
        if (t)
            return sh_fail(e, "%s: found tensor '%s', expected only the %d layers of %s",
                           t->file, t->name, m->arch.n_layer, sh_config_path(m->config));
    }
    return 0;
}

/* A tensor that is bound to no place would change what the model computes. Hub folders also hold buffers, so a spare
 * tensor is not an error there. */
static int check_all_bound(const struct sh_model *m, struct sh_err *e)
{
    if (!m->file || !sh_weights_gguf(m->file))
        return 0;
    size_t n = sh_weights_count(m->file);
    const struct sh_stored *spare = NULL, *first = n ? sh_weights_at(m->file, 0) : NULL;
    unsigned char *is_bound = xcalloc(n, 1);
    for (size_t i = 0; i < m->n_bound; i++)
        if (m->bound[i].stored)
            is_bound[m->bound[i].stored - first] = 1;
    int more = sh_config_is_set(m->config, "num_nextn_predict_layers");
    for (size_t i = 0; i < n && !spare; i++) {
        const char *name = first[i].name;       /* what looks at pictures, and frequencies, which are in the config */
        long layer = strncmp(name, "blk.", 4) ? -1 : strtol(name + 4, NULL, 10);
        int borrows = layer >= 0 && layer < m->arch.n_layer && sh_arch_borrows(&m->arch, (int)layer) &&
                      (strstr(name, ".attn_k") || strstr(name, ".attn_v"));
        int predicts = borrows || (more && layer >= m->arch.n_layer);
        int is_aside = predicts || !strncmp(name, "v.", 2) || !strncmp(name, "mm.", 3) ||
                       !strcmp(name, "rope_freqs.weight") ||
                       (m->family->gguf->traits & SH_GGUF_INDEXED && strstr(name, ".indexer.")) ||
                       (m->family->gguf->traits & SH_GGUF_LONG && !strncmp(name, "rope_factors_", 13));
        spare = is_bound[i] || is_aside ? NULL : &first[i];
    }
    free(is_bound);
    return spare ? sh_fail(e, "%s: found tensor '%s', which the family %s does not use", spare->file,
                           spare->name, m->family->name) : 0;
}

/* Files in the wild cut a convolution's parts at other rows than its channels: all together must be as many. */
static int check_convs(struct sh_model *m, struct sh_err *e)
{
    int channels = sh_recurrent_channels(&m->arch.recurrent);
    for (int layer = 0; layer < m->arch.n_layer; layer++) {
        const struct bound *q = sh_bound_at(m, SH_RECUR_CONV, layer, 0), *k = sh_bound_at(m, SH_RECUR_CONV_K, layer, 0),
                           *v = sh_bound_at(m, SH_RECUR_CONV_V, layer, 0);
        if (!k->name || q->rows + k->rows + v->rows == channels)
            continue;
        return sh_fail(e, "%s: tensors '%s', '%s' and '%s': found %d, %d and %d rows, expected %d together", m->path,
                       q->name, k->name, v->name, q->rows, k->rows, v->rows, channels);
    }
    return 0;
}

/* The same of an embedding in two tensors, which transformers cuts in halves. */
static int check_embedding(struct sh_model *m, struct sh_err *e)
{
    const struct bound *t = sh_bound_at(m, SH_TOK_EMBED, -1, 0), *more = sh_bound_at(m, SH_MORE_EMBED, -1, 0);
    if (!t->name || t->rows + (more->name ? more->rows : 0) == m->arch.n_vocab)
        return 0;
    return sh_fail(e, "%s: tensors '%s' and '%s': found %d and %d rows, expected %d together", m->path, t->name,
                   more->name ? more->name : "(absent)", t->rows, more->name ? more->rows : 0, m->arch.n_vocab);
}

/* The tensor of a role that is not a layer's, by the first of its names that the file has. */
static const struct sh_stored *find_role(const struct sh_model *m, enum sh_role role, const char *prefix)
{
    const struct sh_stored *t = NULL;
    for (const struct sh_param *p = m->family->params; p->name && !t; p++) {
        char *name = p->role == role ? full_name(m, p, prefix, 0, 0) : NULL;
        t = name ? find_whole(m, p, prefix, name) : NULL;
        free(name);
    }
    return t;
}

static int has_role(const struct sh_model *m, enum sh_role role)
{
    const struct sh_param *p = m->family->params;
    while (p->name && p->role != role)
        p++;
    return p->name != NULL;
}

static int is_alike(const struct sh_stored *a, const struct sh_stored *b)
{
    return a->rank == 2 && b->rank == 2 && a->shape[0] == b->shape[0] && a->shape[1] == b->shape[1];
}

static int is_same(const struct sh_stored *a, const struct sh_stored *b)
{
    return !a->coded && !b->coded && !strcmp(a->dtype, b->dtype) && a->bytes == b->bytes &&
           !memcmp(a->at, b->at, a->bytes);
}

/* As transformers does it: a head that the file has in addition to the embedding is used if it differs, whatever the
 * config says. Where a text part is wrapped, either config may say that the two are one; if none says anything, they
 * are if the file has no head. */
static int settle_head(struct sh_model *m, const char *prefix, struct sh_err *e)
{
    if (!m->file || !has_role(m, SH_HEAD) || !has_role(m, SH_TOK_EMBED) || sh_config_is_gguf(m->config))
        return 0;
    const struct sh_stored *head = find_role(m, SH_HEAD, prefix), *t = find_role(m, SH_TOK_EMBED, prefix);
    int tied = (m->arch.flags & SH_TIED_HEAD) != 0, is_wrapped = sh_config_is_wrapped(m->config);
    int inner = 0, outer = -1;
    if (is_wrapped && (sh_config_flag(m->config, "tie_word_embeddings", &inner, e) ||
                       sh_config_outer_flag(m->config, "tie_word_embeddings", &outer, e)))
        return -1;
    if (is_wrapped && !m->arch.n_out)
        tied |= inner || (outer < 0 && !head);      /* tied: as outer says */
    if (head && tied && t)
        tied = !is_alike(head, t) || is_same(head, t);
    m->arch.flags = tied ? m->arch.flags | SH_TIED_HEAD : m->arch.flags & ~(unsigned)SH_TIED_HEAD;
    return 0;
}

int sh_model_bind(struct sh_model *m, struct sh_err *e)
{
    const char *prefix = find_prefix(m, e);
    if (!prefix || settle_head(m, prefix, e))
        return -1;
    lay_out(m);
    if (m->per_layer > MOST_TENSORS / (size_t)m->arch.n_layer)
        return sh_fail(e, "%s: found %d layers of %zu tensors, expected at most %zu in all", m->path, m->arch.n_layer,
                       m->per_layer, MOST_TENSORS);
    m->n_bound = SH_LAYER_ROLE + (size_t)m->arch.n_layer * m->per_layer;
    m->bound = xcalloc(m->n_bound, sizeof *m->bound);
    for (const struct sh_param *p = m->family->params; p->name; p++)
        for (int layer = 0; layer < (p->role < SH_LAYER_ROLE ? 1 : m->arch.n_layer); layer++)
            for (int i = 0; i < sh_dim_size(&m->arch, p->count) && sh_param_exists(p, &m->arch, layer); i++)
                if (bind(m, p, prefix, layer, i, e))
                    return -1;
    return check_embedding(m, e) || check_convs(m, e) || sh_model_check_ngrams(m, e) ||
                   check_no_more_layers(m, prefix, e) || check_all_bound(m, e)
               ? -1 : 0;
}
