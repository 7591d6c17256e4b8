/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogues: every row is read, every model's parameters are the published count, names and near names,
 * and rows that say nothing sensible. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/catalog/catalog.h"
#include "planner/capacity/kv_weights.h"
#include "tests/tap.h"

static struct sh_err e;
static const struct sh_catalog gpus = {.built_in = sh_catalog_gpus}, models = {.built_in = sh_catalog_models};

static void parameters(void)
{
    char at[256];
    const char *row;
    int n = 0, wrong = 0;
    for (; (row = sh_catalog_row(&models, n, at)); n++) {
        struct sh_kv_facts f;
        struct sh_kv_shape s;
        struct sh_weight_types t;
        CU_ASSERT_FATAL(!sh_kv_facts_row(row, at, &f, &e) && !sh_kv_shape_build(&f, &s, &e));
        CU_ASSERT_FATAL(!sh_weight_types_published(&f, &t, &e) && f.parameters > 0);
        struct sh_kv_parts p = sh_kv_weights_all(&s, &t);
        uint64_t count = sh_kv_parts_sum(p.parameters);
        if (count != (uint64_t)f.parameters) {
            wrong++;
            printf("# %s: expected %lld, found %llu\n", f.name, f.parameters, (unsigned long long)count);
        }
        sh_kv_shape_clear(&s);
    }
    printf("# %d models\n", n);
    CU_ASSERT(n >= 45 && !wrong);
}

static void boards(void)
{
    char at[256], status[200], source[600];
    const char *row;
    struct sh_gpu b;
    int n = 0;
    for (; (row = sh_catalog_row(&gpus, n, at)); n++) {
        CU_ASSERT_FATAL(!sh_gpu_row(row, at, &b, &e));
        sh_catalog_remark(row, 1, status, sizeof status);
        sh_catalog_remark(row, 2, source, sizeof source);
        CU_ASSERT(*status && *source && sh_gpu_bytes(&b) > 0);
        CU_ASSERT(b.mib <= 0 || b.visible <= 0 || b.visible * 1024 < b.mib);
    }
    CU_ASSERT(n >= 25);
    CU_ASSERT_FATAL((row = sh_catalog_find(&gpus, "h100-sxm", at)) && !sh_gpu_row(row, at, &b, &e));
    CU_ASSERT(sh_gpu_bytes(&b) == (uint64_t)81559 << 20);
    CU_ASSERT_FATAL((row = sh_catalog_find(&gpus, "MI250X", at)) && !sh_gpu_row(row, at, &b, &e));
    CU_ASSERT(sh_gpu_bytes(&b) == 64000000000u);      /* one of two dies, the seller's GB */
}

static void names(void)
{
    const char *own[] = {"# mine", "", "opt-125m layers=1 hidden=8 heads=1 ffn=8 vocab=9", "mine layers=2", NULL};
    const struct sh_catalog both = {sh_catalog_models, own, "own.txt"};
    char at[256];
    CU_ASSERT_PTR_NULL(sh_catalog_find(&models, "mine", at));
    CU_ASSERT(sh_catalog_find(&both, "OPT-125M", at) == own[2] && !strcmp(at, "own.txt: line 3"));
    CU_ASSERT(sh_catalog_row(&both, 0, at) == own[2] && sh_catalog_row(&both, 1, at) == own[3]);
    int n = 0, seen = 0;
    for (const char *row; (row = sh_catalog_row(&both, n, at)); n++)
        seen += !strncmp(row, "opt-125m ", 9);
    CU_ASSERT(seen == 1);               /* the built-in row of that name is hidden */
    char *all = sh_catalog_names(&both);
    CU_ASSERT(!strncmp(all, "opt-125m\nmine\n", 14) && strstr(all, "\nllama-3.1-8b\n"));
    free(all);
}

