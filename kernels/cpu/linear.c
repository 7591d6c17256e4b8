/* SPDX-License-Identifier: Apache-2.0 */
/* out (+)= act(x w^T + bias) by oneDNN's matmul; of a few rows, and without AVX-512 of many, by our own loops
 * (gemm_few_rows.h, gemm_many_rows.c). A product of 16-bit operands that oneDNN does not have (f16; bf16 on a machine
 * without its instructions) runs as an f32 product of the same values: each product of two such numbers is exact in
 * f32 (the 22 and 16 bits fit), so only the order of the sums differs. A weight that is kept as codes is read back a
 * panel of outputs at a time. */
#include <stdatomic.h>

#include "kernels/cpu/onednn.h"
#include "kernels/round_x.h"
#include "src/base/team.h"

enum {
    PANEL = 1 << 20,                    /* numbers: small enough for a cache, and yet ...                */
    LEAST_ROWS = 256,                   /* ... as many outputs as a product needs to run at full speed   */
    MOST_FEW_ROWS = 8,                  /* of x: with more, and in bf16 with more than one, oneDNN ... */
    MOST_FEW_ROWS_BF16 = 1,             /* ... is faster,                                         */
    MOST_FEW_ROWS_AMX = 32,             /* later where we have tiles,                             */
    MOST_FEW_ROWS_HALVES = 32,          /* or where it would have to widen the weight             */
    SORTED_ROWS = 256,                  /* of x that are put into the order of columns together   */
    MOST_LINEARS = 4                    /* that run together                                      */
};

static dnnl_primitive_attr_t attributes(const struct sh_linear *a)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    dnnl_primitive_attr_create(&attr);
    dnnl_post_ops_create(&ops);
    if (a->act == SH_ACT_RELU)
        set_act(ops, dnnl_eltwise_relu, 0);
    else if (a->act == SH_ACT_RELU2) {
        set_act(ops, dnnl_eltwise_relu, 0);
        set_act(ops, dnnl_eltwise_square, 0);
    } else if (a->act == SH_ACT_SIGMOID)
        set_act(ops, dnnl_eltwise_logistic, 0);
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

/* A matrix as oneDNN sees it: where its type is not native, dense f32 in this scratch takes its place. */
static struct sh_mat seen(const struct sh_dev *d, struct cpu_scratch *scratch, struct sh_mat m)
{
    if (cpu_computed(d, m.type) == m.type)
        return m;
    float *at = cpu_scratch_at(scratch, (size_t)m.rows * (size_t)m.cols);
    return (struct sh_mat){at, SH_F32, m.rows, m.cols, (size_t)m.cols};
}

/* Outputs whose weights are read out of their codes together, or widened: whole panels of the layout. */
static int panel_rows(int out, int in)
{
    int fit = (int)(PANEL / (size_t)in) / FEW_COLS * FEW_COLS;
    fit = fit > LEAST_ROWS ? fit : LEAST_ROWS;
    return out < fit ? out : fit;
}

size_t cpu_linear_bytes(const struct sh_dev *d, int rows, int in, int out, enum sh_type type, int bits)
{
    int is_native = cpu_computed(d, type) == type;
    size_t floats = is_native ? 0 : (size_t)rows * ((size_t)in + (size_t)out);
    if (bits < 16)                      /* a bf16 panel is made of an f32 one */
        floats += (size_t)panel_rows(out, in) * (size_t)in * (type == SH_BF16 && is_native ? 2 : 1);
    else if (!d->own_sums && cpu_computed(d, type) == SH_F32)   /* the weight may be of 16 bits */
        floats += cpu_halves_panel(in) * (size_t)((panel_rows(out, in) + FEW_COLS - 1) / FEW_COLS);
    if (bits < 16)
        floats += (size_t)(rows < CODES_MOST_ROWS ? rows : CODES_MOST_ROWS) * d->kernels->few_codes_room(in);
    floats += (size_t)d->n_threads * d->kernels->packed_room(in);       /* or packed */
    if (d->x_bits == 8)                 /* and x rounded */
        floats += (size_t)rows * (size_t)in;
    if (bits < 16)                      /* and its columns in another order */
        floats += (size_t)(rows < SORTED_ROWS ? rows : SORTED_ROWS) * (size_t)in;
    if (cpu_has_lanes(d) && rows > d->kernels->packed_rows)
        floats += d->kernels->lanes_room(rows, in, d->n_threads);
    if (d->own_sums && rows > MOST_FEW_ROWS)
        floats += (size_t)d->n_threads * (size_t)in * FEW_COLS;
    return floats * sizeof(float);
}

