/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata by key (gguf.h). */
#include "src/model/files/gguf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"

const struct sh_gguf_kind_facts sh_gguf_kinds[SH_GGUF_N_KIND] = {
    [SH_GGUF_U8] = {"u8", 1}, [SH_GGUF_I8] = {"i8", 1}, [SH_GGUF_U16] = {"u16", 2}, [SH_GGUF_I16] = {"i16", 2},
    [SH_GGUF_U32] = {"u32", 4}, [SH_GGUF_I32] = {"i32", 4}, [SH_GGUF_F32] = {"f32", 4}, [SH_GGUF_BOOL] = {"bool", 1},
    [SH_GGUF_STRING] = {"string", 8}, [SH_GGUF_ARRAY] = {"array", 12}, [SH_GGUF_U64] = {"u64", 8},
    [SH_GGUF_I64] = {"i64", 8}, [SH_GGUF_F64] = {"f64", 8}};

int sh_gguf_is_whole(enum sh_gguf_kind kind)
{
    return kind != SH_GGUF_F32 && kind != SH_GGUF_F64 && kind != SH_GGUF_BOOL && kind != SH_GGUF_STRING &&
           kind != SH_GGUF_ARRAY;
}

static int is_real(enum sh_gguf_kind kind)
{
    return kind == SH_GGUF_F32 || kind == SH_GGUF_F64;
}

int sh_gguf_text_is(struct sh_gguf_text text, const char *word)
{
    return text.bytes == strlen(word) && !memcmp(text.at, word, text.bytes);
}

/* ---- elements ---- */

/* The bytes of element i as a number of their width. */
static uint64_t raw_at(const struct sh_gguf_value *v, size_t i)
{
    uint64_t raw = 0;
    memcpy(&raw, v->at + i * sh_gguf_kinds[v->item].bytes, sh_gguf_kinds[v->item].bytes);
    return raw;
}

double sh_gguf_real_at(const struct sh_gguf_value *v, size_t i)
{
    uint64_t raw = raw_at(v, i);
    uint32_t low = (uint32_t)raw;
    float f;
    double d;
    memcpy(&f, &low, sizeof f);
    memcpy(&d, &raw, sizeof d);
    return v->item == SH_GGUF_F32   ? (double)f
           : v->item == SH_GGUF_F64 ? d
           : v->item == SH_GGUF_U64 ? (double)raw
                                    : (double)sh_gguf_whole_at(v, i);
}

int64_t sh_gguf_whole_at(const struct sh_gguf_value *v, size_t i)
{
    uint64_t raw = raw_at(v, i);
    if (is_real(v->item)) {
        double d = floor(sh_gguf_real_at(v, i));
        return d >= 0x1p63 ? INT64_MAX : d >= -0x1p63 ? (int64_t)d : INT64_MIN;
    }
    return v->item == SH_GGUF_I8    ? (int8_t)raw
           : v->item == SH_GGUF_I16 ? (int16_t)raw
           : v->item == SH_GGUF_I32 ? (int32_t)raw
           : v->item == SH_GGUF_U64 && raw > INT64_MAX ? INT64_MAX
                                                       : (int64_t)raw;
}

static struct sh_gguf_text text_at(const unsigned char *at)
{
    uint64_t n;
    memcpy(&n, at, sizeof n);
    return (struct sh_gguf_text){(const char *)at + sizeof n, (size_t)n};
}

struct sh_gguf_text sh_gguf_string_at(struct sh_gguf_value *v, size_t i)
{
    if (!v->index) {
        const unsigned char *at = v->at;
        v->index = xcalloc(v->n, sizeof *v->index);
        for (size_t k = 0; k < v->n; k++) {
            struct sh_gguf_text text = text_at(at);
            v->index[k] = at;
            at = (const unsigned char *)text.at + text.bytes;
        }
    }
    return text_at(v->index[i]);
}

/* ---- values of the kind that is wanted ---- */