static void bad_rows(void)
{
    static const struct { const char *row, *says; } rows[] = {
        {"", "name"}, {"layers=3", "name"}, {"m layers=x", "layers: found \"x\""}, {"m layers=0", "layers"},
        {"m layers=99999999999999999999", "layers"}, {"m rows=3", "unknown key \"rows\""}, {"m gated=1", "gated"},
        {"m norm=odd", "norm"}, {"m pattern=", "pattern"}, {"m parameters=-4", "parameters"}};
    static const struct { const char *row, *says; } shapes[] = {
        {"m", "layers is missing"}, {"m layers=2 hidden=8 heads=2 vocab=9", "ffn is missing"},
        {"m layers=2 hidden=9 heads=2 ffn=4 vocab=9", "multiple of heads"},
        {"m layers=2 hidden=8 heads=4 kv_heads=3 ffn=4 vocab=9", "divisor of heads"},
        {"m layers=2 hidden=8 heads=2 ffn=4 vocab=9 pattern=GX", "found 'X'"},
        {"m layers=2 hidden=8 heads=2 ffn=4 vocab=9 pattern=L", "window is missing"},
        {"m layers=2 hidden=8 heads=2 ffn=4 vocab=9 pattern=S", "ssm is missing"},
        {"m layers=2 hidden=8 heads=2 vocab=9 experts=4 used=5 expert_ffn=3", "used is 5"},
        {"m layers=2 hidden=8 heads=2 vocab=9 experts=4 used=2", "expert_ffn is missing"},
        {"m layers=10000 hidden=10000 heads=10000 head_dim=10000 ffn=100000000 vocab=9", "cached numbers"},
        {"m layers=1 hidden=1 heads=100000 head_dim=100000 ffn=1 vocab=9", "heads of head_dim would be 1e+10 wide"},
        {"m layers=1 hidden=1 heads=1 ffn=1 vocab=9 pattern=S ssm=2 ssm_conv=2 ssm_state=100000 ssm_groups=100000 "
         "ssm_heads=1 ssm_head_dim=1", "ssm_groups of ssm_state"},
        {"m layers=10000 hidden=10000000 heads=1 head_dim=1 ffn=100000000 vocab=9", "parameters"},
        {"m layers=10000 hidden=1 heads=1 ffn=1 vocab=9 layer_more=1000000000000000", "parameters"},
        {"m layers=2000 hidden=1 heads=1000 head_dim=100000 kv_heads=1 o_rank=1000000 o_groups=1 q_latent=1000000 "
         "ffn=1 vocab=9", "parameters"},
        {"m layers=2 hidden=8 heads=2 kv_heads=1 o_rank=1 o_groups=1 q_latent=1 ffn=1 vocab=9 window=4 pattern=P "
         "pool=1000000 index_dim=100000 index_heads=1", "pool of index_dim would be 2e+11 wide"},
        {"m layers=2 hidden=10000000 heads=1 o_rank=1 o_groups=1 q_latent=1 ffn=1 vocab=9 window=4 pattern=Q "
         "wide_pool=1000000", "pool of head_dim would be 2e+13 wide"}};
    static const char *const boards_wrong[] = {"", "gb=3", "b", "b gb=80 gbps=1", "b gb=-1 gbps=1 f16=1",
                                               "b gb=1 gbps=nan f16=1",
                                               "b gb=1 gbps=1 f16=1 dies=0", "b gb=1 gbps=1 f16=1 x=2"};
    struct sh_kv_facts f;
    struct sh_kv_shape s;
    struct sh_gpu b;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CU_ASSERT(sh_kv_facts_row(rows[i].row, "here", &f, &e) == -1 && strstr(e.text, "here") &&
                  strstr(e.text, rows[i].says));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int read = sh_kv_facts_row(shapes[i].row, "here", &f, &e);
        CU_ASSERT(!read && sh_kv_shape_build(&f, &s, &e) == -1 && strstr(e.text, shapes[i].says));
    }
    for (size_t i = 0; i < sizeof boards_wrong / sizeof *boards_wrong; i++)
        CU_ASSERT(sh_gpu_row(boards_wrong[i], "here", &b, &e) == -1 && strstr(e.text, "here"));
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"parameters of every model are the published count", parameters},
        {"every board has memory, a status and a source", boards},
        {"names, near names, a user's rows in front", names},
        {"rows that make no sense", bad_rows},
        {NULL, NULL}};
    return tap_run("catalog", tests);
}
