/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on rows of numbers: norm, rotary, gate, gather, scatter, cast and best. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256, BEST_THREADS = 512 };

/* ---- layer norm and RMS norm, one block a row ---- */

struct norm {                           /* without holes: every byte of an argument means something  */
    void *out;
    const float *x, *weight, *bias;     /* weight and bias NULL: 1 and 0                             */
    size_t out_stride, stride;
    int cols, kind, add, n_own;         /* n_own: at least 1                                         */
    float eps;
    int unused;
};

/* mean is 0 where none is subtracted. A thread reads and writes the same places, so out may be x. T: the type of
 * out. */
template <typename T> __global__ void normalise(struct norm a)
{
    SH_SHARED(float, part, SUM_PARTS(THREADS));
    const float *row = a.x + (size_t)blockIdx.x * a.stride;
    T *to = (T *)a.out + (size_t)blockIdx.x * a.out_stride;
    size_t own = (size_t)(blockIdx.x % (unsigned)a.n_own) * (size_t)a.cols;
    float sum = 0, squares = 0;
    int centres = a.kind == SH_NORM_LAYER || a.kind == SH_NORM_CUT;
    for (int i = (int)threadIdx.x; i < a.cols && centres; i += THREADS)
        sum += row[i];
    float mean = centres ? block_sum<THREADS>(part, sum) / (float)a.cols : 0.0f;
    for (int i = (int)threadIdx.x; i < a.cols; i += THREADS)
        squares += (row[i] - mean) * (row[i] - mean);
    float variance = block_sum<THREADS>(part, squares) / (float)a.cols;
    int scales = a.kind == SH_NORM_LAYER || a.kind == SH_NORM_RMS || a.kind == SH_NORM_LENGTH;
    float mass = a.kind == SH_NORM_LENGTH ? variance * (float)a.cols : variance;
    float inverse = scales ? 1.0f / sqrtf(mass + a.eps) : 1.0f;
    float least = a.kind == SH_NORM_CUT ? a.eps * sqrtf(variance) : 0.0f;
    for (int i = (int)threadIdx.x; i < a.cols; i += THREADS) {
        float y = (row[i] - mean) * inverse;
        y = a.kind != SH_NORM_CUT ? y : y < least ? 0.0f : y - least;
        y = a.weight ? y * a.weight[own + (size_t)i] : y;
        y = a.bias ? y + a.bias[own + (size_t)i] : y;
        to[i] = from_float<T>(a.add ? to_float(to[i]) + y : y);
    }
}

void cuda_norm(struct sh_dev *d, const struct sh_norm *a)
{
    if (cuda_begin(d, "norm") || !a->x.rows)
        return;
    cuda_arrived(d, a->weight);
    cuda_arrived(d, a->bias);
    struct norm one = {a->out.at, (const float *)a->x.at, a->weight, a->bias, a->out.stride, a->x.stride,
                       a->x.cols, a->kind, a->add, a->n_own ? a->n_own : 1, a->eps, 0};
    BY_TYPE(a->out.type, T,
            SH_LAUNCH((normalise<T>), dim3((unsigned)a->x.rows), dim3(THREADS), d->compute, one));
    cuda_end(d, "norm");
}

/* ---- rotary positions, one block a row; one launch a sequence, or one for all where the rows' positions are on the
 * device ---- */

struct rotary {                         /* without holes: every byte of an argument means something  */
    float *x;
    size_t stride;
    const float *cos, *sin, *factor;    /* factor NULL: 1                                            */
    const int *position;                /* [rows] or NULL                                            */
    int n_head, d_head, n_rot, unused;
};

/* Row i of x is at position[i], or i, of the tables. Pair j of a head turns by the angle j of the position. */
__global__ void turn(struct rotary a)
{
    int half = a.n_rot / 2;
    size_t position = a.position ? (size_t)a.position[blockIdx.x] : blockIdx.x;
    float *row = a.x + blockIdx.x * a.stride;
    for (int i = (int)threadIdx.x; i < a.n_head * half; i += THREADS) {
        int j = i % half;
        float *head = row + (size_t)(i / half) * (size_t)a.d_head;
        float *first = head + j, *second = first + half;
        float x = *first, y = *second;
        float c = a.cos[position * (size_t)half + (size_t)j], s = a.sin[position * (size_t)half + (size_t)j];
        *first = x * c - y * s;
        *second = y * c + x * s;
    }
    if (!a.factor)
        return;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < a.n_head * a.d_head; i += THREADS)
        row[i] *= a.factor[position];
}

