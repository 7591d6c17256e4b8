/* SPDX-License-Identifier: Apache-2.0 */
/* Products by cuBLAS, f32 accumulation, no TF32. A bias is added and an activation applied to the f32
 * product, before it is rounded to the type of the next operand. A weight that is kept as codes or blocks
 * is read back a panel of outputs at a time. Products of few rows are few_rows.cu's. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/round_x.h"

enum {
    THREADS = 256,
    PANEL_BYTES = 16 << 20,             /* of numbers out of their codes: they stay in the L2 cache */
    LEAST_ROWS = 256                    /* ... as many outputs as keep a product fast              */
};

/* out (+)= act(product + bias), one block a row */
template <typename T>
__global__ void finish(T *out, size_t stride, int cols, const float *product, size_t product_stride, const float *bias,
                       int act, int add)
{
    const float *from = product + (size_t)blockIdx.x * product_stride;
    T *to = out + (size_t)blockIdx.x * stride;
    for (int c = (int)threadIdx.x; c < cols; c += THREADS) {
        float y = activated(act, bias ? from[c] + bias[c] : from[c]);
        to[c] = from_float<T>(add ? to_float(to[c]) + y : y);
    }
}

/* x in 8 bits (round_x.h), a warp for each of so many spans, which lie one after another in `to`. A number of 16 bits
 * is rounded to its type once more. */