struct product {                        /* out = x w^T + bias and what `attr` adds                   */
    struct sh_mat x, out;
    desc w_md;                          /* [in, out]                                                 */
    void *w;
    int w_out;                          /* outputs that w has                                        */
    struct parted parted;
    const float *bias;                  /* NULL: none                                                */
    dnnl_primitive_attr_t attr;
};

static dnnl_status_t execute(struct sh_dev *d, const struct product *p, dnnl_primitive_desc_t pd, desc x_md,
                             desc bias_md, desc out_md)
{
    dnnl_memory_t mx = NULL, mw = NULL, mb = NULL, mo = NULL;
    dnnl_primitive_t matmul = NULL;
    dnnl_stream_t stream = NULL;
    void *bias;
    *(const void **)&bias = p->bias;
    dnnl_status_t s = dnnl_memory_create(&mx, x_md, d->engine, p->x.at);
    if (!s)
        s = dnnl_memory_create(&mw, p->w_md, d->engine, p->w);
    if (!s && bias)
        s = dnnl_memory_create(&mb, bias_md, d->engine, bias);
    if (!s)
        s = dnnl_memory_create(&mo, out_md, d->engine, p->out.at);
    if (!s)
        s = dnnl_primitive_create(&matmul, pd);
    if (!s)
        s = dnnl_stream_create(&stream, d->engine, dnnl_stream_default_flags);
    dnnl_exec_arg_t args[4] = {
        {DNNL_ARG_SRC, mx}, {DNNL_ARG_WEIGHTS, mw}, {DNNL_ARG_DST, mo}, {DNNL_ARG_BIAS, mb}};
    if (!s)
        s = dnnl_primitive_execute(matmul, stream, bias ? 4 : 3, args);
    if (!s)
        s = dnnl_stream_wait(stream);
    if (stream)
        dnnl_stream_destroy(stream);
    if (matmul)
        dnnl_primitive_destroy(matmul);
    if (mx)
        dnnl_memory_destroy(mx);
    if (mw)
        dnnl_memory_destroy(mw);
    if (mb)
        dnnl_memory_destroy(mb);
    if (mo)
        dnnl_memory_destroy(mo);
    return s;
}

static dnnl_status_t multiply_alone(struct sh_dev *d, const struct product *p)
{
    desc_owner x_md = plain(p->x.type, p->x.rows, p->x.cols, p->x.stride);
    desc_owner out_md = plain(p->out.type, p->out.rows, p->out.cols, p->out.stride);
    desc_owner bias_md = plain(SH_F32, 1, p->out.cols, (size_t)p->out.cols);
    dnnl_primitive_desc_t pd = NULL;
    onednn_alone();
    dnnl_status_t s = matmul_new(&pd, d->engine, x_md, p->w_md, p->bias ? bias_md : NULL, out_md, p->attr);
    if (!s)
        s = execute(d, p, pd, x_md, bias_md, out_md);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    desc_free(x_md);
    desc_free(out_md);
    desc_free(bias_md);
    return s;
}

/* A product in parts: strips of rows and, where there are too few of these for the threads, panels of outputs. oneDNN
 * is fast only where an output's rows follow each other, so panels are computed in a place of their own. A plain weight
 * is packed for every product, so that threads share its outputs alone. */
struct shared {
    struct sh_dev *d;
    const struct product *whole;
    int rows, cols, strips;             /* rows of a strip, outputs of a part; strips                */
    int is_added;
    atomic_int status;                  /* of a part that failed, or dnnl_success                    */
};

