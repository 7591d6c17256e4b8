/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that work on rows or chunks of numbers, and the table of this variant. */
#include <math.h>

#include "kernels/cpu/floats.h"
#include "kernels/cpu/variant.h"
#include "kernels/cpu/vector.h"
#include "src/base/team.h"

/* ---- numbers of one type as numbers of another, any strides ---- */

enum { PIECE = 1 << 16 };               /* elements that one thread converts at a time             */

static void convert_piece(void *to, enum sh_type to_type, const void *from, enum sh_type from_type, size_t n)
{
    float x[CHUNK];
    if (to_type == SH_F32)
        load_floats(to, from_type, from, n);
    else if (from_type == SH_F32)
        store_floats(to, to_type, from, n);
    else
        for (size_t i = 0; i < n; i += CHUNK) {
            load_floats(x, from_type, (const uint16_t *)from + i, chunk_at(i, n));
            store_floats((uint16_t *)to + i, to_type, x, chunk_at(i, n));
        }
}

static char *element(const struct sh_mat *m, size_t row, size_t col)
{
    return (char *)m->at + (row * m->stride + col) * sh_type_bytes(m->type);
}

static int is_dense(const struct sh_mat *m)
{
    return m->stride == (size_t)m->cols;
}

struct work {
    struct sh_mat to, from;
    size_t cols, pieces;                                /* of a row                                       */
};

static void convert_part(void *arg, int i)
{
    const struct work *w = arg;
    size_t row = (size_t)i / w->pieces, col = (size_t)i % w->pieces * PIECE;
    size_t n = w->cols - col < PIECE ? w->cols - col : PIECE;
    convert_piece(element(&w->to, row, col), w->to.type, element(&w->from, row, col), w->from.type, n);
}

static void convert(struct sh_mat to, struct sh_mat from, int n_threads)
{
    size_t rows = (size_t)to.rows, cols = (size_t)to.cols;
    if (is_dense(&to) && is_dense(&from)) {
        cols *= rows;
        rows = 1;
    }
    struct work w = {to, from, cols, (cols + PIECE - 1) / PIECE};
    sh_team_each(rows * cols > PIECE ? n_threads : 1, (int)(rows * w.pieces), convert_part, &w);
}

struct numbers {
    float *x;
    enum sh_type type;
    size_t n;
};

static void snap_part(void *arg, int i)
{
    const struct numbers *a = arg;
    size_t from = (size_t)i * PIECE, end = a->n - from < PIECE ? a->n : from + PIECE;
    for (size_t at = from; at < end; at += CHUNK) {
        uint16_t rounded[CHUNK];
        store_floats(rounded, a->type, a->x + at, chunk_at(at, end));
        load_floats(a->x + at, a->type, rounded, chunk_at(at, end));
    }
}

static void snap(float *x, enum sh_type type, size_t n, int n_threads)
{
    sh_team_each(n_threads, (int)((n + PIECE - 1) / PIECE), snap_part, &(struct numbers){x, type, n});
}

/* ---- embedding rows ---- */

static const char *table_row(const void *table, enum sh_type type, int row, int width)
{
    return (const char *)table + (size_t)row * (size_t)width * sh_type_bytes(type);
}

static void embed_row(void *arg, int i)
{
    const struct sh_embed *a = arg;
    size_t n = (size_t)a->out.cols;
    float *out = (float *)a->out.at + (size_t)i * a->out.stride;
    const char *token = table_row(a->table, a->type, a->id[i], a->out.cols), *position = NULL;
    if (a->position_table)
        position = table_row(a->position_table, a->position_type, a->position[i], a->out.cols);
    for (size_t at = 0; at < n; at += CHUNK) {
        float x[CHUNK], y[CHUNK] = {0};
        size_t m = chunk_at(at, n);
        load_floats(x, a->type, token + at * sh_type_bytes(a->type), m);
        if (position)
            load_floats(y, a->position_type, position + at * sh_type_bytes(a->position_type), m);
        for (size_t c = 0; c < m; c++)
            out[at + c] = x[c] * a->scale + y[c];
    }
}

static void embed(const struct sh_embed *a, int n_threads)
{
    struct sh_embed copy = *a;
    sh_team_each(n_threads, a->out.rows, embed_row, &copy);
}

/* ---- norms ---- */

static float mean_of(const float *x, int n)
{
    float sum = 0;                                      /* of vector lanes: as good as pairwise summing */
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / (float)n;
}

static float mean_square(const float *x, int n, float mean)
{
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return squares / (float)n;
}

