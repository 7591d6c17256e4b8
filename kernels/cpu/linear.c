/* SPDX-License-Identifier: Apache-2.0 */
/* out (+)= act(x w^T + bias) by oneDNN's matmul. A product of 16-bit operands that oneDNN does not have
 * (f16; bf16 on a machine without its instructions) runs as an f32 product of the same values: each
 * product of two such numbers is exact in f32 (the 22 and 16 bits fit), so only the order of the sums
 * differs. */
#include <omp.h>

#include "kernels/cpu/onednn.h"

static dnnl_primitive_attr_t attributes(const struct sh_linear *a)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    dnnl_primitive_attr_create(&attr);
    dnnl_post_ops_create(&ops);
    if (a->act == SH_ACT_RELU)
        set_act(ops, dnnl_eltwise_relu, 0);
    else if (a->act == SH_ACT_GELU)
        set_act(ops, dnnl_eltwise_gelu_erf, 0);
    else if (a->act == SH_ACT_GELU_TANH)
        set_act(ops, dnnl_eltwise_gelu_tanh, 0);
    else if (a->act == SH_ACT_SILU)
        set_act(ops, dnnl_eltwise_swish, 1);
    if (a->add)
        set_sum(ops);
    dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_post_ops_destroy(ops);
    return attr;
}

/* A matrix as oneDNN sees it: where its type is not native, dense f32 in this scratch stands for it. */
static struct sh_mat seen(const struct sh_dev *d, struct cpu_scratch *scratch, struct sh_mat m)
{
    if (cpu_computed(d, m.type) == m.type)
        return m;
    size_t n = (size_t)m.rows * (size_t)m.cols;
    if (n > scratch->count) {
        free(scratch->at);
        scratch->at = xaligned(n * sizeof(float));
        scratch->count = n;
    }
    return (struct sh_mat){scratch->at, SH_F32, m.rows, m.cols, (size_t)m.cols};
}

/* How wide x is nobody says: it is taken to be no wider than the widest `out` of a layer. */
size_t cpu_linear_bytes(const struct sh_dev *d, int rows, int cols, enum sh_type type)
{
    return cpu_computed(d, type) == type ? 0 : 2 * (size_t)rows * (size_t)cols * sizeof(float);
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
    omp_set_num_threads(d->n_threads);  /* oneDNN takes its number from OpenMP, which keeps one per thread */
    struct sh_mat x = seen(d, &d->widened, a->x), out = seen(d, &d->product, a->out);
    if (x.at != a->x.at)
        d->kernels->convert(x, a->x, d->n_threads);
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
        d->kernels->convert(a->out, out, d->n_threads);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    desc_free(x_md);
    desc_free(out_md);
    desc_free(bias_md);
}
