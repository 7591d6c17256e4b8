/* SPDX-License-Identifier: Apache-2.0 */
/* See kv_type.h. */
#include "planner/capacity/kv_type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/read_number.h"

enum { MOST_GROUP = 65536, MOST_SCALE = 64 };

static const struct sh_kv_type formats[] = {
    {.name = "f32", .bits = 32},
    {.name = "f16", .bits = 16},
    {.name = "bf16", .bits = 16},
    {.name = "f8", .bits = 8, .f8_math = 1},
    {.name = "int8", .bits = 8, .f8_math = 1},
    {.name = "int4", .bits = 4, .group = 64, .scale = 16, .zero = 16},
    {.name = "int3", .bits = 3, .group = 64, .scale = 16, .zero = 16},
    {.name = "int2", .bits = 2, .group = 64, .scale = 16, .zero = 16},
    {.name = "q8_0", .bits = 8, .group = 32, .scale = 16, .whole_file = 1},
    {.name = "q4_0", .bits = 4, .group = 32, .scale = 16, .whole_file = 1},
    {.name = "mxfp4", .bits = 4, .group = 32, .scale = 8},
    {.name = "nvfp4", .bits = 4, .group = 16, .scale = 8},
};
enum { N_FORMAT = sizeof formats / sizeof *formats };

static int setting(const char *text, const char *from, size_t n, struct sh_kv_type *t, struct sh_err *e)
{
    static const char *const names[] = {"group=", "scale=", "zero=", "block=", "residual="};
    int *const fields[] = {&t->group, &t->scale, &t->zero, &t->block, &t->residual};
    const int most[] = {MOST_GROUP, MOST_SCALE, MOST_SCALE, MOST_GROUP, MOST_GROUP};
    for (int i = 0; i < 5; i++) {
        size_t len = strlen(names[i]);
        if (n <= len || strncmp(from, names[i], len))
            continue;
        char *end;
        long value = strtol(from + len, &end, 10);
        if (end != from + n || from[len] < '0' || from[len] > '9' || value > most[i])
            return sh_misused(e, "number format \"%.60s\": %s takes a whole number from 0 to %d", text, names[i],
                              most[i]);
        *fields[i] = (int)value;
        return 0;
    }
    return sh_misused(e, "number format \"%.60s\": unknown setting \"%.*s\", expected group=, scale=, zero=, block= or "
                      "residual=", text, (int)n, from);
}

int sh_kv_type_parse(const char *text, struct sh_kv_type *out, struct sh_err *e)
{
    size_t n = strcspn(text, ":");
    const char *name = sh_format_spelled(text, n);
    for (int i = 0; name && i < N_FORMAT; i++) {
        if (strcmp(name, formats[i].name))
            continue;
        struct sh_kv_type t = formats[i];
        for (const char *at = text + n; *at; ) {
            size_t len = strcspn(++at, ":");
            if (setting(text, at, len, &t, e))
                return -1;
            at += len;
        }
        if ((t.group * t.bits + t.scale + t.zero) % 8)
            return sh_misused(e, "number format \"%.60s\": a group takes %d bits, expected whole bytes", text,
                              t.group * t.bits + t.scale + t.zero);
        snprintf(t.name, sizeof t.name, "%s%s", name, text + n);
        *out = t;
        return 0;
    }
    sh_misused(e, "number format \"%.60s\": expected f32, f16, bf16, f8, int8, int4, int3, int2, q8_0, q4_0, mxfp4 or "
               "nvfp4", text);
    return sh_hint(e, "settings follow after colons: int4:group=64:scale=16:zero=16");
}

uint64_t sh_kv_type_bytes(const struct sh_kv_type *t, uint64_t n)
{
    uint64_t bits = (uint64_t)t->bits, extra = (uint64_t)(t->scale + t->zero), group = (uint64_t)t->group;
    if (!group || !n)
        return (n * bits + (n ? extra : 0) + 7) / 8;
    return (n + group - 1) / group * ((group * bits + extra) / 8);
}

uint64_t sh_kv_type_channels(const struct sh_kv_type *t, uint64_t n, uint64_t channels)
{
    uint64_t bits = (uint64_t)t->bits, extra = (uint64_t)(t->scale + t->zero) / 8, newest = (uint64_t)t->residual;
    uint64_t group = t->group ? (uint64_t)t->group : n, whole = group ? n / group : 0, rest = group ? n % group : 0;
    uint64_t each = whole * ((group * bits + 7) / 8 + extra) + (rest ? (rest * bits + 7) / 8 + extra : 0);
    return channels * each + (newest < n ? newest : n) * (2 * channels + 4);
}

uint64_t sh_kv_type_matrix(const struct sh_kv_type *t, uint64_t rows, uint64_t n)
{
    uint64_t side = (uint64_t)t->block, tiles = 0;
    if (side)
        tiles = ((rows + side - 1) / side) * ((n + side - 1) / side) * 4;
    return rows * sh_kv_type_bytes(t, n) + tiles;
}
