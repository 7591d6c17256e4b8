/* SPDX-License-Identifier: Apache-2.0 */
/* What a model consists of: the formats of its tensors, and its fingerprint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/model/coded.h"
#include "src/model/config/config.h"
#include "src/model/model_bound.h"

enum sh_type sh_model_type(const struct sh_model *m)
{
    size_t bytes[3] = {0};
    for (size_t i = 0; i < m->n_bound; i++)
        bytes[m->bound[i].type] += sh_bound_bytes(&m->bound[i]);
    enum sh_type most = SH_F32;
    for (enum sh_type t = SH_F16; t <= SH_BF16; t++)
        if (bytes[t] > bytes[most])
            most = t;
    return most;
}

/* Of a coded tensor with all its pieces. */
static size_t stored_bytes(const struct sh_stored *t)
{
    size_t bytes = t->coded ? 0 : t->bytes;
    for (int i = 0; t->coded && i < SH_N_PIECE; i++)
        bytes += t->coded->piece[i] ? t->coded->piece[i]->bytes : 0;
    return bytes;
}

/* Whether products read a copy of it in blocks (coded_blocks.h). */
static int is_made(const struct bound *b)
{
    return b->stored->coded && b->stored->coded->packing;
}

/* Whether its numbers are others than those of the file. */
static int changes(const struct sh_model *m, const struct bound *b, int layer)
{
    return layer < 0 ? b->param && sh_bound_is_normed(m, b) : m->pruned > 0;
}

/* What is kept of a tensor in codes: its share of what is stored, or blocks; 0: the parameter is kept as numbers. */
static size_t code_bytes(const struct bound *b, int is_changed)
{
    size_t n = (size_t)b->rows * (size_t)b->cols, all = 1;
    if (!b->name || !b->stored || !sh_stored_is_coded(b->stored) || b->param->rows == SH_ONE || is_changed)
        return 0;
    if (is_made(b)) {
        struct sh_packing_shape shape = sh_packing_shape(b->stored->coded->packing);
        return n / (size_t)shape.elements * (size_t)shape.bytes;
    }
    for (int i = 0; i < b->stored->rank; i++)
        all *= b->stored->shape[i];
    return (size_t)((double)stored_bytes(b->stored) * (double)n / (double)all);
}

/* The share of a tensor in codes that stays as it is stored. */
static size_t mapped_bytes(const struct bound *b, int is_changed)
{
    size_t bytes = code_bytes(b, is_changed);
    return bytes && !is_made(b) ? bytes : 0;
}

/* On the processor numbers of 16 bits for products in f32 stay as they are, too. */
static size_t host_bytes(const struct bound *b, enum sh_type dtype, int is_changed)
{
    size_t n = (size_t)b->rows * (size_t)b->cols, codes = sh_bound_is_table(b) ? 0 : code_bytes(b, is_changed);
    if (codes || !b->name || sh_bound_is_table(b))
        return codes;
    return n * sh_type_bytes(b->param->rows == SH_ONE ? SH_F32 : dtype == SH_F32 ? b->type : dtype);
}

/* A device keeps what its kernels read: blocks in plain rows, and such rows of 16-bit numbers where there are several
 * of a role. All else becomes numbers of `dtype`. */
static size_t device_bytes(const struct sh_model *m, const struct bound *b, int layer, enum sh_type dtype)
{
    size_t n = (size_t)b->rows * (size_t)b->cols;
    struct sh_packed p = {.format = SH_PACKED_OTHER};
    const char *name;
    if (!b->name || b->param->rows == SH_ONE || sh_bound_is_table(b))
        return b->name && !sh_bound_is_table(b) ? n * sizeof(float) : 0;
    enum sh_role role = layer < 0 ? SH_HEAD : b->param->role;
    int is_packed = role != SH_KV_B_W && sh_model_packed(m, role, layer, 0, &p, &name);
    int is_halves = !is_packed && dtype == SH_F32 && sh_model_count(m, role) > 1 &&
                    sh_model_halves(m, role, layer, 0, &p, &name);
    if ((is_packed || is_halves) && p.format != SH_PACKED_OTHER && !p.columns) {
        struct sh_packing_shape shape = sh_packing_shape(p.format);
        return n / (size_t)shape.elements * (size_t)(shape.bytes + (p.apart != NULL));
    }
    return n * sh_type_bytes(dtype);
}

/* The places of a layer (-1: of the output matrix): [*from, returned). */
static const struct bound *places(const struct sh_model *m, int layer, const struct bound **from)
{
    enum sh_role head = m->arch.flags & SH_TIED_HEAD ? SH_TOK_EMBED : SH_HEAD;
    *from = layer < 0 ? &m->bound[head] : &m->bound[SH_LAYER_ROLE + (size_t)layer * m->per_layer];
    return *from + (layer < 0 ? 1 : m->per_layer);
}