static char *number_at(const struct sh_mat *m, int row, int col)
{
    return (char *)m->at + ((size_t)row * m->stride + (size_t)col) * sh_type_bytes(m->type);
}

static void copy_rows(struct sh_mat to, struct sh_mat from)
{
    for (int i = 0; i < to.rows; i++)
        memcpy(number_at(&to, i, 0), number_at(&from, i, 0), (size_t)to.cols * sh_type_bytes(to.type));
}

/* p->out is part of its rows' outputs. */
static dnnl_status_t multiply_apart(const struct shared *s, struct product *p)
{
    struct sh_mat out = p->out, own = {NULL, out.type, out.rows, out.cols, (size_t)out.cols};
    own.at = xaligned((size_t)own.rows * own.stride * sh_type_bytes(own.type));
    if (s->is_added)
        copy_rows(own, out);
    p->out = own;
    dnnl_status_t status = multiply_alone(s->d, p);
    if (!status)
        copy_rows(out, own);
    free(own.at);
    return status;
}

static void multiply_part(void *arg, int i)
{
    struct shared *s = arg;
    struct product p = *s->whole;
    int row = i % s->strips * s->rows, first = i / s->strips * s->cols;
    p.x.rows = p.out.rows = p.x.rows - row < s->rows ? p.x.rows - row : s->rows;
    p.out.cols = p.out.cols - first < s->cols ? p.out.cols - first : s->cols;
    p.x.at = number_at(&s->whole->x, row, 0);
    p.out.at = number_at(&s->whole->out, row, first);
    p.bias = p.bias ? p.bias + first : NULL;
    desc_owner md = NULL;
    int is_part = p.out.cols < s->whole->out.cols, is_dense = p.out.stride == (size_t)p.out.cols;
    if (is_part) {
        p.w_md = md = part_desc(&p.parted, p.x.cols, p.out.cols);
        p.w = (char *)p.w + part_at(&p.parted, first);
    }
    dnnl_status_t status = is_dense ? multiply_alone(s->d, &p) : multiply_apart(s, &p);
    if (status)
        atomic_store(&s->status, (int)status);
    if (md)
        desc_free(md);
}

/* oneDNN reports arguments that make no product. */
static dnnl_status_t multiply(struct sh_dev *d, const struct product *p, int is_added)
{
    enum { LEAST = 64, TURNS = 4 };     /* rows of a strip; parts that a thread takes: a stopped one holds up one */
    enum { PLAIN_COLS = 4 * FEW_COLS }; /* of plain weights: sums depend on it, and must not on the threads  */
    int rows = p->x.rows, most = TURNS * d->n_threads, strips = rows / LEAST < most ? rows / LEAST : most;
    if (p->out.rows != rows || p->out.cols != p->w_out)
        return multiply_alone(d, p);
    struct shared s = {.d = d, .whole = p, .is_added = is_added, .cols = p->w_out};
    strips = strips > 1 && d->n_threads > 1 && !p->parted.stride[1] ? strips : 1;
    s.rows = ((rows + strips - 1) / strips + 15) / 16 * 16;
    s.strips = (rows + s.rows - 1) / s.rows;
    if (p->parted.stride[1]) {
        s.cols = PLAIN_COLS;
    } else if (s.strips < d->n_threads && is_parted(&p->parted)) {
        int parts = (most + s.strips - 1) / s.strips;
        s.cols = ((p->w_out + parts - 1) / parts + FEW_COLS - 1) / FEW_COLS * FEW_COLS;
    }
    sh_team_each(d->n_threads, s.strips * ((p->w_out + s.cols - 1) / s.cols), multiply_part, &s);
    return (dnnl_status_t)atomic_load(&s.status);
}

