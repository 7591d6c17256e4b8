/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache in 8 and 4 bits against a reference in PyTorch (tests/oracle/session.py): codes, scales and
 * minima of matrices exactly; logits of a model that reads its cache back from codes, on every backend, within
 * 2e-4 (4 bits) or 5e-3 (8 bits, where a code may differ by one). And the storage by slots, in all formats. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/engine/session.h"
#include "src/model/weights.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"

static struct sh_err e;

struct golden {
    json_t *root;
    struct sh_weights *file;
};

static struct golden open_golden(void)
{
    struct golden g;
    json_error_t error;
    CU_ASSERT_PTR_NOT_NULL_FATAL(tap_golden("session/quant.json"));
    g.root = json_load_file(tap_golden("session/quant.json"), 0, &error);
    g.file = sh_weights_open(tap_golden("session/quant.safetensors"), &e);
    CU_ASSERT_FATAL(g.root && g.file);
    return g;
}

static void close_golden(struct golden *g)
{
    json_decref(g->root);
    sh_weights_close(g->file);
}

static const struct sh_stored *find(const struct golden *g, const char *name, const char *what)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s%s", name, *what ? "." : "", what);
    return sh_weights_find(g->file, full);
}

static struct sh_kv_format format_of(const json_t *c)
{
    return (struct sh_kv_format){.bits = (int)json_integer_value(json_object_get(c, "bits")),
                                 .group = (int)json_integer_value(json_object_get(c, "group")),
                                 .meta = strcmp(json_string_value(json_object_get(c, "meta")), "f16") ? SH_F32
                                                                                                      : SH_F16};
}

static float meta_at(const struct sh_kv_format *f, const void *at, int i)
{
    return f->meta == SH_F32 ? ((const float *)at)[i] : sh_f16_to_f32(((const uint16_t *)at)[i]);
}

/* Line l of the matrix along the groups: a token's channels, or a channel's tokens. */
static void matrix(const struct golden *g, const json_t *m)
{
    const char *key = json_string_value(json_object_get(m, "key"));
    struct sh_kv_format f = format_of(m);
    int along_tokens = !strncmp(json_string_value(json_object_get(m, "scheme")), "per_channel", 11), wrong = 0;
    const struct sh_stored *x = find(g, json_string_value(json_object_get(m, "input")), "");
    const struct sh_stored *scale = find(g, key, "scale"), *least = find(g, key, "min");
    const struct sh_stored *codes = find(g, key, f.bits == 8 ? "codes" : "packed");
    CU_ASSERT_FATAL(x && scale && least && codes);
    int rows = (int)x->shape[0], cols = (int)x->shape[1], lines = along_tokens ? cols : rows;
    int length = along_tokens ? rows : cols;
    const float *at = (const void *)x->at, *scales = (const void *)scale->at, *mins = (const void *)least->at;
    for (int l = 0; l < lines; l++)
        for (int first = 0; first < length; first += f.group) {
            int n = length - first < f.group ? length - first : f.group, group = first / f.group;
            size_t stride = along_tokens ? (size_t)cols : 1;
            const float *from = at + (along_tokens ? (size_t)first * stride + (size_t)l
                                                   : (size_t)l * (size_t)cols + (size_t)first);
            int about = along_tokens ? group * cols + l : l * (int)scale->shape[1] + group;
            unsigned char found[1024], meta[8];
            sh_quant_write(&f, from, stride, n, found, meta);
            wrong += meta_at(&f, meta, 0) != scales[about] || meta_at(&f, meta, 1) != mins[about];
            for (int i = 0; i < n; i++) {
                int token = along_tokens ? first + i : l, channel = along_tokens ? l : first + i;
                const unsigned char *line = codes->at + (size_t)l * codes->shape[1];
                int want = f.bits == 8 ? codes->at[token * cols + channel]
                                       : line[(first + i) / 2] >> ((first + i) % 2 * 4) & 15;
                int code = f.bits == 8 ? found[i] : found[i / 2] >> (i % 2 * 4) & 15;
                wrong += code != want;
            }
        }
    if (wrong)
        printf("# %s: %d numbers differ\n", key, wrong);
    CU_ASSERT_EQUAL(wrong, 0);
}

