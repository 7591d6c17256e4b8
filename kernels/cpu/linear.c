/* SPDX-License-Identifier: Apache-2.0 */
/* out (+)= act(x w^T + bias) by oneDNN's matmul, weights kept in the blocked layout it asks for.
 * oneDNN 2.x and 3.x differ in how descriptors are made; the differences stay in the first half.
 * On a machine without bf16 instructions a bf16 product runs as an f32 product of the same values:
 * each product of two bf16 numbers is exact in f32, so only the order of the sums differs. */
#include <limits.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "src/base/mem.h"

enum { NOMINAL_ROWS = 1024 };           /* the layout of weights is chosen for this many rows of x */

struct sh_weight {
    int rows, cols;                     /* [out, in] as in the checkpoint                    */
    enum sh_type type;                  /* of the operands of its products                   */
    dnnl_data_type_t stored;            /* what oneDNN sees                                  */
    dnnl_memory_t memory;
    void *at;                           /* the memory's buffer, ours                         */
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t layout;
#else
    dnnl_memory_desc_t layout[1];
#endif
};

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t desc;
typedef dnnl_memory_desc_t desc_owner;

static desc_owner desc_new(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t cols, const dnnl_dims_t strides)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_dims_t dims = {rows, cols};
    if (strides)
        dnnl_memory_desc_create_with_strides(&md, 2, dims, type, strides);
    else
        dnnl_memory_desc_create_with_tag(&md, 2, dims, type, dnnl_format_tag_any);
    return md;
}

static void desc_free(desc_owner md) { dnnl_memory_desc_destroy(md); }

static dnnl_status_t matmul_new(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, desc x, desc w, desc bias,
                                desc out, const_dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(pd, engine, x, w, bias, out, attr);
}

static void layout_copy(struct sh_weight *w, const_dnnl_primitive_desc_t pd)
{
    dnnl_memory_desc_clone(&w->layout, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
}

static desc layout_of(const struct sh_weight *w) { return w->layout; }

static void layout_free(struct sh_weight *w) { dnnl_memory_desc_destroy(w->layout); }

static void set_sum(dnnl_post_ops_t ops) { dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef); }

static void set_act(dnnl_post_ops_t ops, dnnl_alg_kind_t kind) { dnnl_post_ops_append_eltwise(ops, kind, 0, 0); }
#else
typedef const dnnl_memory_desc_t *desc;
typedef dnnl_memory_desc_t *desc_owner;

static desc_owner desc_new(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t cols, const dnnl_dims_t strides)
{
    dnnl_memory_desc_t *md = xcalloc(1, sizeof *md);
    dnnl_dims_t dims = {rows, cols};
    if (strides)
        dnnl_memory_desc_init_by_strides(md, 2, dims, type, strides);
    else
        dnnl_memory_desc_init_by_tag(md, 2, dims, type, dnnl_format_tag_any);
    return md;
}

static void desc_free(desc_owner md) { free(md); }

