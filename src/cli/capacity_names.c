/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_names.h. */
#include "src/cli/capacity_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/capacity/kv_weights.h"
#include "src/base/mem.h"
#include "src/base/near.h"
#include "src/cli/capacity_config.h"
#include "src/cli/capacity_stored.h"
#include "src/model/map.h"

#define MOST_BYTES ((size_t)4 << 20)

static void free_lines(char **lines)
{
    for (int i = 0; lines && lines[i]; i++)
        free(lines[i]);
    free(lines);
}

static char **read_lines(const char *path, struct sh_err *e)
{
    struct sh_map m;
    if (sh_map_open(&m, path, e))
        return NULL;
    if (m.bytes > MOST_BYTES) {
        sh_fail(e, "%s: found %zu bytes, expected a catalogue of at most %zu", path, m.bytes, MOST_BYTES);
        sh_map_close(&m);
        return NULL;
    }
    char **lines = xcalloc(1, sizeof *lines);
    size_t n = 0;
    for (const char *at = (const char *)m.at, *end = at + m.bytes; at && at < end; n++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        lines = xreallocarray(lines, n + 2, sizeof *lines);
        lines[n] = xcalloc(len + 1, 1);
        memcpy(lines[n], at, len);      /* a zero byte ends the line early, which is then too short a row */
        lines[n + 1] = NULL;
        at += len + 1;
    }
    sh_map_close(&m);
    return lines;
}

static int check_rows(const struct sh_capacity_names *n, struct sh_err *e)
{
    struct sh_board b;
    int end = 0;
    for (int i = 0; n->own_gpus && !end; i++)
        if ((end = sh_capacity_board_at(n, i, &b, e)) < 0)
            return -1;
    end = 0;
    for (int i = 0; n->own_models && !end; i++) {
        struct sh_kv_shape s = {.layer = NULL};
        end = sh_capacity_model_at(n, i, &s, e);
        sh_kv_shape_clear(&s);
        if (end < 0)
            return -1;
    }
    return 0;
}

int sh_capacity_names_open(struct sh_capacity_names *n, const char *gpus, const char *models, struct sh_err *e)
{
    *n = (struct sh_capacity_names){.gpus = {.built_in = sh_catalog_gpus, .own_path = gpus},
                                    .models = {.built_in = sh_catalog_models, .own_path = models}};
    if ((gpus && !(n->own_gpus = read_lines(gpus, e))) || (models && !(n->own_models = read_lines(models, e))))
        return -1;
    n->gpus.own = (const char *const *)n->own_gpus;
    n->models.own = (const char *const *)n->own_models;
    return check_rows(n, e);
}

void sh_capacity_names_close(struct sh_capacity_names *n)
{
    free_lines(n->own_gpus);
    free_lines(n->own_models);
    n->own_gpus = n->own_models = NULL;
}

static int shape_of(const char *row, const char *at, struct sh_kv_shape *out, struct sh_err *e)
{
    struct sh_kv_facts f;
    if (sh_kv_facts_row(row, at, &f, e))
        return -1;
    return sh_kv_shape_build(&f, out, e) ? sh_err_prefix(e, "%s", at) : 0;
}

static int unknown(const struct sh_catalog *c, const char *what, const char *name, const char *more, struct sh_err *e)
{
    char *all = sh_catalog_names(c);
    sh_misused(e, "%s \"%.100s\" is not known", what, name);
    sh_hint_near(e, name, strlen(name), all, more);
    free(all);
    return -1;
}

int sh_capacity_model(const struct sh_capacity_names *n, const char *name, struct sh_kv_shape *out, struct sh_err *e)
{
    char at[256];
    struct sh_kv_facts f;
    const char *row = sh_catalog_find(&n->models, name, at);
    if (row)
        return shape_of(row, at, out, e);
    if (access(name, F_OK))
        return unknown(&n->models, "model", name, "shears info models lists them; a folder with "
                       "config.json, such a file or a .gguf file will do, too", e);
    if (sh_capacity_config(name, &f, e))
        return -1;
    if (sh_kv_shape_build(&f, out, e))
        return sh_err_prefix(e, "%s", name);
    if (sh_capacity_stored(name, out, e)) {
        sh_kv_shape_clear(out);
        return -1;
    }
    return 0;
}

int sh_capacity_board(const struct sh_capacity_names *n, const char *name, struct sh_board *out, struct sh_err *e)
{
    char at[256];
    const char *row = sh_catalog_find(&n->gpus, name, at);
    return row ? sh_board_row(row, at, out, e) : unknown(&n->gpus, "GPU", name, "shears info gpus lists them", e);
}

int sh_capacity_model_at(const struct sh_capacity_names *n, int i, struct sh_kv_shape *out, struct sh_err *e)
{
    char at[256];
    const char *row = sh_catalog_row(&n->models, i, at);
    return row ? shape_of(row, at, out, e) : 1;
}