/* A chunk is finished before it is written: `out` may be x. */
static void norm_row(void *arg, int row)
{
    const struct sh_norm *a = arg;
    size_t n = (size_t)a->x.cols, bytes = sh_type_bytes(a->out.type);
    const float *x = (const float *)a->x.at + (size_t)row * a->x.stride;
    char *out = (char *)a->out.at + (size_t)row * a->out.stride * bytes;
    size_t own = a->n_own ? (size_t)(row % a->n_own) * n : 0;
    int is_cut = a->kind == SH_NORM_CUT;
    float mean = a->kind == SH_NORM_LAYER || is_cut ? mean_of(x, a->x.cols) : 0.0f;
    float squares = a->kind == SH_NORM_SCALE ? 1 : mean_square(x, a->x.cols, mean);
    squares *= a->kind == SH_NORM_LENGTH ? (float)n : 1;
    float inverse = a->kind == SH_NORM_SCALE || is_cut ? 1 : 1.0f / sqrtf(squares + a->eps);
    float least = is_cut ? a->eps * sqrtf(squares) : 0;
    for (size_t at = 0; at < n; at += CHUNK) {
        float y[CHUNK];
        const float *old = (const float *)(const void *)(out + at * bytes);     /* used when it is f32 */
        size_t m = chunk_at(at, n);
        for (size_t i = 0; i < m; i++)
            y[i] = (x[at + i] - mean) * inverse;
        for (size_t i = 0; i < m && is_cut; i++)
            y[i] = y[i] < least ? 0 : y[i] - least;
        if (a->weight)
            for (size_t i = 0; i < m; i++)
                y[i] *= a->weight[own + at + i];
        if (a->bias)
            for (size_t i = 0; i < m; i++)
                y[i] += a->bias[own + at + i];
        if (a->add)
            for (size_t i = 0; i < m; i++)
                y[i] += old[i];
        store_floats(out + at * bytes, a->out.type, y, m);
    }
}

static void norm(const struct sh_norm *a, int n_threads)
{
    struct sh_norm copy = *a;
    sh_team_each(n_threads, a->x.rows, norm_row, &copy);
}

/* ---- rotary positions ---- */