/* Some rows of a weight out of their codes, as the products take them: [n, cols], dense. */
static void *panel(struct sh_dev *d, const struct sh_weight *w, int first, int n)
{
    size_t count = (size_t)n * (size_t)w->cols;
    float *wide = cpu_scratch_at(&d->panel, count);
    if (is_packed(w))
        cpu_unpack_rows(d, &w->packed, first, n, wide);
    else
        cpu_codes_get(&w->codes, wide, first, n, d->n_threads);
    if (w->type == SH_F32 || (is_packed(w) && cpu_computed(d, w->type) == SH_F32))
        return wide;
    if (cpu_computed(d, w->type) == SH_F32) {
        d->kernels->snap(wide, w->type, count, d->n_threads);
        return wide;
    }
    struct sh_mat from = {wide, SH_F32, n, w->cols, (size_t)w->cols}, to = from;
    to.type = w->type;
    to.at = cpu_scratch_at(&d->narrowed, (count + 1) / 2);
    d->kernels->convert(to, from, d->n_threads);
    return to.at;
}

/* Some outputs of a weight of 16 bits, in the same layout. */
static void *widened_panels(struct sh_dev *d, const struct sh_weight *w, int first, int n)
{
    int panels = (n + FEW_COLS - 1) / FEW_COLS;
    size_t at = (size_t)(first / FEW_COLS) * w->few.panel;
    struct sh_mat from = {NULL, w->few.type, panels * (int)(w->few.panel / FEW_COLS), FEW_COLS, FEW_COLS}, to = from;
    *(const void **)&from.at = (const uint16_t *)w->few.at + at;
    to.type = SH_F32;
    to.at = cpu_scratch_at(&d->panel, (size_t)to.rows * FEW_COLS);
    d->kernels->convert(to, from, d->n_threads);
    return to.at;
}

/* Output columns one panel after another. */
static dnnl_status_t multiply_panels(struct sh_dev *d, const struct product *whole, const struct sh_weight *w,
                                     int is_added)
{
    dnnl_status_t s = dnnl_success;
    int most = panel_rows(w->rows, w->cols);
    for (int first = 0, n; first < w->rows && !s; first += n) {
        struct product p = *whole;
        n = w->rows - first < most ? w->rows - first : most;
        p.out.at = (char *)whole->out.at + (size_t)first * sh_type_bytes(p.out.type);
        p.out.cols = n;
        p.bias = whole->bias ? whole->bias + first : NULL;
        p.parted = is_halves(w) ? (struct parted){.type = dnnl_f32, .panel = w->few.panel}
                                : (struct parted){.type = w->stored, .stride = {1, w->cols}};
        desc_owner md = part_desc(&p.parted, w->cols, n);
        p.w_md = md;
        p.w = is_halves(w) ? widened_panels(d, w, first, n) : panel(d, w, first, n);
        p.w_out = n;
        s = multiply(d, &p, is_added);
        desc_free(md);
    }
    return s;
}

/* ---- a few rows ---- */

static struct sh_mat widened(struct sh_dev *d, struct sh_mat x)
{
    if (x.type == SH_F32)
        return x;
    float *at = cpu_scratch_at(&d->widened, (size_t)x.rows * (size_t)x.cols);
    struct sh_mat to = {at, SH_F32, x.rows, x.cols, (size_t)x.cols};
    d->kernels->convert(to, x, d->n_threads);
    return to;
}

enum loops { NO_LOOPS, F32_LOOPS, BF16_LOOPS, AMX_LOOPS, CODE_LOOPS, PACKED_LOOPS, ROW_LOOPS, LANE_LOOPS };

static int in_lanes(const struct sh_dev *d, const struct sh_weight *w)
{
    return cpu_has_lanes(d) && is_packed(w) && sh_packed_is_code(w->packed.format) &&
           (w->groups || d->kernels->lanes_by_vnni || sh_packed_is_points(w->packed.format));
}

/* Whether x has 8 bits in products with this weight. */
static int has_8_bits(const struct sh_dev *d, const struct sh_weight *w)
{
    return d->x_bits == 8 && is_packed(w) && sh_packed_is_code(w->packed.format);
}