template <typename T>
__global__ void __launch_bounds__(THREADS) round_x(const T *x, size_t stride, size_t cols, size_t spans, T *to)
{
    size_t span = (size_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    if (span >= spans)                  /* a whole warp */
        return;
    size_t i = span * SH_X_SPAN + threadIdx.x % WARP;
    float own = to_float(x[i / cols * stride + i % cols]), most = fabsf(own);
    for (int step = WARP / 2; step; step /= 2) {
        float other = __shfl_xor_sync(ALL_LANES, most, step);
        most = other <= most ? most : other;    /* NaN stays */
    }
    int is_number = most < INFINITY;
    float inverse = most >= 0x1p-100f ? 127.0f / most : 0.0f;
    float n = is_number ? rintf(own * inverse) : 0.0f;
    to[i] = from_float<T>((is_number ? most / 127.0f : NAN) * n);
}

/* What `a` is with such an x, if its weight wants one. */
static struct sh_linear rounded(struct sh_dev *d, const struct sh_linear *a)
{
    struct sh_linear to = *a;
    const struct sh_mat *x = &a->x;
    if (d->x_bits != 8 || !sh_packed_is_code(a->w->packing))
        return to;
    size_t cols = (size_t)x->cols, spans = (size_t)x->rows * (cols / SH_X_SPAN), some = THREADS / WARP;
    to.x.stride = cols;
    to.x.at = cuda_scratch_at(d, &d->rounded, (size_t)x->rows * cols * sh_type_bytes(x->type));
    if (to.x.at)
        BY_TYPE(x->type, T,
                SH_LAUNCH((round_x<T>), dim3((unsigned)((spans + some - 1) / some)), dim3(THREADS), d->compute,
                          (const T *)x->at, x->stride, cols, spans, (T *)to.x.at));
    return to;
}

static int panel_rows(int out, int in, enum sh_type type)
{
    int fit = (int)(PANEL_BYTES / sh_type_bytes(type) / (size_t)in);
    fit = fit > LEAST_ROWS ? fit : LEAST_ROWS;
    return out < fit ? out : fit;
}

/* Never less for a larger matrix, so that the scratch of the largest does for all. */
static size_t panel_bytes(int out, int in, enum sh_type type)
{
    size_t row = (size_t)in * sh_type_bytes(type), most = LEAST_ROWS * row;
    most = most > PANEL_BYTES ? most : (size_t)PANEL_BYTES;
    return (size_t)out * row < most ? (size_t)out * row : most;
}

int cuda_multiply(struct sh_dev *d, const char *what, const struct cuda_product *p, int n_head)
{
    const struct cuda_operand *a = &p->a, *b = &p->b, *c = &p->c;
    return cuda_check_blas(d, what,
                           cublasGemmStridedBatchedEx(d->blas, p->turn, CUBLAS_OP_N, p->m, p->n, p->k, &p->alpha,
                                                      a->at, CUDA_R_32F, (int)a->lead, (long long)a->stride, b->at,
                                                      CUDA_R_32F, (int)b->lead, (long long)b->stride, &p->beta,
                                                      (float *)c->at, CUDA_R_32F, (int)c->lead, (long long)c->stride,
                                                      n_head, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* n outputs, whose weights are `w` [n, in]. Row-major out = x w^T is column-major out^T = w x^T. */
static void multiply(struct sh_dev *d, const struct sh_linear *a, const void *w, int n, void *out, enum sh_type type,
                     size_t stride, float beta)
{
    const float one = 1;
    cuda_check_blas(d, "linear",
                    cublasGemmEx(d->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, a->x.rows, a->w->cols, &one, w,
                                 cuda_type(a->w->type), a->w->cols, a->x.at, cuda_type(a->x.type), (int)a->x.stride,
                                 &beta, out, cuda_type(type), (int)stride, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

static void product(struct sh_dev *d, const struct sh_linear *a, void *out, enum sh_type type, size_t stride,
                    float beta)
{
    const struct sh_weight *w = a->w;
    if (w->bits == 16 && w->packing == SH_PACKED_OTHER) {
        multiply(d, a, w->at, w->rows, out, type, stride, beta);
        return;
    }
    int most = panel_rows(w->rows, w->cols, w->type);
    void *panel = cuda_scratch_at(d, &d->panel, panel_bytes(w->rows, w->cols, w->type));
    for (int row = 0; row < w->rows && !cuda_has_failed(d); row += most) {
        int n = w->rows - row < most ? w->rows - row : most;
        if (w->packing == SH_PACKED_OTHER)
            cuda_decode(d, w, row, n, panel);
        else
            cuda_unpack(d, w, row, n, panel);
        multiply(d, a, panel, n, (char *)out + (size_t)row * sh_type_bytes(type), type, stride, beta);
    }
}

size_t cuda_linear_bytes(const struct sh_dev *d, int rows, int in, int out, enum sh_type type, int bits)
{
    size_t panel = bits == 16 ? 0 : panel_bytes(out, in, type) + 512;
    size_t x = d->x_bits == 8 ? (size_t)rows * (size_t)in * sh_type_bytes(type) + 512 : 0;
    return (size_t)rows * (size_t)out * sizeof(float) + 512 + panel + x;
}

static int is_product(struct sh_dev *d, const struct sh_linear *a)
{
    if (a->x.cols == a->w->cols && a->out.cols == a->w->rows && a->x.type == a->w->type)
        return 1;
    cuda_fail(d, "linear: [%d, %d] x [%d, %d] -> [%d, %d] %s x %s do not match", a->x.rows, a->x.cols, a->w->rows,
              a->w->cols, a->out.rows, a->out.cols, sh_type_name(a->x.type), sh_type_name(a->w->type));
    return 0;
}

void cuda_linear(struct sh_dev *d, const struct sh_linear *given)
{
    if (cuda_begin(d, "linear") || !given->x.rows || !is_product(d, given))
        return;
    /* A graph's operations have run before: this stream has waited. */
    if (!d->is_recording && cuda_check(d, "linear", cudaStreamWaitEvent(d->compute, given->w->ready, 0)))
        return;
    cuda_arrived(d, given->bias);
    cuda_stage_begin(d, SH_STAGE_PRODUCTS);
    struct sh_linear same = rounded(d, given), *a = &same;
    if (cuda_has_failed(d))
        ;
    else if (cuda_few_rows(d, a))
        ;                               /* it is queued */
    else if (a->act == SH_ACT_NONE && (a->out.type == SH_F32 || !a->bias)) {    /* nothing, or a bias in f32 */
        product(d, a, a->out.at, a->out.type, a->out.stride, a->add ? 1.0f : 0.0f);
        if (a->bias && !cuda_has_failed(d))
            SH_LAUNCH((finish<float>), dim3((unsigned)a->out.rows), dim3(THREADS), d->compute, (float *)a->out.at,
                      a->out.stride, a->out.cols, (const float *)a->out.at, a->out.stride, a->bias, SH_ACT_NONE, 0);
    } else {
        size_t cols = (size_t)a->out.cols;
        float *scratch = (float *)cuda_scratch_at(d, &d->linear, (size_t)a->out.rows * cols * sizeof(float));
        if (scratch)
            product(d, a, scratch, SH_F32, cols, 0);
        if (!cuda_has_failed(d))
            BY_TYPE(a->out.type, T,
                    SH_LAUNCH((finish<T>), dim3((unsigned)a->out.rows), dim3(THREADS), d->compute, (T *)a->out.at,
                              a->out.stride, a->out.cols, (const float *)scratch, cols, a->bias, a->act, a->add));
    }
    cuda_stage_end(d);
    cuda_end(d, "linear");
}
