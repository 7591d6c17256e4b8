/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/resident.h"

#include <stdlib.h>

#include "src/base/mem.h"

static int load_layer(struct sh_resident *r, int layer, struct sh_err *e)
{
    const struct sh_resident_setup *s = &r->setup;
    struct sh_layer *l = sh_layer_load(s->backend, s->device, s->model, layer, s->dtype, s->weight_bits, e);
    r->layer[layer] = l;
    if (l && !s->streams)
        sh_layer_settle(l, r->settles);
    return l && (s->streams || !sh_experts_load_copies(l, e)) ? 0 : sh_err_prefix(e, "layer %d", layer);
}

static int load_layers(struct sh_resident *r, struct sh_err *e)
{
    const struct sh_resident_setup *s = &r->setup;
    int bad = 0;
    r->layer = xcalloc((size_t)r->arch->n_layer, sizeof *r->layer);
    for (int i = 0; i < r->arch->n_layer && !bad && !s->streams; i++)
        bad = load_layer(r, i, e);
    return bad;
}

int sh_resident_layer(struct sh_resident *r, int layer, struct sh_err *e)
{
    return r->layer[layer] ? 0 : load_layer(r, layer, e);
}

void sh_resident_leave(struct sh_resident *r, int layer)
{
    if (!r->setup.streams)
        return;
    sh_layer_drop(r->layer[layer]);
    r->layer[layer] = NULL;
}

/* The output matrix of a model in codes is read in every step, too: 8 bits, which it bears better than 4. */
static int load_head(struct sh_resident *r, struct sh_err *e)
{
    const struct sh_resident_setup *s = &r->setup;
    s->backend->weight_bits(s->device, s->weight_bits < 16 ? 8 : 16);
    r->head = sh_head_new(s->backend, s->device, s->model, s->dtype, s->rows, e);
    s->backend->weight_bits(s->device, 16);
    return r->head ? 0 : -1;
}

/* Of a layer, -1: of the output matrix, with matrices of so many bits. */
static size_t bytes_of(const struct sh_resident_setup *s, int layer, int bits, int is_host)
{
    const struct sh_arch *a = sh_model_arch(s->model);
    size_t n = layer < 0 ? (size_t)a->n_vocab * (size_t)a->d_model : sh_model_layer_parameters(s->model, layer);
    if (bits < 16)
        return layer < 0 ? n : n / 8 * (size_t)bits;
    int keeps = is_host || s->backend->packed;
    return keeps ? sh_model_kept_bytes(s->model, layer, s->dtype, is_host) : n * sh_type_bytes(s->dtype);
}

/* What the layers' weights, the largest alone where they come one by one, and the output matrix take at least, with
 * matrices of so many bits; and what is left for them. */
static void room_for(const struct sh_resident_setup *s, int bits, size_t *needs, size_t *left)
{
    struct sh_props props;
    s->backend->props(s->device, &props);
    int keeps = props.is_host && bits == 16;
    size_t all = 0, most = 0, mapped = keeps ? sh_model_mapped_bytes(s->model, -1) : 0;
    for (int i = 0; i < sh_model_arch(s->model)->n_layer; i++) {
        size_t n = bytes_of(s, i, bits, props.is_host);
        all += n;
        most = n > most ? n : most;
        mapped += keeps ? sh_model_mapped_bytes(s->model, i) : 0;
    }
    *needs = (s->streams ? most : all) + bytes_of(s, -1, bits, props.is_host);
    *left = props.is_host ? sh_host_memory_free_with(mapped < *needs ? mapped : *needs) : props.memory_bytes;
}

void sh_resident_room(const struct sh_resident_setup *s, size_t *needs, size_t *left)
{
    room_for(s, s->weight_bits, needs, left);
}

void sh_resident_for_texts(struct sh_resident_setup *s, int longest, long long all, int least)
{
    struct sh_props props;
    size_t needs, left, whole = sh_activations_bytes(sh_model_arch(s->model), longest, s->dtype);
    s->backend->props(s->device, &props);
    s->rows = props.rows_at_once < all ? props.rows_at_once : (int)all;
    s->rows = s->rows < least ? least : s->rows;
    sh_resident_room(s, &needs, &left);
    if (longest > s->rows && (!left || whole < left / 4))
        s->rows = longest;
    s->streams = left && needs > left;
}

/* Weights that cannot fit are refused before the first is read, with the width that would do. */
static int check_room(const struct sh_resident *r, struct sh_err *e)
{
    size_t takes, left, other, room;
    sh_resident_room(&r->setup, &takes, &left);
    if (takes <= left)
        return 0;
    sh_fail(e, "the weights need at least %zu bytes, but the %s has %zu left", takes,
            r->is_host ? "machine" : "device", left);
    for (int bits = 8; bits >= 4; bits /= 2) {
        room_for(&r->setup, bits, &other, &room);
        if (bits < r->setup.weight_bits && other <= room)
            return sh_hint(e, "with --weight-bits %d they need %zu bytes", bits, other);
    }
    return -1;
}

struct sh_resident *sh_resident_open(const struct sh_resident_setup *setup, struct sh_err *e)
{
    struct sh_resident *r = xcalloc(1, sizeof *r);
    const struct sh_backend *b = setup->backend;
    struct sh_dev *d = setup->device;
    struct sh_props props;
    r->setup = *setup;
    r->arch = sh_model_arch(setup->model);
    b->props(d, &props);
    r->is_host = props.is_host;
    r->settles = props.settles;
    size_t bytes = (size_t)setup->rows * sh_arch_row(r->arch) * sizeof(float);
    int bad = check_room(r, e) || load_layers(r, e) || !(r->entry = sh_entry_new(b, d, setup->model, e)) ||
              load_head(r, e) || sh_activations_new(&r->act, b, d, r->arch, setup->rows, setup->dtype, e) ||
              sh_activations_reach(&r->act, setup->positions, e) || !(r->hidden = b->alloc(d, bytes, e));
    if (bad) {
        sh_resident_close(r);
        return NULL;
    }
    r->logits_rows = sh_head_rows(r->head);
    r->logits = xmalloc((size_t)r->logits_rows * (size_t)r->arch->n_vocab * sizeof *r->logits);
    return r;
}

void sh_resident_close(struct sh_resident *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->arch->n_layer && r->layer; i++)
        sh_layer_drop(r->layer[i]);
    sh_entry_free(r->entry);
    sh_head_free(r->head);
    sh_activations_free(&r->act);
    r->setup.backend->release(r->setup.device, r->hidden);
    free(r->layer);
    free(r->logits);
    free(r);
}

void sh_resident_attend(const struct sh_resident *r, const struct sh_attend *what, int n_seq, const int *start)
{
    struct sh_attend a = *what;
    int *own = xcalloc((size_t)n_seq + 1, sizeof *own);
    a.n_seq = 0;
    for (int i = 0; i < n_seq; i++)
        if (start[i + 1] > start[i])
            own[++a.n_seq] = start[i + 1];
    a.start = own;
    r->setup.backend->attend(r->setup.device, &a);
    free(own);
}