/* Rows of x that our own loops for few rows take, at most. */
static int most_rows(const struct sh_dev *d, const struct sh_weight *w, int has_bf16, int has_amx)
{
    if (is_packed(w))
        return d->kernels->packed_rows;
    if (has_bf16)
        return has_amx ? MOST_FEW_ROWS_AMX : MOST_FEW_ROWS_BF16;
    if (w->codes.at)                    /* bf16 products of more are faster where they are native */
        return cpu_computed(d, w->type) == SH_F32 ? CODES_MOST_ROWS : MOST_FEW_ROWS;
    return is_halves(w) ? MOST_FEW_ROWS_HALVES : MOST_FEW_ROWS;
}

/* Our own loops for the product; NO_LOOPS: they do not have it, or it is not a product (oneDNN reports that). */
static enum loops loops_for(const struct sh_dev *d, const struct sh_linear *a)
{
    const struct sh_weight *w = a->w;
    int has_bf16 = w->few.fold == 2 && d->few_bf16 && d->kernels->few_bf16, rows = a->x.rows;
    int has_amx = has_bf16 && d->kernels->few_amx;
    if (is_packed(w) && w->packed.format == SH_PACKED_OTHER)  /* a code that only its owner reads */
        return NO_LOOPS;
    if (rows > most_rows(d, w, has_bf16, has_amx) || a->x.cols != w->cols || a->out.cols != w->rows ||
        a->out.rows != rows)
        return NO_LOOPS;
    if (is_packed(w) && in_lanes(d, w))
        return LANE_LOOPS;
    if (is_packed(w) && d->x_bits < 32 && rows == 1 && sh_packed_is_code(w->packed.format))
        return ROW_LOOPS;
    if (is_packed(w))                   /* points are unpacked once for all rows */
        return sh_packed_is_points(w->packed.format) ? NO_LOOPS : PACKED_LOOPS;
    if (has_bf16)
        return has_amx && rows > 1 ? AMX_LOOPS : BF16_LOOPS;
    return w->codes.at ? CODE_LOOPS : w->few.fold == 1 ? F32_LOOPS : NO_LOOPS;
}

static void run_loops(struct sh_dev *d, enum loops loops, const struct sh_linear *a, int n)
{
    struct few f[MOST_LINEARS];
    struct sh_mat x = a->x;
    float *room = NULL;
    if (loops == CODE_LOOPS)
        room = cpu_scratch_at(&d->ordered, (size_t)x.rows * d->kernels->few_codes_room(x.cols));
    if (loops >= PACKED_LOOPS)
        room = cpu_scratch_at(&d->packed, (size_t)d->n_threads * d->kernels->packed_room(x.cols));
    if (loops == F32_LOOPS || loops >= PACKED_LOOPS)
        x = widened(d, x);
    for (int i = 0; i < n; i++)
        f[i] = (struct few){.out = a[i].out, .x = x, .w = &a[i].w->few, .codes = &a[i].w->codes, .room = room,
                            .packed = &a[i].w->packed, .groups = a[i].w->groups, .x_bits = d->x_bits,
                            .bias = a[i].bias, .act = a[i].act, .add = a[i].add};
    if (loops == CODE_LOOPS)
        d->kernels->few_codes(f, n, d->n_threads);
    else if (loops == PACKED_LOOPS)
        d->kernels->packed(f, n, d->n_threads);
    else if (loops == ROW_LOOPS)
        d->kernels->packed_row(f, n, d->n_threads);
    else if (loops == LANE_LOOPS)
        d->kernels->packed_lanes(f, n, d->n_threads);
    else if (loops == AMX_LOOPS)
        d->kernels->few_amx(f, n, d->n_threads);
    else if (loops == BF16_LOOPS)
        d->kernels->few_bf16(f, n, d->n_threads);
    else
        d->kernels->few(f, n, d->n_threads);
}

/* ---- many ---- */

