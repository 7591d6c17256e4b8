/* SPDX-License-Identifier: Apache-2.0 */
/* See model.h. Every tensor that the model can have owns one place in `bound`: first the roles that are in no layer,
 * then the roles of layer 0, of layer 1 and so on; a role that is numbered owns one for each number. A place without a
 * name is a tensor that the model does not have. */
#include "src/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/model/coded.h"
#include "src/model/config/config.h"
#include "src/model/model_bound.h"
#include "src/model/files/checkpoint.h"
#include "src/model/files/gguf_tensors.h"
#include "src/model/families/family.h"

/* The places of a layer (-1: of no layer): [*from, returned). */
static struct bound *places(const struct sh_model *m, int layer, struct bound **from)
{
    *from = layer < 0 ? m->bound : sh_bound_at(m, SH_LAYER_ROLE, layer, 0);
    return *from + (layer < 0 ? (size_t)SH_LAYER_ROLE : m->per_layer);
}

/* The folder's own name, or the GGUF file's without its end; for a folder that is named after a revision,
 * what the config says. */
static char *name_of(const struct sh_config *c, const char *folder)
{
    const char *said = NULL;
    struct sh_err ignored;
    char *whole = xrealpath(folder);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash && !strcmp(slash, "/config.json")) {
        *slash = '\0';
        slash = strrchr(whole, '/');
    }
    const char *last = slash ? slash + 1 : "";
    int revision = strlen(last) == 40 && strspn(last, "0123456789abcdef") == 40;
    if (sh_config_is_gguf(c) && sh_is_gguf_name(last))
        whole[strlen(whole) - strlen(".gguf")] = '\0';
    sh_config_word(c, "_name_or_path", &said, &ignored);
    char *name = xstrdup(said && *said && (!*last || revision) ? said : *last ? last : folder);
    free(whole);
    return name;
}

/* The factors of rotary frequencies that the weights bring. */
static int learn_rotation(struct sh_model *m, struct sh_err *e)
{
    struct sh_tensor t;
    if (sh_model_tensor(m, SH_ROPE_POWERS, 0, &t, e) || sh_model_check_finite(&t, e))
        return -1;
    m->arch.rope.is_learned = t.at != NULL;
    for (int i = 0; t.at && i < t.rows * t.cols; i++)
        m->arch.rope.power[i] = sh_tensor_element(&t, (size_t)i);
    return 0;
}

static struct sh_model *open_folder(const char *path, int with_weights, uint64_t seed, struct sh_err *e)
{
    struct sh_config *c = sh_config_open(path, e);
    if (!c)
        return NULL;
    struct sh_model *m = xcalloc(1, sizeof *m);
    m->config = c;
    m->seed = seed;
    pthread_mutex_init(&m->lock, NULL);
    m->path = xstrdup(path);
    m->name = name_of(c, sh_config_is_gguf(c) ? sh_config_path(c) : path);
    m->family = sh_config_family(c, e);
    int bad = !m->family || sh_config_arch(c, &m->arch, e);
    if (!bad && sh_config_is_gguf(c))
        m->family = m->gguf_family = sh_gguf_family(m->family, with_weights);
    if (!bad && with_weights) {
        struct sh_quant quant = {.method = SH_QUANT_NONE};
        m->file = sh_config_is_gguf(c) ? sh_weights_open(sh_config_path(c), e) : sh_weights_open_folder(path, e);
        bad = !m->file || sh_config_quant(c, &quant, e) || sh_weights_join(m->file, &quant, e) ||
              (m->gguf_family && sh_gguf_fold_scales(m->file, m->gguf_family, e));
    }
    if (!bad && !sh_model_bind(m, e) && !learn_rotation(m, e))
        return m;
    sh_model_close(m);
    return NULL;
}

/* A file of a folder stands for it. */
static struct sh_model *open_model(const char *path, int with_weights, uint64_t seed, struct sh_err *e)
{
    char *folder = sh_checkpoint_folder(path);
    struct sh_model *m = open_folder(folder ? folder : path, with_weights, seed, e);
    free(folder);
    return m;
}

struct sh_model *sh_model_open(const char *path, struct sh_err *e)
{
    return open_model(path, 1, 0, e);
}

struct sh_model *sh_model_open_random(const char *path, uint64_t seed, struct sh_err *e)
{
    return open_model(path, 0, seed, e);
}

void sh_model_prune(struct sh_model *m, double share)
{
    m->pruned = share;
}

void sh_model_close(struct sh_model *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_bound; i++) {
        free(m->bound[i].name);
        free(m->bound[i].own);
    }
    free(m->bound);
    sh_weights_close(m->file);
    sh_gguf_family_free(m->gguf_family);
    sh_config_close(m->config);
    pthread_mutex_destroy(&m->lock);
    free(m->path);
    free(m->name);
    free(m);
}

void sh_model_enter(struct sh_model *m)
{
    pthread_mutex_lock(&m->lock);
}

void sh_model_leave(struct sh_model *m)
{
    pthread_mutex_unlock(&m->lock);
}