static void matrices(void)
{
    struct golden g = open_golden();
    size_t i;
    const json_t *m;
    CU_ASSERT(json_array_size(json_object_get(g.root, "matrices")) >= 6);
    json_array_foreach(json_object_get(g.root, "matrices"), i, m)
        matrix(&g, m);
    close_golden(&g);
}

/* ---- a model over its codes ---- */

struct run {
    const json_t *rows;
    const float *wanted;
    int vocab, seen;
    double off;
    struct sh_kv_format format;         /* of a one-shot run */
    const struct target *on;
};

static void take_one(void *to, int sequence, int position, const float *logits)
{
    struct run *r = to;
    size_t i;
    const json_t *row;
    (void)sequence;
    json_array_foreach((json_t *)(uintptr_t)r->rows, i, row)
        if (json_integer_value(row) == position) {
            r->seen++;
            for (int k = 0; k < r->vocab; k++) {
                double off = fabs((double)(logits[k] - r->wanted[i * (size_t)r->vocab + (size_t)k]));
                r->off = fmax(r->off, isnan(off) ? INFINITY : off);
            }
        }
}

static void take(void *to, int sequence, int position, int n, const float *logits)
{
    const struct run *r = to;
    for (int i = 0; i < n; i++)
        take_one(to, sequence, position + i, logits + (size_t)i * (size_t)r->vocab);
}

/* What the numbers are after they were codes. */
static void round_trip(const struct sh_kv_format *f, float *x, size_t stride, int n)
{
    for (int i = 0, m; i < n; i += m) {
        unsigned char codes[1024], meta[8];
        float back[1024];
        m = n - i < f->group ? n - i : f->group;
        sh_quant_write(f, x + (size_t)i * stride, stride, m, codes, meta);
        sh_quant_read(f, codes, meta, 0, m, back);
        for (int k = 0; k < m; k++)
            x[(size_t)(i + k) * stride] = back[k];
    }
}

/* sh_own_attention's: keys and values of the whole text become codes and back before anyone attends. */
static void attend_to_codes(void *to, int layer, const struct sh_attend *what)
{
    struct run *r = to;
    const struct sh_backend *b = r->on->b;
    int n = what->k.rows, width = what->n_kv_head * what->d_head;
    size_t bytes = (size_t)n * (size_t)width * sizeof(float);
    float *k = xmalloc(bytes), *v = xmalloc(bytes);
    (void)layer;
    CU_ASSERT_FATAL(what->k.stride == (size_t)width && what->v.stride == (size_t)width);
    b->get(r->on->d, k, what->k.at, bytes);
    b->get(r->on->d, v, what->v.at, bytes);
    CU_ASSERT_EQUAL_FATAL(b->sync(r->on->d, &e), 0);
    for (int c = 0; c < width; c++)
        round_trip(&r->format, k + c, (size_t)width, n);
    for (int row = 0; row < n * what->n_kv_head; row++)
        round_trip(&r->format, v + row * what->d_head, 1, what->d_head);
    b->put(r->on->d, what->k.at, k, bytes);
    b->put(r->on->d, what->v.at, v, bytes);
    b->attend(r->on->d, what);
    free(k);
    free(v);
}

static void one_shot(struct sh_resident *r, const int32_t *tokens, int n, struct run *run)
{
    struct sh_own_attention own = {.first = (int[]){0}, .attend = attend_to_codes, .to = run};
    int start[] = {0, n};
    float *logits = xmalloc((size_t)n * (size_t)run->vocab * sizeof *logits);
    CU_ASSERT_EQUAL_FATAL(sh_entry_run(r->entry, tokens, 1, start, own.first, r->hidden, &e), 0);
    for (int l = 0; l < r->arch->n_layer; l++)
        sh_layer_run(r->layer[l], &r->act, r->hidden, 1, start, NULL, 0, &own);
    CU_ASSERT_EQUAL_FATAL(sh_head_run(r->head, r->hidden, 0, n, logits, &e), 0);
    take(run, 0, 0, n, logits);
    free(logits);
}

