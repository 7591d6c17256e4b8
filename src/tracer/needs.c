/* SPDX-License-Identifier: Apache-2.0 */
/* What a sweep takes (sweep.h), and how many tokens go through a layer together: as many as the backend
 * likes, or fewer until everything fits into the smallest of the devices. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer.h"
#include "src/tracer/sweep.h"
#include "src/tracer/units.h"

enum { ROUNDING = 1 << 20 };                    /* of a layer's vectors, which are f32, and of sizes      */

/* Of a layer's inputs and outputs. */
static int widest(const struct sh_arch *c)
{
    int q = c->n_head * c->d_head, ff = sh_arch_widest_ff(c), most = ff > q ? ff : q;
    return c->d_model > most ? c->d_model : most;
}

/* The matrices of a layer but its experts as codes, and its vectors as f32 (fifteen at most, none longer than the
 * widest). */
static size_t coded_layer_bytes(const struct sh_sweep *s)
{
    const struct sh_arch *c = sh_model_arch(s->model);
    int q = c->n_head * c->d_head, kv = c->n_kv_head * c->d_head, n_up = c->flags & SH_GATED ? 2 : 1;
    const int shape[][3] = {                    /* how many, rows, columns                                */
        {1, q, c->d_model}, {2, kv, c->d_model}, {1, c->d_model, q}, {n_up, c->d_ff, c->d_model},
        {1, c->d_model, c->d_ff},
        {c->mix.shared_width ? n_up : 0, c->mix.shared_width, c->d_model},
        {c->mix.shared_width ? 1 : 0, c->d_model, c->mix.shared_width},
        {c->mix.latent ? 1 : 0, c->mix.latent, c->d_model}, {c->mix.latent ? 1 : 0, c->d_model, c->mix.latent}};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        bytes += (size_t)shape[i][0] * sh_code_bytes(shape[i][1], shape[i][2], s->weight_bits);
    return bytes + 15 * (size_t)widest(c) * sizeof(float);
}

static size_t expert_bytes(const struct sh_sweep *s, int layer)
{
    return sh_experts_bytes(s->backend, s->model, layer, s->dtype, s->weight_bits);
}