int sh_capacity_board_at(const struct sh_capacity_names *n, int i, struct sh_board *out, struct sh_err *e)
{
    char at[256];
    const char *row = sh_catalog_row(&n->gpus, i, at);
    return row ? sh_board_row(row, at, out, e) : 1;
}

static void remark(struct sh_out *o, const struct sh_catalog *c, int i)
{
    char at[256], text[600];
    const char *row = sh_catalog_row(c, i, at);
    sh_catalog_remark(row, 1, text, sizeof text);
    sh_out_text(o, "status", "status", text);
    sh_catalog_remark(row, 2, text, sizeof text);
    sh_out_text(o, "source", "source", text);
}

static double positive(double x)
{
    return x > 0 ? x : NAN;             /* shown as unknown */
}

int sh_capacity_list_gpus(const struct sh_common *common, struct sh_err *e)
{
    struct sh_capacity_names n;
    struct sh_board b;
    int bad = sh_capacity_names_open(&n, NULL, NULL, e), end = 0;
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "gpus", "boards; memory as sold, as the driver reports it and as programs see it");
    for (int i = 0; !bad && !(end = sh_capacity_board_at(&n, i, &b, e)); i++) {
        sh_out_item(o);
        sh_out_text(o, "gpu", "GPU", b.name);
        sh_out_real(o, "sold_gb", "sold GB", b.gb, 0);
        sh_out_real(o, "driver_mib", "driver MiB", positive(b.mib), 0);
        sh_out_real(o, "visible_gib", "visible GiB", positive(b.visible), 2);
        sh_out_int(o, "memory_bytes", "bytes a device", (long long)sh_board_bytes(&b));
        sh_out_int(o, "devices", "devices", b.dies);
        sh_out_real(o, "bandwidth_gb_per_s", "GB/s", b.gbps, 0);
        sh_out_real(o, "f16_tflops", "f16 TFLOP/s", b.f16, 0);
        sh_out_real(o, "f8_tflops", "f8 TFLOP/s", positive(b.f8), 0);
        sh_out_real(o, "link_gb_per_s", "link GB/s", positive(b.link), 0);
        sh_out_real(o, "watts", "W", positive(b.watts), 0);
        remark(o, &n.gpus, i);
    }
    sh_out_end(o);
    bad = bad || end < 0 || sh_common_write(common, o, e);
    sh_out_free(o);
    sh_capacity_names_close(&n);
    return bad ? -1 : 0;
}

static int list_model(struct sh_out *o, const struct sh_kv_shape *s, struct sh_err *e)
{
    struct sh_weight_types t;
    if (sh_weight_types_published(&s->f, &t, e))
        return -1;
    struct sh_kv_parts p = sh_kv_weights_all(s, &t);
    int local = sh_kv_shape_count(s, SH_MIX_WINDOW) + sh_kv_shape_count(s, SH_MIX_CHUNK);
    sh_out_item(o);
    sh_out_text(o, "model", "model", s->f.name);
    sh_out_text(o, "family", "family", s->f.family);
    sh_out_int(o, "parameters", "parameters", (long long)sh_kv_parts_sum(p.parameters));
    sh_out_text(o, "weights", "published as", s->f.published_experts[0] ? s->f.published_experts : t.matrices.name);
    sh_out_int(o, "weights_bytes", "weights, bytes", (long long)sh_kv_parts_sum(p.bytes));
    sh_out_int(o, "layers", "layers", s->f.layers);
    sh_out_int(o, "heads", "heads", s->f.heads);
    sh_out_int(o, "kv_heads", "KV heads", s->f.kv_heads);
    sh_out_int(o, "head_dim", "head width", s->f.head_dim);
    sh_out_int(o, "hidden_size", "width", s->f.hidden);
    sh_out_int(o, "local_layers", "local layers", local);
    sh_out_int(o, "state_layers", "state layers", sh_kv_shape_count(s, SH_MIX_STATE));
    sh_out_int(o, "latent", "latent", s->f.latent);
    sh_out_int(o, "experts", "experts", s->f.experts);
    sh_out_int(o, "max_positions", "positions", s->f.max_pos);
    return 0;
}

int sh_capacity_list_models(const struct sh_common *common, struct sh_err *e)
{
    struct sh_capacity_names n;
    int bad = sh_capacity_names_open(&n, NULL, NULL, e), end = 0;
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "models", "models whose capacity is known by name");
    for (int i = 0; !bad && !end; i++) {
        struct sh_kv_shape s = {.layer = NULL};
        end = sh_capacity_model_at(&n, i, &s, e);
        if (end)
            break;
        bad = list_model(o, &s, e);
        remark(o, &n.models, i);
        sh_kv_shape_clear(&s);
    }
    sh_out_end(o);
    bad = bad || end < 0 || sh_common_write(common, o, e);
    sh_out_free(o);
    sh_capacity_names_close(&n);
    return bad ? -1 : 0;
}