static void run_own(struct sh_dev *d, const struct sh_linear *a)
{
    const struct sh_weight *w = a->w;
    size_t room = is_packed(w) ? d->kernels->packed_room(w->cols) : (size_t)w->cols * FEW_COLS;
    struct few f = {.out = a->out, .x = widened(d, a->x), .bias = a->bias, .act = a->act, .add = a->add};
    struct few_weight plain_at = {.at = w->at, .in_step = (size_t)w->rows, .out_step = 1, .panel = FEW_COLS};
    if (is_halves(w))
        plain_at = (struct few_weight){.at = w->at, .type = w->few.type, .in_step = FEW_COLS, .out_step = 1,
                                       .panel = w->few.panel};
    if (is_packed(w))
        plain_at = (struct few_weight){.packed = &w->packed};
    int most = w->codes.at ? panel_rows(w->rows, w->cols) : w->rows;
    if (in_lanes(d, w)) {
        f.packed = &w->packed;
        f.groups = w->groups;
        f.x_bits = d->x_bits;
        f.room = cpu_scratch_at(&d->packed, (size_t)d->n_threads * room +
                                                d->kernels->lanes_room(f.x.rows, w->cols, d->n_threads));
        d->kernels->packed_lanes_many(&f, d->n_threads);
        return;
    }
    f.room = cpu_scratch_at(&d->packed, (size_t)d->n_threads * room);
    for (int first = 0, n; first < w->rows; first += n) {
        n = w->rows - first < most ? w->rows - first : most;
        if (w->codes.at)
            plain_at = (struct few_weight){.at = panel(d, w, first, n), .in_step = 1, .out_step = (size_t)w->cols,
                                           .panel = FEW_COLS * (size_t)w->cols};
        f.out.at = (char *)a->out.at + (size_t)first * sh_type_bytes(f.out.type);
        f.out.cols = n;
        f.bias = a->bias ? a->bias + first : NULL;
        d->kernels->many(&f, &plain_at, d->n_threads);
    }
}

static void many_rows(struct sh_dev *d, const struct sh_linear *a)
{
    const struct sh_weight *w = a->w;   /* oneDNN reports shapes that do not fit together */
    int is_own = w->codes.at || is_halves(w) || (w->few.fold == 1 && w->few.wide == w->rows);
    int is_exact = is_packed(w) && (cpu_computed(d, w->type) == SH_F32 || a->x.rows <= d->kernels->packed_rows ||
                                    has_8_bits(d, w));
    if (((d->own_sums && is_own) || is_exact) && a->x.cols == w->cols && a->out.cols == w->rows &&
        a->out.rows == a->x.rows) {
        run_own(d, a);
        return;
    }
    struct product p = {.x = seen(d, &d->widened, a->x), .out = seen(d, &d->product, a->out), .bias = a->bias};
    if (p.x.at != a->x.at)
        d->kernels->convert(p.x, a->x, d->n_threads);
    p.attr = attributes(a);
    dnnl_status_t s;
    if (w->codes.at || is_halves(w) || is_packed(w)) {
        s = multiply_panels(d, &p, a->w, a->add);
    } else {
        p.w_md = layout_of(a->w);
        p.w = a->w->at;
        p.w_out = a->w->rows;
        p.parted = parted_of(a->w);
        s = multiply(d, &p, a->add);
    }
    if (s)
        cpu_fail(d, "oneDNN refused the product [%d, %d] x [%d, %d] (status %d)", p.x.rows, p.x.cols, a->w->cols,
                 a->w->rows, (int)s);
    else if (p.out.at != a->out.at)
        d->kernels->convert(a->out, p.out, d->n_threads);
    dnnl_primitive_attr_destroy(p.attr);
}

/* ---- x of 8 bits ---- */

/* Products in lanes round x themselves. */
static int wants_rounded(const struct sh_dev *d, const struct sh_linear *a)
{
    return has_8_bits(d, a->w) && !in_lanes(d, a->w) && a->x.cols == a->w->cols;
}

struct rounding {
    struct sh_mat to, from;             /* f32                                                    */
};

