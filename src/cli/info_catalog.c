/* SPDX-License-Identifier: Apache-2.0 */
/* See info.h. */
#include "src/cli/info.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/capacity/kv_weights.h"
#include "src/app/capacity/capacity_names.h"

static void remark(struct sh_out *o, const struct sh_catalog *c, int i)
{
    char at[256], text[600];
    const char *row = sh_catalog_row(c, i, at);
    sh_catalog_remark(row, 1, text, sizeof text);
    sh_out_text(o, "status", "status", text);
    sh_out_detail(o);
    sh_catalog_remark(row, 2, text, sizeof text);
    sh_out_text(o, "source", "source", text);
    sh_out_detail(o);
}

static double positive(double x)
{
    return x > 0 ? x : NAN;             /* shown as unknown */
}

int sh_info_gpus(const struct sh_common *common, struct sh_err *e)
{
    struct sh_capacity_names n;
    struct sh_gpu b;
    int bad = sh_capacity_names_open(&n, NULL, NULL, e), end = 0;
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "gpus", "GPUs; memory as sold and as visible to programs");
    for (int i = 0; !bad && !(end = sh_capacity_board(&n, NULL, i, &b, e)); i++) {
        sh_out_item(o);
        sh_out_text(o, "gpu", "GPU", b.name);
        sh_out_real(o, "sold_gb", "sold GB", b.gb, 0);
        sh_out_real(o, "driver_mib", "driver MiB", positive(b.mib), 0);
        sh_out_detail(o);
        sh_out_real(o, "visible_gib", "visible GiB", positive(b.visible), 2);
        sh_out_int(o, "memory_bytes", "bytes per device", (long long)sh_gpu_bytes(&b));
        sh_out_detail(o);
        sh_out_int(o, "devices", "devices", b.dies);
        sh_out_real(o, "bandwidth_gb_per_s", "GB/s", b.gbps, 0);
        sh_out_real(o, "f16_tflops", "f16 TFLOP/s", b.f16, 0);
        sh_out_real(o, "f8_tflops", "f8 TFLOP/s", positive(b.f8), 0);
        sh_out_real(o, "link_gb_per_s", "link GB/s", positive(b.link), 0);
        sh_out_real(o, "watts", "W", positive(b.watts), 0);
        remark(o, &n.gpus, i);
    }
    sh_out_end(o);
    bad = sh_common_write(common, o, bad || end < 0, e);
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
    sh_out_detail(o);
    sh_out_int(o, "parameters", "parameters", (long long)sh_kv_parts_sum(p.parameters));
    const char *weights = s->f.published_experts[0] ? s->f.published_experts : t.matrices.name;
    char format[32];
    snprintf(format, sizeof format, "%.*s", (int)strcspn(weights, ":"), weights);
    sh_out_text(o, "weights", "published as", weights);
    sh_out_shown(o, format);
    sh_out_int(o, "weights_bytes", "weights, bytes", (long long)sh_kv_parts_sum(p.bytes));
    sh_out_detail(o);
    sh_out_int(o, "layers", "layers", s->f.layers);
    sh_out_int(o, "heads", "heads", s->f.heads);
    sh_out_int(o, "kv_heads", "KV heads", s->f.kv_heads);
    sh_out_int(o, "head_dim", "head width", s->f.head_dim);
    sh_out_detail(o);
    sh_out_int(o, "hidden_size", "width", s->f.hidden);
    sh_out_detail(o);
    sh_out_int(o, "local_layers", "local layers", local);
    sh_out_int(o, "state_layers", "state layers", sh_kv_shape_states(s));
    sh_out_detail(o);
    sh_out_int(o, "latent", "latent", s->f.latent);
    sh_out_detail(o);
    sh_out_int(o, "experts", "experts", s->f.experts);
    sh_out_int(o, "max_positions", "positions", s->f.max_pos);
    return 0;
}

int sh_info_models(const struct sh_common *common, struct sh_err *e)
{
    struct sh_capacity_names n;
    int bad = sh_capacity_names_open(&n, NULL, NULL, e), end = 0;
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "models", "models that shears capacity knows by name");
    for (int i = 0; !bad && !end; i++) {
        struct sh_kv_shape s = {.layer = NULL};
        end = sh_capacity_model(&n, NULL, i, &s, e);
        if (end)
            break;
        bad = list_model(o, &s, e);
        remark(o, &n.models, i);
        sh_kv_shape_clear(&s);
    }
    sh_out_end(o);
    bad = sh_common_write(common, o, bad || end < 0, e);
    sh_capacity_names_close(&n);
    return bad ? -1 : 0;
}