static int position_of(const struct sh_rotary *a, int row)
{
    int low = 0, high = a->n_seq;                       /* start[low] <= row < start[high] */
    if (a->position)
        return a->position[row];
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (a->start[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return row - a->start[low] + (a->first ? a->first[low] : 0);
}

static void turn(float *restrict x, float *restrict y, const float *c, const float *s, int n)
{
    for (int j = 0; j < n; j++) {
        float a = x[j], b = y[j];
        x[j] = a * c[j] - b * s[j];
        y[j] = b * c[j] + a * s[j];
    }
}

static void turn_row(void *arg, int i)
{
    const struct sh_rotary *a = arg;
    int half = a->n_rot / 2, row = a->start[0] + i;
    size_t at = (size_t)position_of(a, row) * (size_t)half;
    float *x = (float *)a->x.at + (size_t)row * a->x.stride;
    for (int head = 0; head < a->x.cols / a->d_head && half; head++)
        turn(x + head * a->d_head, x + head * a->d_head + half, a->cos + at, a->sin + at, half);
    float by = a->factor ? a->factor[position_of(a, row)] : 1;
    for (int c = 0; c < a->x.cols && a->factor; c++)
        x[c] *= by;
}

static void rotary(const struct sh_rotary *a, int n_threads)
{
    struct sh_rotary copy = *a;
    sh_team_each(n_threads, a->start[a->n_seq] - a->start[0], turn_row, &copy);
}

/* ---- out = act(gate) * up ---- */

/* The acts with knobs; y may be x. */
static void activate_by(float *y, const float *x, const struct sh_gate *a, size_t n)
{
    const float *knob = a->knob;
    for (size_t i = 0; i < n && a->act == SH_ACT_CLIP; i++)
        y[i] = x[i] > knob[0] ? knob[0] : x[i] < -knob[0] ? -knob[0] : x[i];
    for (size_t i = 0; i < n && a->act == SH_ACT_XIELU; i++)
        y[i] = x[i] > 0 ? knob[0] * x[i] * x[i] + knob[2] * x[i]
                        : (expm1f(fminf(x[i], knob[3])) - x[i]) * knob[1] + knob[2] * x[i];
    for (size_t i = 0; i < n && a->act == SH_ACT_SOFTPLUS; i++)
        y[i] = softplus(x[i]);
    for (size_t i = 0; i < n && a->act == SH_ACT_CLAMPED; i++) {
        float g = x[i] > knob[0] ? knob[0] : x[i];
        y[i] = g * logistic(knob[1] * g);
    }
}

enum { GATED = 1 << 13 };               /* numbers that a thread takes at a time: fewer are done before it is woken */

static void gate_part(void *arg, int i)
{
    const struct sh_gate *a = arg;
    size_t n = (size_t)a->out.rows * (size_t)a->out.cols, bytes = sh_type_bytes(a->out.type);
    size_t from = (size_t)i * GATED, end = n - from < GATED ? n : from + GATED;
    size_t wide = (size_t)(a->out.cols / a->gate.cols);
    const float *gate = a->gate.at, *up = a->up.at;
    for (size_t at = from; at < end; at += CHUNK) {
        float y[CHUNK], spread[CHUNK];
        size_t m = chunk_at(at, end);
        for (size_t k = 0; k < m && wide > 1; k++)
            spread[k] = gate[(at + k) / wide];
        const float *x = wide > 1 ? spread : gate + at;
        activate(y, x, a->act, m);
        activate_by(y, x, a, m);
        for (size_t k = 0; k < m && up && a->act != SH_ACT_CLAMPED; k++)
            y[k] *= up[at + k];
        for (size_t k = 0; k < m && a->act == SH_ACT_CLAMPED; k++)
            y[k] *= fminf(fmaxf(up[at + k], -a->knob[0]), a->knob[0]) + 1;
        store_floats((char *)a->out.at + at * bytes, a->out.type, y, m);
    }
}

static void gate(const struct sh_gate *a, int n_threads)
{
    size_t n = (size_t)a->out.rows * (size_t)a->out.cols;
    struct sh_gate copy = *a;
    sh_team_each(n_threads, (int)((n + GATED - 1) / GATED), gate_part, &copy);
}

/* ---- rows from and to other places ---- */

static void gather_row(void *arg, int i)
{
    const struct sh_gather *a = arg;
    size_t n = (size_t)a->out.cols, bytes = sh_type_bytes(a->out.type);
    char *out = (char *)a->out.at + (size_t)i * a->out.stride * bytes;
    const char *x = (const char *)a->x.at + (size_t)a->row[i] * a->x.stride * bytes;
    if (!a->share)
        memcpy(out, x, n * bytes);
    for (size_t at = 0; at < n && a->share; at += CHUNK) {
        float y[CHUNK];
        size_t m = chunk_at(at, n);
        load_floats(y, a->x.type, x + at * bytes, m);
        for (size_t k = 0; k < m; k++)
            y[k] *= a->share[i];
        store_floats(out + at * bytes, a->out.type, y, m);
    }
}

static void gather(const struct sh_gather *a, int n_threads)
{
    struct sh_gather copy = *a;
    sh_team_each(n_threads, a->out.rows, gather_row, &copy);
}

static void scatter_row(void *arg, int i)
{
    const struct sh_scatter *a = arg;
    float *out = (float *)a->out.at + (size_t)(a->row ? a->row[i] : i) * a->out.stride;
    const float *x = (const float *)a->x.at + (size_t)i * a->x.stride;
    float by = a->share ? a->by * a->share[i] : a->by;
    for (int c = 0; c < a->x.cols; c++)
        out[c] += by * x[c];
}

static void scatter(const struct sh_scatter *a, int n_threads)
{
    struct sh_scatter copy = *a;
    sh_team_each(n_threads, a->x.rows, scatter_row, &copy);
}

/* ---- the table ---- */

#define CPU_TEXT_(x) #x
#define CPU_TEXT(x) CPU_TEXT_(x)

#ifdef __AVX2__
#define LANES_OF(variant) \
    .packed_lanes = CPU_PASTE(cpu_packed_lanes, variant), .lanes_room = CPU_PASTE(cpu_lanes_room, variant), \
    .packed_lanes_many = CPU_PASTE(cpu_packed_lanes_many, variant), .grouped = CPU_NAME(cpu_grouped)
#define LANES_KERNELS LANES_OF(CPU_VARIANT),
#else
#define LANES_KERNELS
#endif
#ifdef CPU_HAS_BF16
#define AVX512_KERNELS .lanes_by_vnni = 1, .few_bf16 = CPU_NAME(cpu_few_bf16),
#else
#define AVX512_KERNELS
#endif
#define KERNELS \
    .embed = embed, .norm = norm, .rotary = rotary, .gate = gate, .gather = gather, .scatter = scatter, \
    .conv = CPU_NAME(cpu_conv), .delta = CPU_NAME(cpu_delta), .scan = CPU_NAME(cpu_scan), \
    .lru = CPU_NAME(cpu_lru), .convert = convert, .snap = snap, \
    .few = CPU_NAME(cpu_few), .many = CPU_NAME(cpu_many), .few_codes = CPU_NAME(cpu_few_codes), \
    .few_codes_room = CPU_NAME(cpu_few_codes_room), \
    .packed = CPU_NAME(cpu_packed), .packed_row = CPU_NAME(cpu_packed_row), .packed_rows = PACKED_ROWS, \
    .packed_room = CPU_NAME(cpu_packed_room), .unpack = CPU_NAME(cpu_unpack), AVX512_KERNELS

const struct cpu_kernels CPU_NAME(cpu_kernels) = {
    .name = CPU_TEXT(CPU_VARIANT), .attend = CPU_NAME(cpu_attend), .attend_bytes = CPU_NAME(cpu_attend_bytes), KERNELS
    LANES_KERNELS
};
#if defined CPU_HAS_BF16 && defined SH_AMX_VARIANT      /* with avx512's, which it has but for these */
const struct cpu_kernels cpu_kernels_amx = {
    .name = "amx", .attend = cpu_attend_amx, .attend_bytes = cpu_attend_bytes_amx, .few_amx = cpu_few_amx, KERNELS
    LANES_KERNELS
};
#endif
#if defined __AVX2__ && !defined __AVX512F__ && defined SH_AVXVNNI_VARIANT      /* with avx2's but for these */
const struct cpu_kernels cpu_kernels_avxvnni = {
    .name = "avxvnni", .attend = CPU_NAME(cpu_attend), .attend_bytes = CPU_NAME(cpu_attend_bytes), KERNELS
    LANES_OF(avxvnni)
};
#endif
