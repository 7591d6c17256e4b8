/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a backend by themselves, at the shapes of a layer of OPT-6.7B (LLaMA-7B's is as wide): copies,
 * products (with packed weights, too), attention with and without recording, and what only moves memory. A line of JSON
 * each, the fastest of REPEAT runs:
 *
 *     kernels_speed BACKEND [ROWS [REPEAT [WIDTH]]]
 *
 * ROWS: tokens of the sequence (2048); REPEAT: 5; WIDTH: of the layer (4096; heads are 128 wide), smaller ones of
 * both for a first try on an emulated device. "seconds" is the whole operation, from asking until it is done. On the
 * CPU, products with packed weights are timed three times: "x_bits" 32 as when tracing, 16 as in live sessions, and
 * 8. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/packed.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/rng.h"

enum { D_HEAD = 128, MOST_COPY = 256 << 20 };

struct bench {
    const struct sh_backend *b;
    struct sh_dev *d;
    int rows, repeat, width, failed;
    int x_bits;                         /* in products with packed weights                        */
    struct sh_err *e;
};

/* What is timed: one call of `run`. */
typedef void run_fn(struct bench *x, void *with);

static double seconds_of(struct bench *x, run_fn *run, void *with, int n)
{
    double began = sh_now_s();
    for (int i = 0; i < n; i++)
        run(x, with);
    x->failed |= x->b->sync(x->d, x->e) != 0;
    return (sh_now_s() - began) / n;
}

/* Short ones many at once: the wait for a device takes tens of microseconds. */
static double fastest(struct bench *x, run_fn *run, void *with)
{
    enum { AT_ONCE = 16 };
    double best = -1;
    seconds_of(x, run, with, 1);                                /* warms up */
    int n = seconds_of(x, run, with, 1) < 1e-3 ? AT_ONCE : 1;
    for (int i = 0; i < x->repeat && !x->failed; i++) {
        double took = seconds_of(x, run, with, n);
        if (best < 0 || took < best)
            best = took;
    }
    return best;
}

static void *device(struct bench *x, size_t bytes)
{
    void *at = x->failed ? NULL : x->b->alloc(x->d, bytes, x->e);
    x->failed |= !at;
    return at;
}

static struct sh_mat matrix(struct bench *x, enum sh_type type, int rows, int cols)
{
    size_t n = (size_t)rows * (size_t)cols;
    struct sh_mat m = {device(x, n * sh_type_bytes(type)), type, rows, cols, (size_t)cols};
    unsigned char *host = xmalloc(n * sh_type_bytes(type));
    for (size_t i = 0; i < n && !x->failed; i++) {
        float value = (float)sh_rng_normal(1, i % 65536);
        uint16_t half = sh_f32_to_f16(value);
        memcpy(host + i * sh_type_bytes(type), type == SH_F32 ? (void *)&value : (void *)&half, sh_type_bytes(type));
    }
    if (!x->failed)
        x->b->put(x->d, m.at, host, n * sh_type_bytes(type));
    free(host);
    return m;
}

/* ---- copies ---- */

struct copy { void *there, *here; size_t bytes; };

static void run_put(struct bench *x, void *with)
{
    struct copy *c = with;
    x->b->put(x->d, c->there, c->here, c->bytes);
}

static void run_get(struct bench *x, void *with)
{
    struct copy *c = with;
    x->b->get(x->d, c->here, c->there, c->bytes);
}

static void copies(struct bench *x)
{
    static const struct { const char *name; run_fn *run; } ways[] = {{"put", run_put}, {"get", run_get}};
    size_t most = (size_t)x->rows * (size_t)x->width * 32;
    struct copy c = {.bytes = most < MOST_COPY ? most : MOST_COPY};
    c.here = xcalloc(c.bytes, 1);
    c.there = device(x, c.bytes);
    for (int i = 0; i < 2; i++) {
        double s = fastest(x, ways[i].run, &c);
        if (!x->failed)
            printf("{\"operation\": \"%s\", \"bytes\": %zu, \"seconds\": %.4e, \"bytes_per_s\": %.4g}\n", ways[i].name,
                   c.bytes, s, (double)c.bytes / s);
        fflush(stdout);
    }
    x->b->release(x->d, c.there);
    free(c.here);
}

/* ---- products ---- */

static void run_linear(struct bench *x, void *with)
{
    x->b->linear(x->d, with);
}

static void product(struct bench *x, enum sh_type type, int rows, int in, int out, int bits)
{
    size_t n = (size_t)in * (size_t)out;
    uint16_t *host = xmalloc(n * sizeof *host);
    for (size_t i = 0; i < n; i++)
        host[i] = i < 65536 ? sh_f32_to_f16(0.02f * (float)sh_rng_normal(2, i)) : host[i - 65536];
    struct sh_linear l = {.x = matrix(x, type, rows, in), .out = matrix(x, SH_F32, rows, out)};
    x->b->weight_bits(x->d, bits);
    struct sh_weight *w = x->failed ? NULL : x->b->weight(x->d, host, SH_F16, out, in, type, x->e);
    x->b->weight_bits(x->d, 16);
    l.w = w;
    x->failed |= !w;
    double s = fastest(x, run_linear, &l), flop = 2.0 * rows * in * out;
    double read = (double)n * (bits < 16 ? bits / 8.0 : (double)sh_type_bytes(type));
    if (!x->failed)
        printf("{\"operation\": \"linear\", \"type\": \"%s\", \"weight_bits\": %d, \"rows\": %d, \"in\": %d, "
               "\"out\": %d, \"seconds\": %.4e, \"flop_per_s\": %.4g, \"weight_bytes_per_s\": %.4g}\n",
               sh_type_name(type), bits < 16 ? bits : 8 * (int)sh_type_bytes(type), rows, in, out, s, flop / s,
               read / s);
    fflush(stdout);
    x->b->drop(x->d, w);
    x->b->release(x->d, l.x.at);
    x->b->release(x->d, l.out.at);
    free(host);
}

static void products(struct bench *x)
{
    int few[] = {1, 16, 64, 256}, w = x->width;
    for (int type = 0; type < 2; type++) {
        enum sh_type t = type ? SH_F32 : SH_F16;
        product(x, t, x->rows, w, w, 16);
        product(x, t, x->rows, w, 4 * w, 16);
        product(x, t, x->rows, 4 * w, w, 16);
    }
    for (int i = 0; i < 4; i++)
        if (few[i] < x->rows)
            product(x, SH_F16, few[i], w, 4 * w, 16);
    for (int bits = 8; bits >= 4; bits -= 4)
        for (int rows = 1; rows <= 16; rows += 15)
            product(x, SH_F16, rows, w, 4 * w, bits);
}

/* A backend that has no kernel for a format asks for its numbers, which do not matter for the time. */
static void unpack_zeros(const void *from, int first, int n, float *to)
{
    (void)first;
    memset(to, 0, (size_t)n * (size_t)*(const int *)from * sizeof *to);
}

/* Blocks with any bits. */
static void packed_product(struct bench *x, enum sh_packing format, const char *name, int rows)
{
    const int in = x->width, out = 4 * x->width;
    struct sh_packing_shape shape = sh_packing_shape(format);
    size_t n = (size_t)out * (size_t)(in / shape.elements), bytes = n * (size_t)shape.bytes;
    unsigned char *host = xmalloc(bytes), *apart = xmalloc(n);
    for (size_t i = 0; i < bytes; i++)
        host[i] = i < 65536 ? (unsigned char)sh_rng(3, i) : host[i - 65536];
    memset(apart, 127, n);
    struct sh_packed p = {.rows = out, .cols = in, .format = format, .at = host, .unpack = unpack_zeros, .from = &in};
    p.apart = format == SH_PACKED_MXFP4_APART ? apart : NULL;
    struct sh_linear l = {.x = matrix(x, SH_F16, rows, in), .out = matrix(x, SH_F32, rows, out)};
    struct sh_weight *w = x->failed ? NULL : x->b->packed(x->d, &p, SH_F16, x->e);
    l.w = w;
    x->failed |= !w;
    if (w && x->x_bits < 32)
        x->b->settle(x->d, w);          /* where it knows a faster copy                           */
    double s = fastest(x, run_linear, &l);
    if (!x->failed)
        printf("{\"operation\": \"linear\", \"type\": \"%s\", \"x_bits\": %d, \"rows\": %d, \"in\": %d, \"out\": %d, "
               "\"seconds\": %.4e, \"flop_per_s\": %.4g, \"weight_bytes_per_s\": %.4g}\n", name, x->x_bits, rows, in,
               out, s, 2.0 * rows * in * out / s, (double)bytes / s);
    fflush(stdout);
    x->b->drop(x->d, w);
    x->b->release(x->d, l.x.at);
    x->b->release(x->d, l.out.at);
    free(host);
    free(apart);
}

static void packed_products(struct bench *x)
{
    const int rows[] = {1, 16, x->rows};
    for (int i = 0; i < 3 && x->width % 256 == 0; i++) {
#define FORMAT(name, elements, bytes, span, less) packed_product(x, SH_PACKED_##name, #name, rows[i]);
        SH_PACKED_CODES(FORMAT)
#undef FORMAT
    }
}

/* ---- attention ---- */

static void ignore(void *to, int sequence, int head, int first_row, int n_rows, const void *packed)
{
    (void)to, (void)sequence, (void)head, (void)first_row, (void)n_rows, (void)packed;
}

static void run_attend(struct bench *x, void *with)
{
    x->b->attend(x->d, with);
}

static void attention(struct bench *x, int n_kv_head)
{
    static const char *const ways[] = {"none", "f32", "f16", "log8", "sets"};
    static const enum sh_pack packs[] = {SH_PACK_F32, SH_PACK_F32, SH_PACK_F16, SH_PACK_LOG8, SH_PACK_SETS};
    int start[2] = {0, x->rows}, n_head = x->width / D_HEAD;
    struct sh_lanes lanes = {.n = 4, .lane = {{1, 1}, {2, 1}, {5, 1}, {10, 1}}};
    struct sh_attend a = {.q = matrix(x, SH_F32, x->rows, x->width),
                          .k = matrix(x, SH_F32, x->rows, n_kv_head * D_HEAD),
                          .v = matrix(x, SH_F32, x->rows, n_kv_head * D_HEAD),
                          .out = matrix(x, SH_F16, x->rows, x->width), .n_head = n_head, .n_kv_head = n_kv_head,
                          .d_head = D_HEAD, .scale = 0.088f, .n_seq = 1, .start = start};
    double scores = 0.5 * x->rows * (x->rows + 1.0) * n_head;
    for (int i = 0; i < 5 && !x->failed; i++) {
        a.tap = (struct sh_tap){.pack = packs[i], .lanes = &lanes, .rows = i ? ignore : NULL};
        double s = fastest(x, run_attend, &a);
        if (!x->failed)
            printf("{\"operation\": \"attend\", \"heads\": %d, \"kv_heads\": %d, \"d_head\": %d, \"rows\": %d, "
                   "\"records\": \"%s\", \"seconds\": %.4e, \"scores_per_s\": %.4g, \"flop_per_s\": %.4g}\n", n_head,
                   n_kv_head, D_HEAD, x->rows, ways[i], s, scores / s, 4 * scores * D_HEAD / s);
        fflush(stdout);
    }
    void *at[] = {a.q.at, a.k.at, a.v.at, a.out.at};
    for (int i = 0; i < 4; i++)
        x->b->release(x->d, at[i]);
}

/* ---- what only moves memory ---- */

static void run_norm(struct bench *x, void *with)
{
    x->b->norm(x->d, with);
}

static void run_gate(struct bench *x, void *with)
{
    x->b->gate(x->d, with);
}

static void moved(struct bench *x, const char *name, run_fn *run, void *with, struct sh_mat out, int inputs)
{
    double s = fastest(x, run, with), n = (double)out.rows * out.cols;
    double bytes = n * (4.0 * inputs + (double)sh_type_bytes(out.type));
    if (!x->failed)
        printf("{\"operation\": \"%s\", \"rows\": %d, \"cols\": %d, \"seconds\": %.4e, \"bytes_per_s\": %.4g}\n", name,
               out.rows, out.cols, s, bytes / s);
    fflush(stdout);
}

static void movers(struct bench *x)
{
    struct sh_mat in = matrix(x, SH_F32, x->rows, 4 * x->width), up = matrix(x, SH_F32, x->rows, 4 * x->width);
    struct sh_mat out = matrix(x, SH_F16, x->rows, 4 * x->width);
    struct sh_norm n = {.out = out, .x = in, .eps = 1e-5f, .kind = SH_NORM_RMS};
    struct sh_gate g = {.out = out, .gate = in, .up = up, .act = SH_ACT_SILU};
    moved(x, "norm", run_norm, &n, out, 1);
    moved(x, "gate", run_gate, &g, out, 2);
    x->b->release(x->d, in.at);
    x->b->release(x->d, up.at);
    x->b->release(x->d, out.at);
}

/* 0: it is none, or too small or large. */
static int number(const char *text, long least, long most)
{
    char *end;
    long n = strtol(text, &end, 10);
    return *end || n < least || n > most ? 0 : (int)n;
}

static void all(struct bench *x)
{
    copies(x);
    movers(x);
    products(x);
    packed_products(x);
    attention(x, x->width / D_HEAD);
    if (x->width / D_HEAD % 4 == 0)
        attention(x, x->width / D_HEAD / 4);
}

int main(int argc, char **argv)
{
    struct sh_err e = {.text = ""};
    int rows = argc > 2 ? number(argv[2], 2, 1 << 16) : 2048, repeat = argc > 3 ? number(argv[3], 1, 1000) : 5;
    int width = argc > 4 ? number(argv[4], D_HEAD, 1 << 15) : 4096;
    if (argc < 2 || argc > 5 || !rows || !repeat || !width || width % D_HEAD) {
        fprintf(stderr, "usage: %s BACKEND [ROWS [REPEAT [WIDTH]]]\n", argv[0]);
        return 2;
    }
    struct bench x = {.b = sh_backend_find(argv[1], &e), .rows = rows, .repeat = repeat, .width = width, .e = &e};
    int n_threads = omp_get_max_threads();      /* before a backend sets it */
    int least = 32;
    for (x.x_bits = 32; x.b && !x.failed && x.x_bits >= least; x.x_bits /= 2) {
        struct sh_open o = {.n_threads = n_threads, .x_bits = x.x_bits};
        struct sh_props p;
        x.d = x.b->open(&o, &e);
        x.failed = !x.d;
        if (x.failed)
            break;
        x.b->props(x.d, &p);
        least = p.is_host ? 8 : 32;
        if (x.x_bits == 32) {
            printf("{\"chip\": \"%s\", \"rows\": %d, \"width\": %d}\n", p.chip, rows, width);
            all(&x);
        } else {
            packed_products(&x);
        }
        x.b->close(x.d);
    }
    x.failed |= !x.b;
    if (x.failed)
        fprintf(stderr, "kernels_speed: %s\n%s\n", e.text, e.hint);
    return !x.failed ? 0 : e.status == SH_ABSENT ? 3 : 1;
}
