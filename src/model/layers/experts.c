/* SPDX-License-Identifier: Apache-2.0 */
/* The experts of a layer. Each is read when the first token needs it, in the order of the file, and stays if there is
 * room for it, so that it is read once for all sequences that go through the layer. Experts for which there is no room
 * are released after each use; the first ones stay, because the next rows need them in the same order. Where the
 * backend multiplies by codes, an expert is not copied unless it is settled (sh_layer_settle), or the checkpoint does
 * not have blocks (coded_blocks.h): room is then that of its pages. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

struct sh_experts {
    int n;
    struct expert {
        struct sh_expert w;
        unsigned char is_here, stays, is_sound; /* sound: it has been looked at for NaN           */
        int uses;                       /* while it is here, up to settle_at                      */
    } *at;                              /* [n]                                                    */
    int *order;                         /* [n]: numbers as they follow each other in the file     */
    size_t each, held, room;            /* bytes of one; of those that stay; what these may take  */
    int settle_at, failed;              /* the use of an expert that copies it; 0: none           */
    struct sh_err error;
};

enum { PARTS = 3 };

static const enum sh_role matrices[PARTS] = {SH_EXPERT_GATE_W, SH_EXPERT_UP_W, SH_EXPERT_DOWN_W};
static const enum sh_role biases[PARTS] = {SH_EXPERT_GATE_B, SH_EXPERT_UP_B, SH_EXPERT_DOWN_B};

int sh_experts_new(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    const struct sh_arch *c = sh_model_arch(m);
    if (!(sh_arch_flags(c, l->index) & SH_EXPERT_LAYER))
        return 0;
    struct sh_experts *x = xcalloc(1, sizeof *x);
    l->n_expert = c->mix.n;
    l->experts = x;
    x->n = c->mix.n;
    x->at = xcalloc((size_t)x->n, sizeof *x->at);
    x->order = xmalloc((size_t)x->n * sizeof *x->order);
    x->each = sh_experts_bytes(l->b, m, l->index, l->dtype, l->weight_bits) / (size_t)x->n;
    x->room = SIZE_MAX;
    sh_model_file_order(m, SH_EXPERT_DOWN_W, l->index, x->order);
    return sh_layer_read(l, m, SH_ROUTER_CHOICE, &l->choice, e) ||
                   sh_layer_read(l, m, SH_EXPERT_SCALE, &l->expert_scale, e)
               ? -1 : 0;
}

size_t sh_experts_bytes(const struct sh_backend *b, const struct sh_model *m, int layer, enum sh_type dtype, int bits)
{
    const struct sh_arch *c = sh_model_arch(m);
    if (!(sh_arch_flags(c, layer) & SH_EXPERT_LAYER))
        return 0;
    size_t bytes = 0, n = (size_t)c->mix.n;
    for (int i = 0; i < PARTS; i++) {
        int io = sh_dim_size(c, SH_DIM_EXPERT_IO);
        int down = matrices[i] == SH_EXPERT_DOWN_W, rows = down ? io : c->mix.width, cols = down ? c->mix.width : io;
        if (matrices[i] == SH_EXPERT_GATE_W && !(c->flags & SH_GATED))
            continue;
        if (bits < 16)
            bytes += n * sh_code_bytes(rows, cols, bits);
        else if (b->packed)
            bytes += n * sh_model_numbered_bytes(m, matrices[i], layer, dtype, !b->slots);
        else
            bytes += n * (size_t)rows * (size_t)cols * sh_type_bytes(dtype);
    }
    return bytes;
}

/* ---- one expert ---- */

static int load_vector(const struct sh_layer *l, enum sh_role role, int number, float **out, struct sh_err *e)
{
    struct sh_tensor t;
    *out = NULL;
    if (sh_model_numbered(l->m, role, l->index, number, &t, e) || sh_model_check_finite(&t, e))
        return -1;
    if (!t.at)
        return 0;
    float *host = xmalloc((size_t)t.cols * sizeof *host);
    for (size_t i = 0; i < (size_t)t.cols; i++)
        host[i] = sh_tensor_element(&t, i);
    *out = l->b->vector(l->d, host, (size_t)t.cols, e);
    free(host);
    return *out ? 0 : -1;
}

/* The pages that a matrix was copied from go; those of one that is multiplied where it is stored are needed. */
static int load_matrix(const struct sh_layer *l, enum sh_role role, int number, int is_sound, struct sh_weight **out,
                       struct sh_err *e)
{
    int is_mapped = 0;
    int bad = sh_layer_numbered(l, role, number, is_sound, out, &is_mapped, e);
    if (!is_mapped)
        sh_model_drop_numbered(l->m, role, l->index, number);
    return bad;
}