/* Nothing leaves, so keys share scales across slots: that cache is on the host, wherever the model is. */
static void check_place(const struct sh_session *s, int is_host)
{
    const char *why = sh_session_why_host(s);
    CU_ASSERT_PTR_NOT_NULL(sh_session_cache(s));
    CU_ASSERT(is_host ? !why : why && strstr(why, "never evicts"));
}

static void decode(struct sh_resident *r, const int32_t *tokens, int n, int by, struct run *run)
{
    struct sh_policy_spec full;
    int budget[16] = {0};
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("full", &full, &e), 0);
    struct sh_session_setup setup = {.spec = &full, .budget = budget, .n_seq = 1, .n_token = n,
                                     .format = run->format};
    struct sh_session *s = sh_session_new(r, &setup, &e);
    CU_ASSERT_FATAL(s && r->arch->n_layer * r->arch->n_kv_head <= 16);
    check_place(s, r->is_host);
    for (int i = 0; i < n; i += by)
        CU_ASSERT_EQUAL_FATAL(sh_session_step(s, tokens + i, (int[]){0, n - i < by ? n - i : by}, take, run, &e), 0);
    sh_session_free(s);
}

static void logit_case(const struct golden *g, struct sh_resident *r, const struct target *on, const json_t *c)
{
    const char *name = json_string_value(json_object_get(c, "name"));
    const json_t *ids = json_object_get(c, "tokens");
    const struct sh_stored *wanted = find(g, name, "");
    int32_t tokens[128];
    int n = (int)json_array_size(ids);
    CU_ASSERT_FATAL(wanted && n <= 128);
    for (int i = 0; i < n; i++)
        tokens[i] = (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
    struct run run = {.rows = json_object_get(g->root, "rows"), .wanted = (const void *)wanted->at,
                      .vocab = r->arch->n_vocab, .format = format_of(c), .on = on};
    int is_decode = !strcmp(json_string_value(json_object_get(c, "mode")), "decode");
    double limit = run.format.bits == 4 ? 2e-4 : 5e-3;
    if (is_decode) {
        decode(r, tokens, n, 1, &run);
        decode(r, tokens, n, 48, &run);
    } else {
        one_shot(r, tokens, n, &run);
    }
    if (run.off > limit)
        printf("# %s: logits off by %.1e\n", name, run.off);
    CU_ASSERT(run.off <= limit);
    CU_ASSERT_EQUAL(run.seen, (is_decode ? 2 : 1) * (int)json_array_size(run.rows));
}

static void logits(enum which which)
{
    struct target on;
    if (target_open(&on, which, 2))
        return;
    struct golden g = open_golden();
    size_t i;
    const json_t *c;
    char *folder = xstrdup(tap_golden("session/opt_wide/config.json"));
    *strrchr(folder, '/') = '\0';
    struct sh_model *m = sh_model_open(folder, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    struct sh_resident_setup setup = {.backend = on.b, .device = on.d, .model = m, .dtype = SH_F32,
                                      .weight_bits = 16, .rows = 128, .positions = 128};
    struct sh_resident *r = sh_resident_open(&setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(g.root, "cases")), 12);
    json_array_foreach(json_object_get(g.root, "cases"), i, c)
        logit_case(&g, r, &on, c);
    sh_resident_close(r);
    target_close(&on);
    sh_model_close(m);
    free(folder);
    close_golden(&g);
}

static void logits_cpu(void) { logits(ON_CPU); }
static void logits_module(void) { logits(ON_MODULE); }

/* ---- slots ---- */

static float number(int slot, int channel)
{
    return (float)(sh_rng(3, (uint64_t)(slot * 1000 + channel)) % 2001) / 500 - 2;
}

/* Rows that come back are off by half a step of their scale at most. */
static void storage(const struct sh_kv_format *f, int by_channel, int n, int width)
{
    struct sh_kv_rows r;
    float row[80], scratch[SH_ROWS_AT_ONCE * 80];
    double limit = f->bits == 32 ? 0 : f->bits == 16 ? 2 * 0x1p-11 : 4.0 / (f->bits == 8 ? 255 : 15) * 0.51 + 4e-3;
    double off = 0;
    CU_ASSERT_FATAL(width <= 80 && sh_kv_rows_new(&r, f, by_channel, n, width, &e) == 0);
    for (int again = 0; again < 2; again++)             /* slots begin anew for another text */
        for (int slot = 0; slot < n; slot++) {
            for (int c = 0; c < width; c++)
                row[c] = number(slot, c);
            sh_kv_rows_put(&r, slot, row);
            if (slot % 37 && slot < n - 1)
                continue;
            for (int first = 0; first <= slot; first += SH_ROWS_AT_ONCE) {
                int m = slot + 1 - first < SH_ROWS_AT_ONCE ? slot + 1 - first : SH_ROWS_AT_ONCE;
                const float *at = sh_kv_rows_get(&r, first, m, scratch);
                for (int i = 0; i < m * width; i++)
                    off = fmax(off, fabs((double)(at[i] - number(first + i / width, i % width))));
            }
        }
    if (off > limit)
        printf("# %d bits, by channel %d, groups of %d, %d wide: off by %g\n", f->bits, by_channel, f->group, width,
               off);
    CU_ASSERT(off <= limit);
    CU_ASSERT(f->bits >= 16 || off > 0);
    sh_kv_rows_free(&r);
}

static void slots(void)
{
    static const int widths[] = {8, 40, 72, 3, 30}, bits[] = {32, 16, 8, 4}, groups[] = {32, 64, 128, 24};
    for (int b = 0; b < 4; b++)
        for (int g = 0; g < 4; g++)
            for (int w = 0; w < 5; w++)
                for (int by_channel = 0; by_channel < 2; by_channel++) {
                    struct sh_kv_format f = {.bits = bits[b], .group = groups[g], .meta = w ? SH_F16 : SH_F32};
                    storage(&f, by_channel, 150, widths[w]);
                }
}

/* Columns that are read together are those read one by one, to the bit. */
static void columns(void)
{
    enum { WIDTH = 7, GROUP = 200 };
    static const int counts[] = {1, 3, 64, 67, 130}, widths[] = {1, 4, 7};
    unsigned char codes[WIDTH * GROUP], meta[WIDTH * 8];
    float x[GROUP * WIDTH], one[GROUP];
    for (int turn = 0; turn < 4 * 5 * 3; turn++) {
        struct sh_kv_format f = {.bits = turn % 2 ? 4 : 8, .group = GROUP, .meta = turn / 2 % 2 ? SH_F16 : SH_F32};
        int n = counts[turn / 4 % 5], width = widths[turn / 20], first = turn % 3 * 2, wrong = 0;
        size_t step = sh_quant_code_bytes(GROUP, f.bits), about = sh_quant_meta_bytes(f.meta);
        for (int c = 0; c < width; c++) {
            for (int i = 0; i < GROUP; i++)
                one[i] = number(i, c);
            sh_quant_write(&f, one, 1, GROUP, codes + (size_t)c * step, meta + (size_t)c * about);
        }
        sh_quant_read_columns(&f, codes, step, meta, first, n, width, x);
        for (int c = 0; c < width; c++) {
            sh_quant_read(&f, codes + (size_t)c * step, meta + (size_t)c * about, first, n, one);
            for (int i = 0; i < n; i++)
                wrong += x[i * width + c] != one[i];
        }
        CU_ASSERT(!wrong);
    }
}

/* Slots taken again in any order: the newest tokens are f16; a coded one is off by no more than half a step of
 * what its channel ever spanned for each time it was coded, which is seldom; and it moves only when it is. */
static void reuse(const struct sh_kv_format *f, int n, int width)
{
    enum { PUTS = 3000 };
    struct sh_kv_rows r;
    float row[40], scratch[SH_ROWS_AT_ONCE * 40], before[200 * 40] = {0};
    int token[200], moved = 0;
    double off = 0, sum = 0, step = 4.0 / (f->bits == 8 ? 255 : 15), far_fresh = 0;
    CU_ASSERT_FATAL(n <= 200 && width <= 40 && sh_kv_rows_new(&r, f, SH_KV_BY_CHANNEL, n, width, &e) == 0);
    for (int p = 0; p < PUTS; p++) {
        int slot = p < n ? p : (int)(sh_rng(11, (uint64_t)p) % (uint64_t)n);
        token[slot] = p;
        for (int c = 0; c < width; c++)
            row[c] = number(p, c);
        sh_kv_rows_put(&r, slot, row);
        for (int first = 0; p >= n && p % 50 < 2 && first < n; first += SH_ROWS_AT_ONCE) {
            int m = n - first < SH_ROWS_AT_ONCE ? n - first : SH_ROWS_AT_ONCE;
            const float *at = sh_kv_rows_get(&r, first, m, scratch);
            for (int i = 0; i < m * width; i++) {
                int k = first + i / width;
                double x = fabs((double)(at[i] - number(token[k], i % width)));
                off = fmax(off, x);
                sum += x / ((double)n * width);
                far_fresh = token[k] == p ? fmax(far_fresh, x) : far_fresh;
                moved += p % 50 == 1 && token[k] < p && before[k * 40 + i % width] != at[i];
                before[k * 40 + i % width] = at[i];
            }
        }
    }
    double mean = sum / ((PUTS - n) / 50 * 2);
    if (off > 2.5 * step || mean > 0.4 * step || far_fresh > 2e-3)
        printf("# %d bits, groups of %d, %d slots: off by %g, mean %g, newest %g (step %g)\n", f->bits, f->group, n,
               off, mean, far_fresh, step);
    CU_ASSERT(off > 0 && off <= 2.5 * step && mean <= 0.4 * step && far_fresh <= 2e-3);
    CU_ASSERT(moved <= PUTS / 50 * 2 * f->group * width / 8);      /* a block at most, and most steps none */
    sh_kv_rows_clear(&r);
    sh_kv_rows_put(&r, 0, row);
    const float *at = sh_kv_rows_get(&r, 0, 1, scratch);
    for (int c = 0; c < width; c++)
        CU_ASSERT_DOUBLE_EQUAL(at[c], row[c], 2e-3);
    sh_kv_rows_free(&r);
}

static void reused(void)
{
    for (int bits = 4; bits <= 8; bits += 4)
        for (int residual = 1; residual <= 64; residual *= 4) {
            struct sh_kv_format f = {.bits = bits, .group = residual == 4 ? 24 : 64, .meta = SH_F16, .by_channel = 1,
                                     .residual = residual};
            reuse(&f, 150, 8);
            reuse(&f, 37, 40);
        }
}

/* f16 has no number for what comes from far outside of it. */
static void extremes(void)
{
    struct sh_kv_format f = {.bits = 4, .group = 8, .meta = SH_F16};
    float x[8] = {1e30f, -1e30f, 0, 1, 2, 3, 4, 5}, y[8];
    unsigned char codes[4], meta[4];
    sh_quant_write(&f, x, 1, 8, codes, meta);
    sh_quant_read(&f, codes, meta, 0, 8, y);
    for (int i = 0; i < 8; i++)
        CU_ASSERT(isfinite(y[i]));
    for (int i = 0; i < 8; i++)
        x[i] = 3;
    sh_quant_write(&f, x, 1, 8, codes, meta);
    sh_quant_read(&f, codes, meta, 0, 8, y);
    for (int i = 0; i < 8; i++)
        CU_ASSERT(y[i] == 3 && codes[i / 2] == 0);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"codes, scales and minima of matrices", matrices},
        {"logits over a cache of codes, at once and token by token", logits_cpu},
        {"logits over a cache of codes, at once and token by token (module)", logits_module},
        {"slots: rows come back, in every format", slots},
        {"columns of codes together and one by one", columns},
        {"slots that are taken again, scales across slots", reused},
        {"numbers that f16 does not have, and equal ones", extremes},
        {0}};
    return tap_run("quant", tests);
}