static dnnl_status_t matmul_new(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, desc x, desc w, desc bias,
                                desc out, const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t op;
    dnnl_status_t status = dnnl_matmul_desc_init(&op, x, w, bias, out);
    return status ? status : dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

static void layout_copy(struct sh_weight *w, const_dnnl_primitive_desc_t pd)
{
    w->layout[0] = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
}

static desc layout_of(const struct sh_weight *w) { return w->layout; }

static void layout_free(struct sh_weight *w) { (void)w; }

static void set_sum(dnnl_post_ops_t ops) { dnnl_post_ops_append_sum(ops, 1); }

static void set_act(dnnl_post_ops_t ops, dnnl_alg_kind_t kind)
{
    dnnl_post_ops_append_eltwise(ops, 1, kind, 0, 0);
}
#endif

static desc_owner plain(enum sh_type type, dnnl_dim_t rows, dnnl_dim_t cols, size_t stride)
{
    dnnl_dims_t strides = {(dnnl_dim_t)stride, 1};
    return desc_new(type == SH_BF16 ? dnnl_bf16 : dnnl_f32, rows, cols, strides);
}

/* What oneDNN computes with when operands have this type. */
static enum sh_type computed(const struct sh_dev *d, enum sh_type type)
{
    return type == SH_BF16 && !d->native_bf16 ? SH_F32 : type;
}

static int choose_layout(struct sh_dev *d, struct sh_weight *w)
{
    enum sh_type type = computed(d, w->type);
    desc_owner x = plain(type, NOMINAL_ROWS, w->cols, (size_t)w->cols);
    desc_owner out = plain(SH_F32, NOMINAL_ROWS, w->rows, (size_t)w->rows);
    desc_owner any = desc_new(w->stored, w->cols, w->rows, NULL);
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

/* Reorder the plain [rows, cols] matrix into the chosen layout; oneDNN sees it as [cols, rows]. */
static int fill(struct sh_dev *d, struct sh_weight *w, const void *plain_at)
{
    dnnl_dims_t strides = {1, w->cols};
    desc_owner from_md = desc_new(w->stored, w->cols, w->rows, strides);
    dnnl_memory_t from = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t reorder = NULL;
    void *source;
    *(const void **)&source = plain_at;
    dnnl_status_t s = dnnl_memory_create(&from, from_md, d->engine, source);
    if (!s)
        s = dnnl_reorder_primitive_desc_create(&pd, from_md, d->engine, layout_of(w), d->engine, NULL);
    if (!s)
        s = dnnl_primitive_create(&reorder, pd);
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, w->memory}};
    if (!s)
        s = dnnl_primitive_execute(reorder, d->stream, 2, args);
    if (!s)
        s = dnnl_stream_wait(d->stream);
    if (reorder)
        dnnl_primitive_destroy(reorder);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (from)
        dnnl_memory_destroy(from);
    desc_free(from_md);
    return s ? -1 : 0;
}

/* The matrix in the type that oneDNN reads: `at` itself when it already has it, else in *owned. */
static const void *converted(struct sh_dev *d, struct sh_weight *w, const void *at, enum sh_type from, void **owned)
{
    size_t n = (size_t)w->rows * (size_t)w->cols;
    *owned = NULL;
    if (w->stored == dnnl_bf16) {
        if (from == SH_BF16)
            return at;
        *owned = malloc(n * 2);
        if (*owned)
            d->kernels->round_bf16(*owned, at, from, n, d->n_threads);
        return *owned;
    }
    if (from == SH_F32 && w->type == SH_F32)
        return at;
    *owned = malloc(n * 4);
    if (!*owned)
        return NULL;
    if (w->type == SH_BF16 && from != SH_BF16) {        /* round to bf16 first, then widen in place */
        uint16_t *upper = (uint16_t *)*owned + n;
        d->kernels->round_bf16(upper, at, from, n, d->n_threads);
        d->kernels->widen(*owned, upper, SH_BF16, n, 1);
    } else {
        d->kernels->widen(*owned, at, from, n, d->n_threads);
    }
    return *owned;
}

void cpu_drop(struct sh_dev *d, struct sh_weight *w)
{
    (void)d;
    if (!w)
        return;
    if (w->memory)
        dnnl_memory_destroy(w->memory);
    layout_free(w);
    free(w->at);
    free(w);
}

struct sh_weight *cpu_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                             enum sh_type to, struct sh_err *e)
{
    struct sh_weight *w = xcalloc(1, sizeof *w);
    w->rows = rows;
    w->cols = cols;
    w->type = to;
    w->stored = computed(d, to) == SH_BF16 ? dnnl_bf16 : dnnl_f32;
    if (choose_layout(d, w)) {
        free(w);
        sh_fail(e, "oneDNN has no product for a %d x %d matrix of %s", rows, cols, sh_type_name(to));
        return NULL;
    }
    size_t bytes = dnnl_memory_desc_get_size(layout_of(w));
    void *owned = NULL;
    const void *plain_at = NULL;
    w->at = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (w->at)
        plain_at = converted(d, w, at, from, &owned);
    if (!plain_at || dnnl_memory_create(&w->memory, layout_of(w), d->engine, w->at) || fill(d, w, plain_at)) {
        sh_fail(e, "a weight matrix of %zu bytes (%d x %d) does not fit into memory", bytes, rows, cols);
        cpu_drop(d, w);
        w = NULL;
    }
    free(owned);
    return w;
}

