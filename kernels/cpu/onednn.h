/* SPDX-License-Identifier: Apache-2.0 */
/* One interface to oneDNN 2.x and 3.x, which differ in how descriptors are made; and the struct of a weight. */
#ifndef SH_KERNELS_CPU_ONEDNN_H
#define SH_KERNELS_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <omp.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "src/base/mem.h"

struct sh_weight {
    int rows, cols;                     /* [out, in] as in the checkpoint                    */
    enum sh_type type;                  /* of the operands of its products                   */
    dnnl_data_type_t stored;            /* what oneDNN sees                                  */
    void *at;                           /* in that layout, or is_halves; NULL: there are only codes */
    struct cpu_codes codes;             /* at NULL: there are none                           */
    struct few_layout few;              /* what products of a few rows know of the layout    */
    struct sh_packed packed;            /* unpack NULL: it is not packed                     */
    unsigned char *groups;              /* of packed, the owner's (packed_group.h); or NULL  */
    unsigned char *blocks;              /* what packed.at points at if it is a copy; or NULL */
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t layout;
#else
    dnnl_memory_desc_t layout[1];
#endif
};

/* Kept in 16 bits, and computed with in f32 (halves.c). */
static inline int is_halves(const struct sh_weight *w)
{
    return w->few.fold == 1 && w->few.type != SH_F32;
}

static inline int is_packed(const struct sh_weight *w)
{
    return w->packed.unpack != NULL;
}

struct blocking {                       /* a layout of [in, out] as oneDNN describes it      */
    int n;                              /* inner blocks                                      */
    dnnl_dim_t inner[3], which[3];      /* size, and 0: of inputs, 1: of outputs             */
    dnnl_dim_t stride[2];               /* from one outer block to the next                  */
};

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t desc;
typedef dnnl_memory_desc_t desc_owner;

static inline desc_owner desc_tagged(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t cols, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_memory_desc_create_with_tag(&md, 2, (dnnl_dims_t){rows, cols}, type, tag);
    return md;
}

static inline desc_owner desc_new(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t cols, const dnnl_dims_t strides)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_memory_desc_create_with_strides(&md, 2, (dnnl_dims_t){rows, cols}, type, strides);
    return md;
}

static inline void desc_free(desc_owner md) { dnnl_memory_desc_destroy(md); }

static inline dnnl_status_t matmul_new(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, desc x, desc w, desc bias,
                                       desc out, const_dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(pd, engine, x, w, bias, out, attr);
}

static inline void layout_copy(struct sh_weight *w, const_dnnl_primitive_desc_t pd)
{
    dnnl_memory_desc_clone(&w->layout, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
}

static inline desc layout_of(const struct sh_weight *w) { return w->layout; }

static inline void layout_free(struct sh_weight *w) { dnnl_memory_desc_destroy(w->layout); }

static inline struct blocking blocking_of(const struct sh_weight *w)
{
    struct blocking b = {0};
    const dnnl_dims_t *inner, *which, *strides;
    dnnl_memory_desc_query(w->layout, dnnl_query_inner_nblks_s32, &b.n);
    dnnl_memory_desc_query(w->layout, dnnl_query_inner_blks, &inner);
    dnnl_memory_desc_query(w->layout, dnnl_query_inner_idxs, &which);
    dnnl_memory_desc_query(w->layout, dnnl_query_strides, &strides);
    for (int i = 0; i < b.n && i < 3; i++) {
        b.inner[i] = (*inner)[i];
        b.which[i] = (*which)[i];
    }
    b.stride[0] = (*strides)[0];
    b.stride[1] = (*strides)[1];
    return b;
}

static inline void set_sum(dnnl_post_ops_t ops) { dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef); }

static inline void set_act(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha)
{
    dnnl_post_ops_append_eltwise(ops, kind, alpha, 0);
}
#else
typedef const dnnl_memory_desc_t *desc;
typedef dnnl_memory_desc_t *desc_owner;

static inline desc_owner desc_tagged(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t cols, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t *md = xcalloc(1, sizeof *md);
    dnnl_memory_desc_init_by_tag(md, 2, (dnnl_dims_t){rows, cols}, type, tag);
    return md;
}