/* Rows [start, end) of x, the first of which is at position `first` of the tables if a->position does not say it. */
static void turn_rows(struct sh_dev *d, const struct sh_rotary *a, int start, int end, int first)
{
    size_t at = (size_t)first * (size_t)(a->n_rot / 2);
    struct rotary part = {(float *)a->x.at + (size_t)start * a->x.stride, a->x.stride, a->cos + at, a->sin + at,
                          a->factor ? a->factor + first : NULL, a->position ? a->position + start : NULL,
                          a->x.cols / a->d_head, a->d_head, a->n_rot, 0};
    if (end > start)
        SH_LAUNCH(turn, dim3((unsigned)(end - start)), dim3(THREADS), d->compute, part);
}

void cuda_rotary(struct sh_dev *d, const struct sh_rotary *a)
{
    if (cuda_begin(d, "rotary"))
        return;
    if (a->position)
        turn_rows(d, a, a->start[0], a->start[a->n_seq], 0);
    for (int s = 0; s < a->n_seq && !a->position; s++)
        turn_rows(d, a, a->start[s], a->start[s + 1], a->first ? a->first[s] : 0);
    cuda_end(d, "rotary");
}

/* ---- out = act(gate) * up ---- */

struct knobs { float at[4]; };

/* The acts with knobs, and all others. */
static __device__ __forceinline__ float activated_by(int act, float x, const struct knobs &k)
{
    if (act == SH_ACT_CLIP)
        return x > k.at[0] ? k.at[0] : x < -k.at[0] ? -k.at[0] : x;
    if (act == SH_ACT_XIELU)
        return x > 0 ? k.at[0] * x * x + k.at[2] * x : (expm1f(fminf(x, k.at[3])) - x) * k.at[1] + k.at[2] * x;
    if (act == SH_ACT_SOFTPLUS)
        return softplus(x);
    if (act != SH_ACT_CLAMPED)
        return activated(act, x);
    x = x > k.at[0] ? k.at[0] : x;
    return x / (1.0f + expf(-k.at[1] * x));
}

template <typename T>
__global__ void multiply(T *out, const float *gate, size_t wide, const float *up, int act, struct knobs k, size_t n)
{
    size_t step = (size_t)gridDim.x * THREADS;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
        float y = act == SH_ACT_CLAMPED ? fminf(fmaxf(up[i], -k.at[0]), k.at[0]) + 1 : up ? up[i] : 1.0f;
        out[i] = from_float<T>(activated_by(act, gate[wide > 1 ? i / wide : i], k) * y);
    }
}

void cuda_gate(struct sh_dev *d, const struct sh_gate *a)
{
    size_t n = (size_t)a->out.rows * (size_t)a->out.cols;
    dim3 grid = grid_for(n, THREADS);
    if (cuda_begin(d, "gate") || !n)
        return;
    struct knobs k = {{a->knob[0], a->knob[1], a->knob[2], a->knob[3]}};
    BY_TYPE(a->out.type, T,
            SH_LAUNCH((multiply<T>), grid, dim3(THREADS), d->compute, (T *)a->out.at, (const float *)a->gate.at,
                      (size_t)(a->out.cols / a->gate.cols), (const float *)a->up.at, a->act, k, n));
    cuda_end(d, "gate");
}

/* ---- rows from and to other places, one block a row ---- */

template <typename T>
__global__ void gather_rows(T *out, size_t out_stride, const T *x, size_t stride, const int *row, const float *share,
                            int cols)
{
    const T *from = x + (size_t)row[blockIdx.x] * stride;
    for (int i = (int)threadIdx.x; i < cols; i += THREADS)
        out[blockIdx.x * out_stride + (size_t)i] =
            share ? from_float<T>(to_float(from[i]) * share[blockIdx.x]) : from[i];
}

void cuda_gather(struct sh_dev *d, const struct sh_gather *a)
{
    if (cuda_begin(d, "gather") || !a->out.rows)
        return;
    BY_TYPE(a->out.type, T,
            SH_LAUNCH((gather_rows<T>), dim3((unsigned)a->out.rows), dim3(THREADS), d->compute, (T *)a->out.at,
                      a->out.stride, (const T *)a->x.at, a->x.stride, a->row, a->share, a->out.cols));
    cuda_end(d, "gather");
}

struct scattering {                     /* without holes: every byte of an argument means something  */
    float *out;
    const float *x, *share;             /* share NULL: 1                                             */
    const int *row;                     /* NULL: each its own                                        */
    size_t out_stride, stride;
    float by;
    int cols;
};