/* A value in words, cut to `bytes`. */
static void in_words(struct sh_gguf_value *v, char *text, size_t bytes)
{
    if (v->kind == SH_GGUF_ARRAY)
        snprintf(text, bytes, "an array of %zu elements of kind %s", v->n, sh_gguf_kinds[v->item].name);
    else if (v->kind == SH_GGUF_STRING) {
        char shown[60];
        struct sh_gguf_text word = text_at(v->at);
        snprintf(text, bytes, "'%s'", sh_shown(word.at, word.bytes, shown, sizeof shown));
    } else if (v->kind == SH_GGUF_BOOL)
        snprintf(text, bytes, "%s", v->at[0] ? "true" : "false");
    else if (is_real(v->kind))
        snprintf(text, bytes, "%g", sh_gguf_real_at(v, 0));
    else if (v->kind == SH_GGUF_U64)
        snprintf(text, bytes, "%llu", (unsigned long long)raw_at(v, 0));
    else
        snprintf(text, bytes, "%lld", (long long)sh_gguf_whole_at(v, 0));
}

int sh_gguf_refuse(const struct sh_gguf *g, const char *key, const char *expected, struct sh_err *e)
{
    struct sh_gguf_value *v = sh_gguf_find(g, key);
    char found[120] = "nothing";
    if (v)
        in_words(v, found, sizeof found);
    return sh_fail(e, "%s: key '%s': found %s, expected %s", g->path, key, found, expected);
}

int sh_gguf_whole(const struct sh_gguf *g, const char *key, int64_t min, int64_t max, int64_t *out, struct sh_err *e)
{
    const struct sh_gguf_value *v = sh_gguf_find(g, key);
    if (!v)
        return 0;
    int64_t n = sh_gguf_is_whole(v->kind) ? sh_gguf_whole_at(v, 0) : min;
    if (!sh_gguf_is_whole(v->kind) || n < min || n > max) {
        char expected[80];
        snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)min, (long long)max);
        return sh_gguf_refuse(g, key, expected, e);
    }
    *out = n;
    return 0;
}

int sh_gguf_real(const struct sh_gguf *g, const char *key, double *out, struct sh_err *e)
{
    const struct sh_gguf_value *v = sh_gguf_find(g, key);
    if (v && (!is_real(v->kind) || !isfinite(sh_gguf_real_at(v, 0))))
        return sh_gguf_refuse(g, key, "a number", e);
    *out = v ? sh_gguf_real_at(v, 0) : *out;
    return 0;
}

int sh_gguf_flag(const struct sh_gguf *g, const char *key, int *out, struct sh_err *e)
{
    const struct sh_gguf_value *v = sh_gguf_find(g, key);
    if (v && v->kind != SH_GGUF_BOOL)
        return sh_gguf_refuse(g, key, "true or false", e);
    *out = v ? v->at[0] : *out;
    return 0;
}

int sh_gguf_word(const struct sh_gguf *g, const char *key, struct sh_gguf_text *out, struct sh_err *e)
{
    const struct sh_gguf_value *v = sh_gguf_find(g, key);
    if (v && v->kind != SH_GGUF_STRING)
        return sh_gguf_refuse(g, key, "a string", e);
    *out = v ? text_at(v->at) : *out;
    return 0;
}

int sh_gguf_strings(const struct sh_gguf *g, const char *key, struct sh_gguf_value **out, struct sh_err *e)
{
    struct sh_gguf_value *v = sh_gguf_find(g, key);
    if (v && (v->kind != SH_GGUF_ARRAY || v->item != SH_GGUF_STRING))
        return sh_gguf_refuse(g, key, "an array of strings", e);
    *out = v;
    return 0;
}

int sh_gguf_numbers(const struct sh_gguf *g, const char *key, struct sh_gguf_value **out, struct sh_err *e)
{
    struct sh_gguf_value *v = sh_gguf_find(g, key);
    if (v && (v->kind != SH_GGUF_ARRAY || v->item == SH_GGUF_STRING || v->item == SH_GGUF_ARRAY))
        return sh_gguf_refuse(g, key, "an array of numbers", e);
    *out = v;
    return 0;
}