static dnnl_primitive_attr_t attributes(const struct sh_linear *a)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    dnnl_primitive_attr_create(&attr);
    dnnl_post_ops_create(&ops);
    if (a->act == SH_ACT_RELU)
        set_act(ops, dnnl_eltwise_relu);
    else if (a->act == SH_ACT_GELU)
        set_act(ops, dnnl_eltwise_gelu_erf);
    else if (a->act == SH_ACT_GELU_TANH)
        set_act(ops, dnnl_eltwise_gelu_tanh);
    if (a->add)
        set_sum(ops);
    dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_post_ops_destroy(ops);
    return attr;
}

/* A matrix as oneDNN sees it: where bf16 is not native, f32 in this scratch stands for it. Such
 * matrices are dense. */
static struct sh_mat seen(const struct sh_dev *d, struct cpu_scratch *scratch, struct sh_mat m)
{
    if (computed(d, m.type) == m.type)
        return m;
    size_t n = (size_t)m.rows * (size_t)m.cols;
    if (n > scratch->count) {
        free(scratch->at);
        scratch->at = xaligned(n * sizeof(float));
        scratch->count = n;
    }
    return (struct sh_mat){scratch->at, SH_F32, m.rows, m.cols, (size_t)m.cols};
}

static dnnl_status_t execute(struct sh_dev *d, const struct sh_linear *a, struct sh_mat x, struct sh_mat out,
                             dnnl_primitive_desc_t pd, desc x_md, desc bias_md, desc out_md)
{
    dnnl_memory_t mx = NULL, mb = NULL, mo = NULL;
    dnnl_primitive_t matmul = NULL;
    void *bias;
    *(const void **)&bias = a->bias;
    dnnl_status_t s = dnnl_memory_create(&mx, x_md, d->engine, x.at);
    if (!s && a->bias)
        s = dnnl_memory_create(&mb, bias_md, d->engine, bias);
    if (!s)
        s = dnnl_memory_create(&mo, out_md, d->engine, out.at);
    if (!s)
        s = dnnl_primitive_create(&matmul, pd);
    dnnl_exec_arg_t args[4] = {
        {DNNL_ARG_SRC, mx}, {DNNL_ARG_WEIGHTS, a->w->memory}, {DNNL_ARG_DST, mo}, {DNNL_ARG_BIAS, mb}};
    if (!s)
        s = dnnl_primitive_execute(matmul, d->stream, a->bias ? 4 : 3, args);
    if (!s)
        s = dnnl_stream_wait(d->stream);
    if (matmul)
        dnnl_primitive_destroy(matmul);
    if (mx)
        dnnl_memory_destroy(mx);
    if (mb)
        dnnl_memory_destroy(mb);
    if (mo)
        dnnl_memory_destroy(mo);
    return s;
}

void cpu_linear(struct sh_dev *d, const struct sh_linear *a)
{
    if (d->failed)
        return;
    struct sh_mat x = seen(d, &d->widened, a->x), out = seen(d, &d->product, a->out);
    if (x.at != a->x.at)
        d->kernels->widen(x.at, a->x.at, SH_BF16, (size_t)x.rows * (size_t)x.cols, d->n_threads);
    desc_owner x_md = plain(x.type, x.rows, x.cols, x.stride);
    desc_owner out_md = plain(out.type, out.rows, out.cols, out.stride);
    desc_owner bias_md = plain(SH_F32, 1, out.cols, (size_t)out.cols);
    dnnl_primitive_attr_t attr = attributes(a);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t s = matmul_new(&pd, d->engine, x_md, layout_of(a->w), a->bias ? bias_md : NULL, out_md, attr);
    if (!s)
        s = execute(d, a, x, out, pd, x_md, bias_md, out_md);
    if (s)
        cpu_fail(d, "oneDNN refused the product [%d, %d] x [%d, %d] (status %d)", x.rows, x.cols, a->w->cols,
                 a->w->rows, (int)s);
    else if (out.at != a->out.at)
        d->kernels->round_bf16(a->out.at, out.at, SH_F32, (size_t)out.rows * (size_t)out.cols, d->n_threads);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    desc_free(x_md);
    desc_free(out_md);
    desc_free(bias_md);
}