/* Bytes, or numbers, of what layers share beyond the first that has it. */
static size_t repeated(const struct sh_model *m, int in_bytes)
{
    size_t sum = 0;
    for (int layer = 0; layer < m->arch.n_layer && (m->arch.shared.n || m->arch.loop.n); layer++) {
        const struct bound *b, *end = places(m, layer, &b);
        for (; b < end; b++)
            if (sh_bound_is_again(m, b, layer))
                sum += sh_bound_bytes(b) / (in_bytes ? 1 : sh_type_bytes(b->type));
    }
    return sum;
}

size_t sh_model_parameters(const struct sh_model *m)
{
    size_t sum = 0;
    for (int layer = -1; layer < m->arch.n_layer; layer++)
        sum += sh_model_layer_parameters(m, layer);
    return sum - repeated(m, 0);
}

size_t sh_model_bytes(const struct sh_model *m)
{
    size_t sum = 0;
    for (int layer = -1; layer < m->arch.n_layer; layer++)
        sum += sh_model_layer_bytes(m, layer);
    return sum - repeated(m, 1);
}

size_t sh_model_kept_bytes(const struct sh_model *m, int layer, enum sh_type dtype, int is_host)
{
    size_t bytes = 0;
    const struct bound *b, *end = places(m, layer, &b);
    for (; b < end; b++)
        bytes += is_host ? host_bytes(b, dtype, changes(m, b, layer)) : device_bytes(m, b, layer, dtype);
    return bytes;
}

size_t sh_model_mapped_bytes(const struct sh_model *m, int layer)
{
    size_t bytes = 0;
    const struct bound *b, *end = places(m, layer, &b);
    for (; b < end; b++)
        bytes += mapped_bytes(b, changes(m, b, layer));
    return bytes;
}

int sh_model_has_codes(const struct sh_model *m, int layer)
{
    const struct bound *b, *end = places(m, layer, &b);
    while (b < end && !code_bytes(b, changes(m, b, layer)))
        b++;
    return b < end;
}

/* Of a layer, -1: of the output matrix. */
static int has_integers(const struct sh_model *m, int layer)
{
    struct sh_packed p = {.format = SH_PACKED_OTHER};
    const char *name;
    const struct bound *b, *end = places(m, layer, &b);
    for (; b < end; b++) {
        if (!b->name || b->param->rows == SH_ONE || sh_bound_is_table(b))
            continue;
        enum sh_role role = layer < 0 ? SH_HEAD : b->param->role;
        if (role != SH_KV_B_W &&        /* which latent attention reads as numbers */
            sh_model_packed(m, role, layer, 0, &p, &name) && sh_packed_is_code(p.format))
            return 1;
    }
    return 0;
}

int sh_model_has_integers(const struct sh_model *m)
{
    int found = has_integers(m, -1);
    for (int i = 0; i < m->arch.n_layer && !found; i++)
        found = has_integers(m, i);
    return found;
}

size_t sh_model_numbered_bytes(const struct sh_model *m, enum sh_role role, int layer, enum sh_type dtype, int is_host)
{
    const struct bound *b = sh_bound_at(m, role, layer, 0);
    return is_host ? host_bytes(b, dtype, m->pruned > 0) : device_bytes(m, b, layer, dtype);
}