/* Of the largest one without its experts. */
static size_t layer_bytes(const struct sh_sweep *s, int is_host)
{
    size_t most = 0;
    if (s->weight_bits < 16)
        return coded_layer_bytes(s);
    for (int l = 0; l <= s->last_layer; l++) {
        size_t numbers = sh_model_layer_parameters(s->model, l) * sh_type_bytes(s->dtype), apart = expert_bytes(s, l);
        int keeps = is_host || s->backend->packed;
        size_t all = keeps ? sh_model_kept_bytes(s->model, l, s->dtype, is_host) : numbers;
        size_t bytes = all > apart ? all - apart : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* The most that the experts of a layer take. */
static size_t all_expert_bytes(const struct sh_sweep *s)
{
    size_t most = 0;
    for (int l = 0; l <= s->last_layer; l++) {
        size_t bytes = expert_bytes(s, l);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static size_t one_expert_bytes(const struct sh_sweep *s)
{
    int n = sh_model_arch(s->model)->mix.n;
    return n ? all_expert_bytes(s) / (size_t)n : 0;
}

/* Of the layers that attend with a window, or without one, that with the most heads; -1: there is none. */
static int layer_like(const struct sh_sweep *s, int has_window)
{
    const struct sh_arch *c = sh_model_arch(s->model);
    int like = -1;
    for (int l = 0; l <= s->last_layer; l++)
        if (sh_arch_attends(c, l) && !sh_arch_window(c, l) == !has_window &&
            (like < 0 || sh_arch_query_heads(c, l) > sh_arch_query_heads(c, like)))
            like = l;
    return like;
}

/* Of a layer's attends of all chunks, the most. */
static size_t layer_attend_bytes(const struct sh_sweep *s, const struct sh_chunks *chunks, int layer)
{
    const struct sh_arch *c = sh_model_arch(s->model);
    struct sh_recorder_options options = s->record;
    size_t most = 0;
    if (layer < 0)
        return 0;
    options.window = sh_arch_window(c, layer);
    options.n_head = sh_arch_query_heads(c, layer);
    for (int i = 0; i < chunks->n; i++) {
        const struct sh_chunk *k = &chunks->at[i];
        int *n_tokens = xcalloc((size_t)k->n, sizeof *n_tokens);
        for (int q = 0; q < k->n; q++)
            n_tokens[q] = k->start[q + 1] - k->start[q];
        struct sh_recorder *r = sh_recorder_new(&options, k->n, n_tokens, NULL);
        struct sh_attend a = sh_layer_attend(c, layer, k->rows, s->dtype);
        a.out.at = &a;                          /* wanted, but never followed */
        a.n_seq = k->n;
        a.start = k->start;
        a.tap = sh_recorder_tap(r);
        size_t bytes = s->backend->attend_bytes(s->device[0], &a);
        most = bytes > most ? bytes : most;
        sh_recorder_free(r);
        free(n_tokens);
    }
    return most;
}

/* A window makes a tile narrower but lets it have more rows: either kind of layer may take the most. */
static size_t attend_bytes(const struct sh_sweep *s, const struct sh_chunks *chunks)
{
    size_t whole = layer_attend_bytes(s, chunks, layer_like(s, 0));
    size_t local = layer_attend_bytes(s, chunks, layer_like(s, 1));
    return whole > local ? whole : local;
}

static size_t device_bytes(const struct sh_sweep *s, const struct sh_chunks *chunks, size_t activations)
{
    const struct sh_arch *c = sh_model_arch(s->model);
    size_t hidden = (size_t)chunks->most_rows * sh_arch_row(c) * sizeof(float);
    int bits = sh_layer_scratch_bits(s->backend, s->model, s->dtype, s->weight_bits);
    size_t linear = s->backend->linear_bytes(s->device[0], chunks->most_rows, widest(c), widest(c), s->dtype, bits);
    return activations + hidden + linear + attend_bytes(s, chunks) + ROUNDING;
}

/* What may be taken of the smallest device; 0: not known. What it took when it was opened is part of it,
 * and of what the sweep needs. */
static size_t smallest_device(const struct sh_sweep *s, size_t *taken)
{
    size_t least = 0;
    *taken = 0;
    for (int i = 0; i < s->n_device; i++) {
        struct sh_props p;
        s->backend->props(s->device[i], &p);
        if (p.memory_bytes && (!least || p.memory_bytes + p.taken_bytes < least))
            least = p.memory_bytes + p.taken_bytes;
        *taken = p.taken_bytes > *taken ? p.taken_bytes : *taken;
    }
    return least;
}

/* Fill `out` for chunks of at most `rows` tokens; returns the largest chunk's. */
static int measure(const struct sh_sweep *s, int rows, int is_host, size_t taken, struct sh_sweep_needs *out)
{
    const struct sh_arch *c = sh_model_arch(s->model);
    struct sh_chunks chunks;
    sh_chunks_cut(&chunks, s->sequence, s->n, rows);
    out->rows = rows;
    out->activation_bytes = sh_activations_bytes(c, chunks.most_rows, s->dtype);
    out->hidden_bytes = chunks.n_rows * sh_arch_row(c) * sizeof(float);
    out->spills = out->hidden_bytes > s->memory_bytes;
    size_t apart = out->expert_room < all_expert_bytes(s) ? one_expert_bytes(s) : 0;    /* in use, but not kept */
    size_t held = s->link ? (size_t)out->layers_at_once : 1;    /* layers with experts */
    if (!is_host)
        out->device_bytes = taken + device_bytes(s, &chunks, out->activation_bytes) +
                            (size_t)out->layers_at_once * (out->layer_bytes + ROUNDING) +
                            held * out->expert_room + apart;
    int most = chunks.most_rows;
    sh_chunks_free(&chunks);
    return most;
}

/* Hidden states that stay on the devices, where there is room for them. */
static void let_stay(const struct sh_sweep *s, size_t room, struct sh_sweep_needs *out)
{
    struct sh_chunks chunks;
    size_t most = 0;
    sh_chunks_cut(&chunks, s->sequence, s->n, out->rows);
    for (int i = 0; i < s->n_device; i++) {
        size_t rows = sh_chunks_rows(&chunks, i, s->n_device);
        most = rows > most ? rows : most;
    }
    size_t more = (most - (size_t)chunks.most_rows) * sh_arch_row(sh_model_arch(s->model)) * sizeof(float);
    sh_chunks_free(&chunks);
    out->stay = !s->link && room > out->device_bytes && more <= room - out->device_bytes;
    out->device_bytes += out->stay ? more : 0;
}

/* Experts of a device that is too small for a layer's: those that fit stay, others come for each chunk. */
static void keep_fewer(const struct sh_sweep *s, int rows, size_t room, size_t taken, struct sh_sweep_needs *out)
{
    size_t held = s->link ? (size_t)out->layers_at_once : 1;
    size_t over = (out->device_bytes - room + one_expert_bytes(s) + held - 1) / held;
    out->expert_room = over < out->expert_room ? out->expert_room - over : 0;
    measure(s, rows, 0, taken, out);
}

int sh_sweep_needs(const struct sh_sweep *s, struct sh_sweep_needs *out, struct sh_err *e)
{
    struct sh_props props;
    s->backend->props(s->device[0], &props);
    size_t taken, room = smallest_device(s, &taken), all = 0;
    int longest = 0, rows = props.rows_at_once;
    for (int i = 0; i < s->n; i++) {
        all += (size_t)s->sequence[i].n_tokens;
        longest = s->sequence[i].n_tokens > longest ? s->sequence[i].n_tokens : longest;
    }
    size_t share = (all + (size_t)s->n_device - 1) / (size_t)s->n_device;
    rows = share < (size_t)rows ? (int)share : rows;
    *out = (struct sh_sweep_needs){.layer_bytes = layer_bytes(s, props.is_host),
                                   .layers_at_once = props.is_host ? 1 : 2};
    out->expert_room = props.is_host ? s->memory_bytes : all_expert_bytes(s);
    if (s->link)
        out->layers_at_once = s->link->last - s->link->first + 1;
    int most = measure(s, rows, props.is_host, taken, out);
    while (room && out->device_bytes > room && most > longest)
        most = measure(s, rows = rows / 2 > longest ? rows / 2 : longest, props.is_host, taken, out);
    if (room && out->device_bytes > room && !s->link) {
        out->layers_at_once = 1;
        measure(s, rows, props.is_host, taken, out);
    }
    if (room && out->device_bytes > room && out->expert_room)
        keep_fewer(s, rows, room, taken, out);
    if (!room || out->device_bytes <= room) {
        if (!props.is_host)
            let_stay(s, room, out);
        return 0;
    }
    sh_fail(e, "%s: needs %zu bytes of device memory (%zu for a layer's weights, the rest for a sequence of %d "
            "tokens), but at most %zu may be used", s->model_path, out->device_bytes, out->layer_bytes, longest, room);
    return sh_hint(e, "set --device-memory to at least %zu if the device has it, or use shorter sequences with "
                   "--length, a 16-bit --dtype or fewer --weight-bits", out->device_bytes);
}