static int load(const struct sh_layer *l, int number, struct sh_err *e)
{
    struct expert *x = &l->experts->at[number];
    struct sh_weight **matrix[PARTS] = {&x->w.gate, &x->w.up, &x->w.down};
    float **bias[PARTS] = {&x->w.gate_bias, &x->w.up_bias, &x->w.down_bias};
    int bad = 0;
    sh_model_enter(l->m);
    if (l->weight_bits < 16)
        l->b->weight_bits(l->d, l->weight_bits);
    for (int i = 0; i < PARTS && !bad; i++) {
        bad = load_matrix(l, matrices[i], number, x->is_sound, matrix[i], e) ||
              load_vector(l, biases[i], number, bias[i], e);
        sh_model_drop_numbered(l->m, biases[i], l->index, number);
    }
    if (l->weight_bits < 16)
        l->b->weight_bits(l->d, 16);
    sh_model_leave(l->m);
    x->is_here = 1;
    x->is_sound = !bad;
    return bad ? -1 : 0;
}

/* Into the order of the products, when it has been used often enough for that to pay. */
static void settle(const struct sh_layer *l, int number)
{
    struct expert *x = &l->experts->at[number];
    struct sh_weight *const matrix[PARTS] = {x->w.gate, x->w.up, x->w.down};
    if (x->uses == l->experts->settle_at || ++x->uses < l->experts->settle_at)
        return;
    int copied[PARTS];
    for (int i = 0; i < PARTS; i++)
        copied[i] = matrix[i] && l->b->settle(l->d, matrix[i]);
    for (int i = 0; i < PARTS; i++)     /* gate and up may share a tensor */
        if (copied[i])
            sh_model_drop_numbered(l->m, matrices[i], l->index, number);
}

static void give_back(const struct sh_layer *l, struct expert *x)
{
    l->b->drop(l->d, x->w.gate);
    l->b->drop(l->d, x->w.up);
    l->b->drop(l->d, x->w.down);
    l->b->release(l->d, x->w.gate_bias);
    l->b->release(l->d, x->w.up_bias);
    l->b->release(l->d, x->w.down_bias);
    x->w = (struct sh_expert){0};
    x->is_here = 0;
    x->uses = 0;
}

/* ---- all of them ---- */

const int *sh_experts_order(const struct sh_layer *l)
{
    return l->experts->order;
}

const struct sh_expert *sh_experts_get(const struct sh_layer *l, int number, int next)
{
    struct sh_experts *x = l->experts;
    struct expert *one = &x->at[number];
    if (!x->failed && !one->is_here && load(l, number, &x->error))
        x->failed = 1;
    if (!x->failed)
        settle(l, number);
    for (int i = 0; i < PARTS && next >= 0 && !x->at[next].is_here; i++)
        sh_model_ask_numbered(l->m, matrices[i], l->index, next);
    return x->failed ? NULL : &one->w;
}

void sh_experts_done(const struct sh_layer *l, int number)
{
    struct sh_experts *x = l->experts;
    struct expert *one = &x->at[number];
    if (!one->stays && x->each <= x->room - x->held) {
        x->held += x->each;
        one->stays = 1;
    }
    if (one->stays)
        return;
    give_back(l, one);
    sh_model_enter(l->m);               /* another device may be reading the layer                */
    for (int i = 0; i < PARTS; i++)
        sh_model_drop_numbered(l->m, matrices[i], l->index, number);
    sh_model_leave(l->m);
}

int sh_experts_load_copies(const struct sh_layer *l, struct sh_err *e)
{
    struct sh_experts *x = l->experts;
    if (!x)
        return 0;
    if (l->weight_bits == 16 && sh_layer_maps(l, SH_EXPERT_UP_W))
        return 0;
    for (int i = 0; i < x->n; i++) {
        if (!sh_experts_get(l, x->order[i], i + 1 < x->n ? x->order[i + 1] : -1)) {
            *e = x->error;
            return -1;
        }
        sh_experts_done(l, x->order[i]);
    }
    return 0;
}

void sh_experts_settle(const struct sh_layer *l, int settles)
{
    if (l->experts)
        l->experts->settle_at = l->b->settle ? settles : 0;
}

void sh_experts_limit(const struct sh_layer *l, size_t room)
{
    if (l->experts)
        l->experts->room = room;
}

int sh_layer_failed(const struct sh_layer *l, struct sh_err *e)
{
    if (sh_ngrams_failed(l, e))
        return -1;
    if (!l->experts || !l->experts->failed)
        return 0;
    *e = l->experts->error;
    return -1;
}

void sh_experts_drop(struct sh_layer *l)
{
    struct sh_experts *x = l->experts;
    for (int i = 0; x && i < x->n; i++)
        give_back(l, &x->at[i]);
    if (x) {
        free(x->at);
        free(x->order);
    }
    free(x);
    free(l->choice);
    free(l->expert_scale);
}