static int by_kept_bytes(const void *a, const void *b)
{
    const struct sh_kept_format *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

/* Whether it is a matrix, or one of each expert, in a code that has kernels of its own. */
static int may_settle(const struct sh_model *m, const struct bound *b, int layer)
{
    struct sh_packed p;
    const char *name;
    enum sh_role role = layer < 0 ? SH_HEAD : b->param->role;
    int is_expert = layer >= 0 && b->param->count == SH_DIM_EXPERTS;
    return (is_expert || sh_model_count(m, role) == 1) && sh_model_packed(m, role, layer, 0, &p, &name) &&
           sh_packed_may_settle(p.format);
}

static int add_kept(const struct sh_model *m, const struct bound *b, int layer, enum sh_type dtype,
                    struct sh_kept_format *out, int n, int most)
{
    size_t bytes = host_bytes(b, dtype, m->pruned > 0), mapped = mapped_bytes(b, m->pruned > 0);
    enum sh_type type = b->param->rows == SH_ONE ? SH_F32 : dtype == SH_F32 ? b->type : dtype;
    const char *name = code_bytes(b, m->pruned > 0) ? b->stored->dtype : sh_type_name(type);
    int k = 0, is_expert = b->param->count == SH_DIM_EXPERTS;
    while (k < n && strcmp(out[k].name, name))
        k++;
    if (k == most)
        return n;
    if (k == n)
        out[n++] = (struct sh_kept_format){.name = name};
    out[k].parameters += (size_t)b->rows * (size_t)b->cols;
    out[k].bytes += bytes;
    out[k].mapped += mapped;
    out[k].settled += mapped && may_settle(m, b, layer) ? mapped : 0;
    out[k].step += (double)bytes * (is_expert ? (double)m->arch.mix.used / (m->arch.mix.n + m->arch.mix.zero) : 1);
    return n;
}

int sh_model_kept_formats(const struct sh_model *m, enum sh_type dtype, struct sh_kept_format *out, int most)
{
    int n = 0;
    for (int layer = -1; layer < m->arch.n_layer; layer++) {
        const struct bound *b, *end = places(m, layer, &b);
        for (; b < end; b++)
            n = b->name && !sh_bound_is_table(b) ? add_kept(m, b, layer, dtype, out, n, most) : n;
    }
    qsort(out, (size_t)n, sizeof *out, by_kept_bytes);
    return n;
}

enum { MOST_FORMATS = 64 };

struct format {
    const char *name;
    size_t bytes;                       /* in arithmetic */
};

/* The formats of the tensors, by their names; returns how many. plain: of those not coded; NULL: their types. */
static size_t count_formats(const struct sh_model *m, const char *plain, struct format *of)
{
    size_t n = 0, k;
    for (size_t i = 0; i < m->n_bound; i++) {
        const struct bound *b = &m->bound[i];
        int is_coded = b->stored && sh_stored_is_coded(b->stored);
        const char *name = is_coded ? b->stored->dtype : plain ? plain : sh_type_name(b->type);
        for (k = 0; k < n && strcmp(of[k].name, name); k++)
            continue;
        if (k == n && n < MOST_FORMATS && b->name)
            of[n++] = (struct format){name, 0};
        if (k < n)
            of[k].bytes += sh_bound_bytes(b);
    }
    return n;
}

static int most_first(const void *a, const void *b)
{
    const struct format *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

const char *sh_model_stored_as(const struct sh_model *m)
{
    struct format of[MOST_FORMATS];
    size_t n = count_formats(m, sh_type_name(sh_model_type(m)), of);
    qsort(of, n, sizeof *of, most_first);
    return of[0].name;
}

char *sh_model_formats(const struct sh_model *m)
{
    struct format of[MOST_FORMATS];
    size_t n = count_formats(m, NULL, of), bytes;
    char *text;
    int any = 0;
    for (size_t i = 0; i < m->n_bound; i++)
        any |= m->bound[i].stored && sh_stored_is_coded(m->bound[i].stored);
    if (!any)
        return NULL;
    qsort(of, n, sizeof *of, most_first);
    FILE *to = xmemstream(&text, &bytes);
    for (size_t i = 0; i < n; i++)
        fprintf(to, "%s%s", i ? ", " : "", of[i].name);
    xmemclose(to, &text, &bytes);
    return text;
}

/* FNV-1a; the length goes in too, so that neighbouring strings cannot trade characters. */
static uint64_t hash(uint64_t h, const void *at, size_t bytes)
{
    const unsigned char *p = at;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return (h ^ bytes) * 0x100000001b3u;
}

/* A small tensor wholly; of others 64 places of 16 bytes, from the first to the last, so that what is done to a head or
 * a block of rows does not slip between them. */
static uint64_t hash_tensor(uint64_t h, const struct sh_stored *t)
{
    h = hash(h, t->name, strlen(t->name));
    h = hash(h, t->dtype, strlen(t->dtype));
    h = hash(h, t->shape, (size_t)t->rank * sizeof *t->shape);
    if (t->bytes <= 1 << 16)
        h = hash(h, t->at, t->bytes);
    for (size_t k = 0; k < 64 && t->bytes > 1 << 16; k++)
        h = hash(h, t->at + (t->bytes - 16) / 63 * k, 16);
    for (int i = 0; t->coded && i < SH_N_PIECE; i++)
        h = t->coded->piece[i] ? hash_tensor(h, t->coded->piece[i]) : h;
    return h;
}

uint64_t sh_model_fingerprint_unpruned(const struct sh_model *m)
{
    size_t bytes;
    const void *text = sh_config_text(m->config, &bytes);
    uint64_t h = hash(0xcbf29ce484222325u, text, bytes);
    if (!m->file)
        return sh_rng(hash(h, "random", 6), m->seed);
    bytes = sh_weights_file_bytes(m->file);
    h = hash(h, &bytes, sizeof bytes);
    for (size_t i = 0; i < m->n_bound; i++) {
        const struct sh_stored *t = m->bound[i].stored;
        h = t ? hash_tensor(h, t) : h;
        if (t && (i + 1 == m->n_bound || m->bound[i + 1].stored != t))
            sh_stored_drop(t);          /* a few places bring many pages                          */
    }
    return sh_rng(h, 0);
}

uint64_t sh_model_fingerprint(const struct sh_model *m)
{
    uint64_t h = sh_model_fingerprint_unpruned(m);
    return m->pruned > 0 ? hash(h, &m->pruned, sizeof m->pruned) : h;
}