static void make(const struct sh_model *m, const struct bound *b, int layer)
{
    float *at = b->own;
    size_t n = (size_t)b->rows * (size_t)b->cols;
    enum sh_role role = b->param->role;
    int one = role == SH_RECUR_NORM_W || role == SH_QUERY_KEPT ||
              (sh_role_is_norm(role) && !sh_role_is_less_one(role, &m->arch));
    /* The roles of the embedding's norm, which draws no numbers, are newer: without them a seed keeps its meaning. */
    uint64_t stream = role < SH_EMBED_NORM_W ? role : role - (SH_LAYER_ROLE - SH_EMBED_NORM_W);
    layer = sh_bound_is_again(m, b, layer) ? sh_arch_block_layer(&m->arch, layer) : layer;
    layer = sh_arch_first_pass(&m->arch, layer);
    uint64_t seed = sh_rng(sh_rng(m->seed, stream), role < SH_LAYER_ROLE ? 0 : (uint64_t)layer + 1);
    if (b->number)
        seed = sh_rng(seed, (uint64_t)b->number);
    if (b->param->rows != SH_ONE) {
        sh_random_normal(at, n, seed, m->arch.init_std);
        return;
    }
    int learned = role == SH_LOGIT_FACTOR || (role >= SH_QUERY_FACTOR && role <= SH_MLP_RATE);
    for (size_t i = 0; i < n; i++)
        at[i] = !learned ? (float)one : role == SH_GATE_FACTOR || role == SH_UP_FACTOR ? 1 : m->arch.learned_start;
}

/* Made weights, and weights that do not lie in their file as they are wanted, get memory of their own. */
static int own(const struct sh_model *m, struct bound *b, int layer, struct sh_err *e)
{
    size_t bytes = sh_bound_bytes(b);
    b->own = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!b->own)
        return sh_fail(e, "%s: tensor '%s': no memory for its %zu bytes", m->path, b->name, bytes);
    struct sh_layout stacked = sh_bound_in_stack(b);
    if (b->stored && (sh_stored_is_coded(b->stored) || b->d_head))
        sh_gguf_gather(b->stored, &stacked, b->d_head, sh_type_bytes(b->type), b->own);
    else if (b->stored)
        sh_layout_gather(&b->layout, b->stored->at + b->slice * sh_type_bytes(b->type), b->own,
                         sh_type_bytes(b->type));
    else
        make(m, b, layer);
    if (sh_bound_is_pruned(m, b))
        sh_prune(b->own, b->type, (size_t)b->rows * (size_t)b->cols, m->pruned);
    if (sh_bound_is_normed(m, b))
        sh_norm_matrix(b->own, b->type, b->rows, b->cols, m->arch.head_norm == SH_HEAD_COLUMNS);
    return 0;
}

int sh_model_tensor(struct sh_model *m, enum sh_role role, int layer, struct sh_tensor *out, struct sh_err *e)
{
    return sh_model_numbered(m, role, layer, 0, out, e);
}

int sh_model_count(const struct sh_model *m, enum sh_role role)
{
    return role < SH_LAYER_ROLE ? 1 : (int)(m->first[role - SH_LAYER_ROLE + 1] - m->first[role - SH_LAYER_ROLE]);
}

int sh_model_numbered_rows(const struct sh_model *m, enum sh_role role, int layer, int number)
{
    const struct bound *b = sh_bound_at(m, role, layer, number);
    return b->name ? b->rows : 0;
}

int sh_model_numbered(struct sh_model *m, enum sh_role role, int layer, int number, struct sh_tensor *out,
                      struct sh_err *e)
{
    if (role >= SH_LAYER_ROLE && (layer < 0 || layer >= m->arch.n_layer))
        return sh_fail(e, "%s: found layer %d, expected 0 to %d", m->path, layer, m->arch.n_layer - 1);
    if (role == SH_HEAD && (m->arch.flags & SH_TIED_HEAD))
        role = SH_TOK_EMBED;
    struct bound *b = sh_bound_at(m, role, layer, number);
    *out = (struct sh_tensor){0};
    if (number >= sh_model_count(m, role) || !b->name)
        return 0;
    size_t first = (b->slice + (size_t)b->layout.first * (size_t)b->layout.cols) * sh_type_bytes(b->type);
    int lies_well = b->stored && (uintptr_t)b->stored->at % sh_type_bytes(b->type) == 0 &&
                    sh_layout_is_plain(&b->layout) && !sh_stored_is_coded(b->stored) && !b->d_head &&
                    !sh_bound_is_changed(m, b);
    if (!lies_well && !b->own && own(m, b, layer, e))
        return -1;
    *out = (struct sh_tensor){.at = b->own ? b->own : b->stored->at + first, .type = b->type,
                              .rows = b->rows, .cols = b->cols, .name = b->name};
    return 0;
}

void sh_model_drop(struct sh_model *m, int layer)
{
    struct bound *b, *end = places(m, layer, &b);
    for (; b < end; b++) {
        free(b->own);
        b->own = NULL;
        if (b->stored)
            sh_stored_drop(b->stored);
    }
}

size_t sh_model_layer_parameters(const struct sh_model *m, int layer)
{
    size_t n = 0;
    struct bound *b, *end = places(m, layer, &b);
    for (; b < end; b++)
        if (!b->param || b->param->role != SH_LAYER_SCALE)      /* which is not trained */
            n += sh_bound_bytes(b) / sh_type_bytes(b->type);
    return n;
}

size_t sh_model_layer_bytes(const struct sh_model *m, int layer)
{
    size_t bytes = 0;
    struct bound *b, *end = places(m, layer, &b);
    for (; b < end; b++)
        bytes += sh_bound_bytes(b);
    return bytes;
}

const struct sh_arch *sh_model_arch(const struct sh_model *m)
{
    return &m->arch;
}

const char *sh_model_name(const struct sh_model *m)
{
    return m->name;
}

const char *sh_model_family(const struct sh_model *m)
{
    return m->family->name;
}

int sh_model_is_gguf(const struct sh_model *m)
{
    return m->gguf_family != NULL;
}