static void round_row(void *arg, int row)
{
    const struct rounding *r = arg;
    const float *from = (const float *)r->from.at + (size_t)row * r->from.stride;
    float *to = (float *)r->to.at + (size_t)row * r->to.stride;
    for (int i = 0; i < r->to.cols; i += SH_X_SPAN)
        sh_round_x(from + i, to + i);
}

static struct sh_mat rounded(struct sh_dev *d, struct sh_mat x)
{
    struct rounding r = {.from = widened(d, x)};
    r.to = (struct sh_mat){cpu_scratch_at(&d->rounded, (size_t)x.rows * (size_t)x.cols), SH_F32, x.rows, x.cols,
                           (size_t)x.cols};
    sh_team_each(d->n_threads, x.rows, round_row, &r);
    return r.to;
}

/* ---- blocks of columns in another order ---- */

static void run_alone(struct sh_dev *d, const struct sh_linear *a)
{
    struct sh_linear one = *a;
    if (wants_rounded(d, a))
        one.x = rounded(d, a->x);
    enum loops loops = loops_for(d, &one);
    if (loops)
        run_loops(d, loops, &one, 1);
    else
        many_rows(d, &one);
}

struct sorting {
    struct sh_mat to, from;
    const int *columns;
};

static void sort_row(void *arg, int row)
{
    const struct sorting *s = arg;
    const char *from = number_at(&s->from, row, 0);
    char *to = number_at(&s->to, row, 0);
    if (s->from.type == SH_F32)
        for (int j = 0; j < s->to.cols; j++)
            ((float *)(void *)to)[j] = ((const float *)(const void *)from)[s->columns[j]];
    else
        for (int j = 0; j < s->to.cols; j++)
            ((uint16_t *)(void *)to)[j] = ((const uint16_t *)(const void *)from)[s->columns[j]];
}

static int is_sorted(const struct sh_linear *a)
{
    return is_packed(a->w) && a->w->packed.columns && a->x.cols == a->w->cols && a->x.rows == a->out.rows;
}

/* With x in the order of the weight's columns, some rows at a time. */
static void run_sorted(struct sh_dev *d, const struct sh_linear *a)
{
    int rows = a->x.rows, strips = (rows + SORTED_ROWS - 1) / SORTED_ROWS;
    for (int i = 0, row = 0, n; i < strips && !d->failed; i++, row += n) {
        n = (rows - row) / (strips - i);        /* about as many each: few rows may have sums in another order */
        struct sh_linear one = *a;
        one.x = (struct sh_mat){cpu_scratch_at(&d->sorted, (size_t)n * (size_t)a->x.cols), a->x.type, n, a->x.cols,
                                (size_t)a->x.cols};
        one.out.at = number_at(&a->out, row, 0);
        one.out.rows = n;
        struct sorting s = {one.x, a->x, a->w->packed.columns};
        s.from.at = number_at(&a->x, row, 0);
        sh_team_each(d->n_threads, n, sort_row, &s);
        run_alone(d, &one);
    }
}

void cpu_linear(struct sh_dev *d, const struct sh_linear *a)
{
    cpu_linears(d, a, 1);
}

void cpu_linears(struct sh_dev *d, const struct sh_linear *a, int n)
{
    unsigned long long since = sh_stage_begin(d->stages);
    for (int i = 0, run; i < n && !d->failed; i += run) {
        enum loops loops = loops_for(d, a + i);
        run = 1;
        if (is_sorted(a + i)) {         /* x is its own */
            run_sorted(d, a + i);
            continue;
        }
        if (wants_rounded(d, a + i)) {
            run_alone(d, a + i);
            continue;
        }
        while (i + run < n && run < MOST_LINEARS && loops && loops_for(d, a + i + run) == loops &&
               a[i + run].w->codes.bits == a[i].w->codes.bits && !is_sorted(a + i + run) &&
               !wants_rounded(d, a + i + run))
            run++;
        if (loops)
            run_loops(d, loops, a + i, run);
        else
            many_rows(d, a + i);
    }
    sh_stage_end(d->stages, SH_STAGE_PRODUCTS, since, sh_stage_sharers(d->stages, 1));
}
