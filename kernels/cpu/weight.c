/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in the blocked layout that oneDNN's matmul asks for, as codes, or as halves. Each call has scratch of its
 * own, because weights are made while another thread computes. */
#include <stdatomic.h>

#include "kernels/cpu/onednn.h"
#include "src/base/team.h"

enum { NOMINAL_ROWS = 1024 };           /* the layout is chosen for this many rows of x */
enum { AT_ONCE = 1 << 20 };             /* numbers of 16 bits that are widened before they become codes */

static int choose_layout(struct sh_dev *d, struct sh_weight *w)
{
    enum sh_type type = cpu_computed(d, w->type);
    desc_owner x = plain(type, NOMINAL_ROWS, w->cols, (size_t)w->cols);
    desc_owner out = plain(SH_F32, NOMINAL_ROWS, w->rows, (size_t)w->rows);
    desc_owner any = desc_tagged(w->stored, w->cols, w->rows, dnnl_format_tag_any);
    dnnl_primitive_desc_t pd;
    dnnl_status_t status = matmul_new(&pd, d->engine, x, any, NULL, out, NULL);
    if (status == dnnl_success) {
        layout_copy(w, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    desc_free(x);
    desc_free(out);
    desc_free(any);
    return status == dnnl_success ? 0 : -1;
}

/* What gemm_few_rows.h can read: plain rows, or panels of FEW_COLS outputs, inputs in blocks one after another. */
static struct few_layout few_layout(const struct sh_weight *w)
{
    struct few_layout l = {.at = w->at, .type = w->stored == dnnl_bf16 ? SH_BF16 : SH_F32, .wide = w->rows};
    struct blocking b = blocking_of(w);
    int fold = w->stored == dnnl_bf16 ? 2 : 1;
    if (!b.n && fold == 1 && b.stride[1] == 1 && b.stride[0] == w->rows) {
        l.fold = 1;
        return l;
    }
    int last = b.n == 3 && b.which[2] == 0 ? (int)b.inner[2] : 1;
    if (b.n != 1 + fold || last != fold || b.which[0] != 0 || b.which[1] != 1 || b.inner[1] != FEW_COLS ||
        b.stride[0] != b.inner[0] * FEW_COLS * fold)
        return l;
    l.fold = fold;
    l.wide = FEW_COLS;
    l.panel = (size_t)b.stride[1];
    return l;
}

struct filling {
    struct sh_dev *d;
    const struct sh_weight *w;
    void *from;
    struct parted parted;
    int step;                           /* outputs of a part */
    atomic_int bad;
};

/* A stream of its own: weights are made while another thread computes. */
static dnnl_status_t reorder(dnnl_engine_t engine, desc from_md, void *from, desc to_md, void *to)
{
    dnnl_memory_t source = NULL, target = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_stream_t stream = NULL;
    onednn_alone();
    dnnl_status_t s = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (!s)
        s = dnnl_memory_create(&source, from_md, engine, from);
    if (!s)
        s = dnnl_memory_create(&target, to_md, engine, to);
    if (!s)
        s = dnnl_reorder_primitive_desc_create(&pd, from_md, engine, to_md, engine, NULL);
    if (!s)
        s = dnnl_primitive_create(&primitive, pd);
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    if (!s)
        s = dnnl_primitive_execute(primitive, stream, 2, args);
    if (!s)
        s = dnnl_stream_wait(stream);
    if (primitive)
        dnnl_primitive_destroy(primitive);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (source)
        dnnl_memory_destroy(source);
    if (target)
        dnnl_memory_destroy(target);
    if (stream)
        dnnl_stream_destroy(stream);
    return s;
}

static void fill_part(void *arg, int i)
{
    struct filling *f = arg;
    const struct sh_weight *w = f->w;
    int first = i * f->step, n = w->rows - first < f->step ? w->rows - first : f->step;
    int is_whole = n == w->rows;
    size_t row = (size_t)w->cols * (w->stored == dnnl_f32 ? 4 : 2);
    desc_owner from = desc_new(w->stored, w->cols, n, (dnnl_dims_t){1, w->cols});
    desc_owner part = is_whole ? NULL : part_desc(&f->parted, w->cols, n);
    if (reorder(f->d->engine, from, (char *)f->from + (size_t)first * row, is_whole ? layout_of(w) : part,
                (char *)w->at + (is_whole ? 0 : part_at(&f->parted, first))))
        atomic_store(&f->bad, -1);
    desc_free(from);
    if (part)
        desc_free(part);
}

/* Reorder the plain [rows, cols] matrix into the chosen layout; oneDNN sees it as [cols, rows]. */
static int fill(struct sh_dev *d, struct sh_weight *w, const void *plain_at)
{
    struct filling f = {.d = d, .w = w, .parted = parted_of(w), .step = onednn_part(w->rows, d->n_threads)};
    *(const void **)&f.from = plain_at;
    if (!is_parted(&f.parted))
        f.step = w->rows;
    sh_team_each(d->n_threads, (w->rows + f.step - 1) / f.step, fill_part, &f);
    return atomic_load(&f.bad);
}

/* The matrix as oneDNN reads it: `at` itself when it is that already, else in *owned. */
static const void *converted(struct sh_dev *d, const struct sh_weight *w, const void *at, enum sh_type from,
                             void **owned)
{
    enum sh_type as = cpu_computed(d, w->type);
    size_t n = (size_t)w->rows * (size_t)w->cols;
    *owned = NULL;
    if (from == as && as == w->type)
        return at;
    struct sh_mat source = {NULL, from, w->rows, w->cols, (size_t)w->cols};
    struct sh_mat result = {malloc(n * sh_type_bytes(as)), as, w->rows, w->cols, (size_t)w->cols};
    if (!(*owned = result.at))
        return NULL;
    *(const void **)&source.at = at;
    d->kernels->convert(result, source, d->n_threads);
    if (as != w->type && from != w->type)
        d->kernels->snap(result.at, w->type, n, d->n_threads);
    return *owned;
}

void cpu_drop(struct sh_dev *d, struct sh_weight *w)
{
    (void)d;
    if (!w)
        return;
    layout_free(w);
    free(w->at);
    free(w->codes.at);
    free(w->groups);
    free(w->blocks);
    free(w);
}

/* Some whole rows at a time, because the checkpoint's may have to be widened. */
static int encode(const struct sh_dev *d, const struct cpu_codes *c, const void *at, enum sh_type from)
{
    size_t cols = (size_t)c->cols, row_bytes = cols * sh_type_bytes(from);
    int piece = cols < AT_ONCE ? (int)(AT_ONCE / cols) : 1;
    float *wide = from == SH_F32 ? NULL : malloc((size_t)piece * cols * sizeof *wide);
    if (from != SH_F32 && !wide)
        return -1;
    for (int row = 0, n; row < c->rows; row += n) {
        n = c->rows - row < piece ? c->rows - row : piece;
        struct sh_mat source = {NULL, from, n, c->cols, cols}, result = {wide, SH_F32, n, c->cols, cols};
        *(const void **)&source.at = (const char *)at + (size_t)row * row_bytes;
        if (wide)
            d->kernels->convert(result, source, d->n_threads);
        cpu_codes_put(c, wide ? wide : source.at, row, n, d->n_threads);
    }
    free(wide);
    return 0;
}

struct unpacking {
    const struct sh_dev *d;
    const struct sh_packed *p;
    int first, n;
    float *to;
};

static void unpack_piece(void *arg, int i)
{
    const struct unpacking *u = arg;
    int row = i * SH_BLOCKS_ROWS, n = u->n - row < SH_BLOCKS_ROWS ? u->n - row : SH_BLOCKS_ROWS;
    u->d->kernels->unpack(u->p, u->first + row, n, u->to + (size_t)row * (size_t)u->p->cols);
}

void cpu_unpack_rows(const struct sh_dev *d, const struct sh_packed *p, int first, int n, float *to)
{
    struct unpacking u = {d, p, first, n, to};
    sh_team_each(d->n_threads, (n + SH_BLOCKS_ROWS - 1) / SH_BLOCKS_ROWS, unpack_piece, &u);
}

/* Recoded some rows at a time. */
static int recode(const struct sh_dev *d, const struct sh_packed *p, const struct cpu_codes *c)
{
    int piece = p->cols < AT_ONCE ? AT_ONCE / p->cols : 1;
    float *wide = malloc((size_t)piece * (size_t)p->cols * sizeof *wide);
    for (int row = 0, n; row < p->rows && wide; row += n) {
        n = p->rows - row < piece ? p->rows - row : piece;
        cpu_unpack_rows(d, p, row, n, wide);
        cpu_codes_put(c, wide, row, n, d->n_threads);
    }
    free(wide);
    return wide ? 0 : -1;
}

/* Numbers at `at`, or packed. */
static struct sh_weight *coded(struct sh_dev *d, struct sh_weight *w, const void *at, enum sh_type from,
                               const struct sh_packed *packed, struct sh_err *e)
{
    size_t bytes = sh_code_bytes(w->rows, w->cols, d->weight_bits);
    w->codes = (struct cpu_codes){aligned_alloc(64, (bytes + 63) / 64 * 64), w->rows, w->cols, d->weight_bits};
    if (w->codes.at && !(packed ? recode(d, packed, &w->codes) : encode(d, &w->codes, at, from)))
        return w;
    sh_fail(e, "%d-bit codes of a weight matrix, %zu bytes (%d x %d), do not fit into memory", d->weight_bits, bytes,
            w->rows, w->cols);
    cpu_drop(d, w);
    return NULL;
}

static void make_blocks(void *arg, int i)
{
    const struct sh_weight *w = arg;
    struct sh_packing_shape s = sh_packing_shape(w->packed.format);
    size_t row = (size_t)(w->cols / s.elements) * (size_t)s.bytes;
    int first = i * SH_BLOCKS_ROWS, n = w->rows - first < SH_BLOCKS_ROWS ? w->rows - first : SH_BLOCKS_ROWS;
    w->packed.blocks(w->packed.from, first, n, w->blocks + (size_t)first * row);
}

/* A copy of blocks that the checkpoint does not have: in groups, but for products in bf16, which unpack panels of rows
 * and, with AVX-512 VNNI, need no groups for a few. */
static struct sh_weight *made(struct sh_dev *d, struct sh_weight *w, struct sh_err *e)
{
    struct sh_packing_shape s = sh_packing_shape(w->packed.format);
    size_t bytes = (size_t)w->rows * (size_t)(w->cols / s.elements) * (size_t)s.bytes;
    int reads_rows = cpu_computed(d, w->type) == SH_BF16 && d->kernels->lanes_by_vnni;
    if (cpu_has_lanes(d) && !reads_rows && sh_packed_may_settle(w->packed.format)) {
        w->groups = d->kernels->grouped(&w->packed, d->n_threads);
    } else if ((w->blocks = malloc(bytes))) {
        sh_team_each(d->n_threads, (w->rows + SH_BLOCKS_ROWS - 1) / SH_BLOCKS_ROWS, make_blocks, w);
        w->packed.at = w->blocks;
        w->packed.d_head = w->packed.step = 0;  /* the matrix's rows, one after another */
    }
    if (w->groups || w->blocks)
        return w;
    sh_fail(e, "a weight matrix of %zu bytes (%d x %d) does not fit into memory", bytes, w->rows, w->cols);
    cpu_drop(d, w);
    return NULL;
}

struct sh_weight *cpu_packed_weight(struct sh_dev *d, const struct sh_packed *p, enum sh_type to, struct sh_err *e)
{
    unsigned long long since = sh_stage_begin(d->stages);
    struct sh_weight *w = xcalloc(1, sizeof *w);
    w->rows = p->rows;
    w->cols = p->cols;
    w->type = to;
    w->stored = cpu_computed(d, to) == SH_BF16 ? dnnl_bf16 : dnnl_f32;
    if (d->weight_bits < 16)
        w = coded(d, w, NULL, SH_F32, p, e);
    else
        w->packed = *p;
    if (w && w->packed.blocks)
        w = made(d, w, e);
    sh_stage_end(d->stages, SH_STAGE_COPY, since, sh_stage_sharers(d->stages, 1));
    return w;
}

int cpu_has_lanes(const struct sh_dev *d)
{
    return d->x_bits < 32 && d->kernels->packed_lanes && (d->has_vnni || !d->kernels->lanes_by_vnni);
}

int cpu_settle(struct sh_dev *d, struct sh_weight *w)
{
    unsigned long long since = sh_stage_begin(d->stages);
    if (w && !w->groups && !w->blocks && cpu_has_lanes(d) && is_packed(w))
        w->groups = d->kernels->grouped(&w->packed, d->n_threads);
    sh_stage_end(d->stages, SH_STAGE_COPY, since, sh_stage_sharers(d->stages, 1));
    return w && (w->groups || w->blocks);
}

static struct sh_weight *halved(struct sh_dev *d, struct sh_weight *w, const void *at, enum sh_type from,
                                struct sh_err *e)
{
    if (!cpu_halves(d, &w->few, at, from, w->rows, w->cols, w->type)) {
        *(const void **)&w->at = w->few.at;
        return w;
    }
    sh_fail(e, "a weight matrix of %d x %d numbers of 16 bits does not fit into memory", w->rows, w->cols);
    cpu_drop(d, w);
    return NULL;
}

static struct sh_weight *lay_out(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                                 enum sh_type to, struct sh_err *e)
{
    struct sh_weight *w = xcalloc(1, sizeof *w);
    w->rows = rows;
    w->cols = cols;
    w->type = to;
    w->stored = cpu_computed(d, to) == SH_BF16 ? dnnl_bf16 : dnnl_f32;
    if (d->weight_bits < 16)
        return coded(d, w, at, from, NULL, e);
    if (cpu_halves_type(d, from, to) != SH_F32)
        return halved(d, w, at, from, e);
    if (choose_layout(d, w)) {
        free(w);
        return sh_fail_null(e, "oneDNN has no product for a %d x %d matrix of %s", rows, cols, sh_type_name(to));
    }
    size_t bytes = dnnl_memory_desc_get_size(layout_of(w));
    void *owned = NULL;
    const void *plain_at = NULL;
    w->at = aligned_alloc(64, (bytes + 63) / 64 * 64);
    w->few = few_layout(w);
    if (w->at)
        plain_at = converted(d, w, at, from, &owned);
    if (!plain_at || fill(d, w, plain_at)) {
        sh_fail(e, "a weight matrix of %zu bytes (%d x %d) does not fit into memory", bytes, rows, cols);
        cpu_drop(d, w);
        w = NULL;
    }
    free(owned);
    return w;
}

struct sh_weight *cpu_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                             enum sh_type to, struct sh_err *e)
{
    unsigned long long since = sh_stage_begin(d->stages);
    struct sh_weight *w = lay_out(d, at, from, rows, cols, to, e);
    sh_stage_end(d->stages, SH_STAGE_COPY, since, sh_stage_sharers(d->stages, 1));
    return w;
}