static inline desc_owner desc_new(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t cols, const dnnl_dims_t strides)
{
    dnnl_memory_desc_t *md = xcalloc(1, sizeof *md);
    dnnl_memory_desc_init_by_strides(md, 2, (dnnl_dims_t){rows, cols}, type, strides);
    return md;
}

static inline void desc_free(desc_owner md) { free(md); }

static inline dnnl_status_t matmul_new(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, desc x, desc w, desc bias,
                                       desc out, const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t op;
    dnnl_status_t status = dnnl_matmul_desc_init(&op, x, w, bias, out);
    return status ? status : dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

static inline void layout_copy(struct sh_weight *w, const_dnnl_primitive_desc_t pd)
{
    w->layout[0] = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
}

static inline desc layout_of(const struct sh_weight *w) { return w->layout; }

static inline void layout_free(struct sh_weight *w) { (void)w; }

static inline struct blocking blocking_of(const struct sh_weight *w)
{
    const dnnl_blocking_desc_t *d = &w->layout->format_desc.blocking;
    struct blocking b = {.n = d->inner_nblks, .stride = {d->strides[0], d->strides[1]}};
    for (int i = 0; i < b.n && i < 3; i++) {
        b.inner[i] = d->inner_blks[i];
        b.which[i] = d->inner_idxs[i];
    }
    return b;
}

static inline void set_sum(dnnl_post_ops_t ops) { dnnl_post_ops_append_sum(ops, 1); }

static inline void set_act(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha)
{
    dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, 0);
}
#endif

/* oneDNN computes in the calling thread alone; threads are shared out by a team (team.h). Its number of threads is
 * OpenMP's, which keeps one per thread. */
static inline void onednn_alone(void)
{
    omp_set_num_threads(1);
}

/* Outputs of a weight that a thread takes at a time: several parts for each, so that one that was stopped holds up
 * little, and whole panels of the layout. */
static inline int onednn_part(int outputs, int n_threads)
{
    enum { PARTS = 4 };
    int step = (outputs + PARTS * n_threads - 1) / (PARTS * n_threads);
    return (step + FEW_COLS - 1) / FEW_COLS * FEW_COLS;
}

/* How some outputs of a weight [in, out] are described as a matrix of their own. (A part that oneDNN describes itself,
 * with an offset, has no fast product.) */
struct parted {
    dnnl_data_type_t type;
    dnnl_dims_t stride;                 /* of a plain matrix; 0: it is in panels                     */
    size_t panel;                       /* numbers of FEW_COLS outputs; 0 of both: it cannot be parted */
};

static inline struct parted parted_of(const struct sh_weight *w)
{
    struct parted p = {.type = w->stored};
    struct blocking b = blocking_of(w);
    for (int i = 0; i < 2 && !b.n; i++)
        p.stride[i] = b.stride[i];
    if (b.n && w->few.fold && b.inner[0] == 16)
        p.panel = w->few.panel;
    return p;
}

static inline int is_parted(const struct parted *p)
{
    return p->stride[1] > 0 || p->panel > 0;
}

static inline desc_owner part_desc(const struct parted *p, int in, int n)
{
    return p->panel ? desc_tagged(p->type, in, n, p->type == dnnl_f32 ? dnnl_BA16a64b : dnnl_BA16a64b2a)
                    : desc_new(p->type, in, n, p->stride);
}

/* Bytes from the first output to this one, which begins a panel. */
static inline size_t part_at(const struct parted *p, int first)
{
    size_t numbers = p->panel ? (size_t)(first / FEW_COLS) * p->panel : (size_t)first * (size_t)p->stride[1];
    return numbers * (p->type == dnnl_f32 ? 4 : 2);
}

/* A plain matrix. */
static inline desc_owner plain(enum sh_type type, dnnl_dim_t rows, dnnl_dim_t cols, size_t stride)
{
    dnnl_dims_t strides = {(dnnl_dim_t)stride, 1};
    return desc_new(type == SH_BF16 ? dnnl_bf16 : dnnl_f32, rows, cols, strides);
}

#endif