static __global__ void scatter_rows(struct scattering a)
{
    size_t i = blockIdx.x;
    float *out = a.out + (a.row ? (size_t)a.row[i] : i) * a.out_stride;
    float by = a.share ? a.by * a.share[i] : a.by;
    for (int c = (int)threadIdx.x; c < a.cols; c += THREADS)
        out[c] += by * a.x[i * a.stride + (size_t)c];
}

void cuda_scatter(struct sh_dev *d, const struct sh_scatter *a)
{
    if (cuda_begin(d, "scatter") || !a->x.rows)
        return;
    struct scattering all = {(float *)a->out.at, (const float *)a->x.at, a->share, a->row, a->out.stride, a->x.stride,
                             a->by, a->x.cols};
    SH_LAUNCH(scatter_rows, dim3((unsigned)a->x.rows), dim3(THREADS), d->compute, all);
    cuda_end(d, "scatter");
}

/* ---- conversions between the three number formats, rounding to nearest even ---- */

/* Element i of a [rows, cols] matrix with its own stride between rows. */
static __device__ __forceinline__ size_t place(size_t i, size_t cols, size_t stride)
{
    return stride == cols ? i : i / cols * stride + i % cols;
}

template <typename To, typename From>
__global__ void convert(To *to, size_t to_stride, const From *from, size_t stride, size_t n, size_t cols)
{
    size_t step = (size_t)gridDim.x * THREADS;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step)
        to[place(i, cols, to_stride)] = from_float<To>(to_float(from[place(i, cols, stride)]));
}

void cuda_convert(struct sh_dev *d, const struct sh_mat *to, const struct sh_mat *from, cudaStream_t stream)
{
    size_t n = (size_t)from->rows * (size_t)from->cols, cols = (size_t)from->cols;
    dim3 grid = grid_for(n, THREADS);
    if (cuda_has_failed(d) || !n)
        return;
    BY_TYPE(to->type, To,
            BY_TYPE(from->type, From, SH_LAUNCH((convert<To, From>), grid, dim3(THREADS), stream, (To *)to->at,
                                                to->stride, (const From *)from->at, from->stride, n, cols)));
}

void cuda_cast(struct sh_dev *d, struct sh_mat out, struct sh_mat x)
{
    if (cuda_begin(d, "cast"))
        return;
    cuda_convert(d, &out, &x, d->compute);
    cuda_end(d, "cast");
}

/* ---- the greatest number of each row, one block a row ---- */

/* Does (x, at) come before (y, to)? NaN and infinity come first, then the greater number, then the first column. */
static __device__ __forceinline__ int comes_first(float x, int at, float y, int to)
{
    int odd_x = !(x < INFINITY), odd_y = !(y < INFINITY);
    if (odd_x != odd_y)
        return odd_x;
    return odd_x || x == y ? at < to : x > y;
}

static __global__ void find_best(struct sh_best *out, const float *x, size_t stride, int cols)
{
    SH_SHARED(float, value, BEST_THREADS / WARP);
    SH_SHARED(int, column, BEST_THREADS / WARP);
    const float *row = x + (size_t)blockIdx.x * stride;
    float best = -INFINITY;
    int at = cols;                      /* after all others                                       */
    for (int i = (int)threadIdx.x; i < cols; i += BEST_THREADS)
        if (comes_first(row[i], i, best, at)) {
            best = row[i];
            at = i;
        }
    for (int step = WARP / 2; step; step /= 2) {
        float other = __shfl_xor_sync(ALL_LANES, best, step);
        int there = __shfl_xor_sync(ALL_LANES, at, step);
        if (comes_first(other, there, best, at)) {
            best = other;
            at = there;
        }
    }
    if (threadIdx.x % WARP == 0) {
        value[threadIdx.x / WARP] = best;
        column[threadIdx.x / WARP] = at;
    }
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < BEST_THREADS / WARP; i++)
        if (comes_first(value[i], column[i], best, at)) {
            best = value[i];
            at = column[i];
        }
    out[blockIdx.x].value = best;
    out[blockIdx.x].column = at;
}

void cuda_best(struct sh_dev *d, struct sh_best *out, struct sh_mat x)
{
    if (cuda_begin(d, "best") || !x.rows)
        return;
    cuda_stage_begin(d, SH_STAGE_TOKENS);
    SH_LAUNCH(find_best, dim3((unsigned)x.rows), dim3(BEST_THREADS), d->compute, out, (const float *)x.at, x.stride,
              x.cols);
    cuda_stage_end(d);
    cuda_end(d, "best");
}
