/* SPDX-License-Identifier: Apache-2.0 */
/* Every family of the table: it has what it needs; its checkpoints under each of its prefixes give the same tensors, a
 * fused tensor of a wrong shape is refused with what it is made of, random models have norms that do nothing. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/families/families.h"
#include "src/model/model.h"
#include "tests/tap.h"
#include "tests/unit/modern.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

struct file {                                           /* a safetensors file                     */
    json_t *header;
    char *at;
    const char *data;
    size_t data_bytes;
};

static int is_golden(const char *format, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, format, name);
    const char *full = tap_golden(path);
    FILE *f = full ? fopen(full, "rb") : NULL;
    if (f)
        fclose(f);
    return f != NULL;
}

static char *read_all(const char *checkpoint, const char *name, size_t *bytes)
{
    char path[200];
    snprintf(path, sizeof path, "checkpoints/%s/%s", checkpoint, name);
    const char *full = tap_golden(path);
    FILE *f = full ? fopen(full, "rb") : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    char *at = xmalloc((size_t)1 << 20);
    *bytes = fread(at, 1, (size_t)1 << 20, f);
    CU_ASSERT_FATAL(*bytes > 8 && *bytes < (size_t)1 << 20);
    fclose(f);
    return at;
}

static struct file read_file(const char *checkpoint)
{
    size_t bytes;
    uint64_t length;
    struct file f = {.at = read_all(checkpoint, "model.safetensors", &bytes)};
    memcpy(&length, f.at, sizeof length);
    CU_ASSERT_FATAL(length < bytes - 8);
    f.header = json_loadb(f.at + 8, (size_t)length, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.header);
    f.data = f.at + 8 + length;
    f.data_bytes = bytes - 8 - (size_t)length;
    return f;
}

static void free_file(struct file *f)
{
    json_decref(f->header);
    free(f->at);
}

/* The file with this header, next to the checkpoint's config, into the scratch folder. */
static void write_copy(const char *checkpoint, const struct file *f, const json_t *header)
{
    size_t bytes;
    char *config = read_all(checkpoint, "config.json", &bytes), *text = json_dumps(header, 0);
    scratch_write("config.json", config, bytes);
    scratch_safetensors("model.safetensors", text, f->data, f->data_bytes);
    free(config);
    free(text);
}

static const char *prefix_of(const struct sh_family *f, const json_t *header)
{
    const struct sh_param *p = f->params;
    char name[200];
    while (p->role != SH_TOK_EMBED)
        p++;
    for (const char *const *prefix = f->prefixes; *prefix; prefix++) {
        snprintf(name, sizeof name, "%s%s", *prefix, p->name);
        if (json_object_get(header, name))
            return *prefix;
    }
    return NULL;
}

/* The header with another prefix. The head's name has none, nor is __metadata__ a tensor's. */
static json_t *renamed(const struct sh_family *f, json_t *header, const char *from, const char *to)
{
    json_t *out = json_object(), *v;
    const char *name, *head = "";
    char changed[300];
    for (const struct sh_param *p = f->params; p->name; p++)
        head = p->form & SH_WHOLE_NAME ? p->name : head;
    json_object_foreach(header, name, v) {
        int keeps = !strcmp(name, head) || !strcmp(name, "__metadata__") || strncmp(name, from, strlen(from)) != 0;
        snprintf(changed, sizeof changed, "%s%s", keeps ? "" : to, keeps ? name : name + strlen(from));
        json_object_set(out, changed, v);
    }
    return out;
}

static void check_same(struct sh_model *a, struct sh_model *b)
{
    int n = 0;
    for (int layer = -1; layer < sh_model_arch(a)->n_layer; layer++)
        for (int role = layer < 0 ? 0 : SH_LAYER_ROLE; role < (layer < 0 ? SH_LAYER_ROLE : SH_N_ROLE); role++) {
            struct sh_tensor s, t;
            CU_ASSERT_FATAL(sh_model_tensor(a, (enum sh_role)role, layer, &s, &e) == 0);
            CU_ASSERT_FATAL(sh_model_tensor(b, (enum sh_role)role, layer, &t, &e) == 0);
            CU_ASSERT_FATAL((s.at != NULL) == (t.at != NULL) && s.rows == t.rows && s.cols == t.cols);
            if (s.at)
                CU_ASSERT(!memcmp(s.at, t.at, (size_t)s.rows * (size_t)s.cols * sh_type_bytes(s.type)));
            n += s.at != NULL;
        }
    CU_ASSERT(n > 10);
}

/* The golden checkpoints that bear their family's name. */
static void prefixes(void)
{
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        if (!(*f)->params || is_modern((*f)->name) || !is_golden("checkpoints/%s/ref.json", (*f)->name))
            continue;                   /* `complete` says whose is missing */
        struct file file = read_file((*f)->name);
        const char *own = prefix_of(*f, file.header);
        char folder[200];
        CU_ASSERT_PTR_NOT_NULL_FATAL(own);
        snprintf(folder, sizeof folder, "checkpoints/%s", (*f)->name);
        struct sh_model *m = sh_model_open(tap_golden(folder), &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(m);
        for (const char *const *prefix = (*f)->prefixes; *prefix; prefix++) {
            json_t *header = renamed(*f, file.header, own, *prefix);
            write_copy((*f)->name, &file, header);
            struct sh_model *other = sh_model_open(scratch_folder(), &e);
            if (!other)
                printf("# %s\n", e.text);
            CU_ASSERT_PTR_NOT_NULL_FATAL(other);
            check_same(m, other);
            sh_model_close(other);
            json_decref(header);
        }
        sh_model_close(m);
        free_file(&file);
    }
    scratch_clear();
}

/* [rows, cols] said the other way round has as many bytes. */
static void shapes(void)
{
    static const struct { const char *checkpoint, *tensor, *says; } fused[] = {
        {"gpt2", "h.0.attn.c_attn.weight",
         "found shape [96, 32], expected [32, 96] (n_embd, query heads x head width + "},
        {"gpt_neox", "gpt_neox.layers.0.attention.query_key_value.weight",
         "found shape [64, 192], expected [192, 64] ("},
        {"gpt2", "wpe.weight", "(n_positions, n_embd)"},
        {"phi3", "model.layers.0.self_attn.qkv_proj.weight", "+ KV heads x head width + KV heads x head width, hidden"},
        {"phi3", "model.layers.0.mlp.gate_up_proj.weight",
         "found shape [32, 128], expected [128, 32] (intermediate_size + intermediate_size, hidden_size)"}};
    for (size_t i = 0; i < sizeof fused / sizeof *fused; i++) {
        struct file file = read_file(fused[i].checkpoint);
        json_t *shape = json_object_get(json_object_get(file.header, fused[i].tensor), "shape");
        CU_ASSERT_FATAL(json_array_size(shape) == 2);
        json_int_t rows = json_integer_value(json_array_get(shape, 0));
        json_array_set(shape, 0, json_array_get(shape, 1));
        json_array_set_new(shape, 1, json_integer(rows));
        write_copy(fused[i].checkpoint, &file, file.header);
        CU_ASSERT(sh_model_open(scratch_folder(), &e) == NULL);
        CU_ASSERT(tap_says(e.text, fused[i].says));
        free_file(&file);
    }
    scratch_clear();
}

/* GPT-2 calls its positions otherwise than most. */
static void own_key(void)
{
    size_t bytes;
    char *text = read_all("gpt2", "config.json", &bytes), *less;
    json_t *config = json_loadb(text, bytes, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    json_object_del(config, "n_positions");
    json_object_del(config, "n_ctx");
    less = json_dumps(config, 0);
    scratch_write("config.json", less, strlen(less));
    CU_ASSERT(sh_model_open_random(scratch_folder(), 1, &e) == NULL);
    if (!strstr(e.text, "key 'n_positions' is missing"))
        printf("# found \"%s\"\n", e.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "key 'n_positions' is missing"));
    json_decref(config);
    free(less);
    free(text);
    scratch_clear();
}

/* Norms of a fresh model neither scale nor shift; matrices differ from layer to layer. */
static void random_models(void)
{
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        char folder[200];
        struct sh_tensor t, u;
        snprintf(folder, sizeof folder, "checkpoints/%s", (*f)->name);
        if (!(*f)->params || !tap_golden(folder))       /* complete() reports it */
            continue;
        struct sh_model *m = sh_model_open_random(tap_golden(folder), 3, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(m);
        float one = sh_model_arch(m)->flags & SH_NORM_PLUS_ONE ? 0.0f : 1.0f;
        for (int role = 0; role < SH_N_ROLE; role++) {
            CU_ASSERT_FATAL(sh_model_tensor(m, (enum sh_role)role, 0, &t, &e) == 0);
            for (int i = 0; t.at && sh_role_is_norm((enum sh_role)role) && i < t.cols; i++)
                CU_ASSERT(((const float *)t.at)[i] == one);
        }
        CU_ASSERT_FATAL(sh_model_tensor(m, SH_V_W, 0, &t, &e) == 0 && sh_model_tensor(m, SH_V_W, 1, &u, &e) == 0);
        CU_ASSERT(memcmp(t.at, u.at, 64) != 0);
        sh_model_close(m);
    }
}

/* ---- what a family needs ---- */

static int is_counted(const struct sh_family *f, const json_t *entries)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(entries, i, entry) {
        const json_t *config = json_object_get(entry, "config"), *text = json_object_get(config, "text_config");
        const char *type = json_string_value(json_object_get(text ? text : config, "model_type"));
        for (const char *const *t = f->model_types; type && *t; t++)
            if (!strcmp(*t, type))
                return 1;
    }
    return 0;
}

/* llama.cpp has no architecture for them, or their names in it are not known here. */
static int has_no_gguf(const char *name)
{
    return is_modern(name) || !strcmp(name, "opt") || !strcmp(name, "gpt_neo");
}

static int lacks(const struct sh_family *f, int is_there, const char *what)
{
    if (!is_there)
        printf("# family %s lacks %s\n", f->name, what);
    return !is_there;
}

static int is_incomplete(const struct sh_family *f, const json_t *entries)
{
    int n = lacks(f, is_modern(f->name) || is_counted(f, entries),
                  "an entry in tests/golden/capacity_configs.json, which tests/oracle/capacity_configs.py makes");
    if (!f->params)
        return n;
    n += lacks(f, f->architectures && f->prefixes && f->keys, "architectures, prefixes or keys");
    n += lacks(f, f->start.pos != SH_POS_ROTARY || f->finish,
               "a function finish, which reads how rotary positions are scaled: sh_config_whole_rope, or "
               "sh_config_classic_rope where a part of each head turns");
    n += lacks(f, is_modern(f->name) || is_golden("checkpoints/%s/ref.json", f->name),
               "a checkpoint: of its name in tests/golden/checkpoints (tests/oracle/families.py), or one that "
               "tests/unit/modern.h lists (tests/oracle/families_plain.py for types that transformers does not know)");
    n += lacks(f, f->gguf || has_no_gguf(f->name),
               "a GGUF form, or its name in has_no_gguf of tests/unit/test_family_names.c");
    int elsewhere = is_modern(f->name);     /* tests/cli/gguf_modern.sh */
    return n + lacks(f, !f->gguf || elsewhere || is_golden("gguf/%s.gguf", f->gguf->arch),
                     "a file of its architecture in tests/golden/gguf");
}

static void complete(void)
{
    const char *path = tap_golden("capacity_configs.json");
    json_t *entries = path ? json_load_file(path, 0, NULL) : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(entries);
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        CU_ASSERT(!is_incomplete(*f, entries));
        for (const struct sh_family *const *g = f + 1; *g; g++)
            for (const char *const *t = (*f)->model_types; *t; t++)
                for (const char *const *u = (*g)->model_types; *u; u++)
                    CU_ASSERT(strcmp(*t, *u) != 0);
    }
    json_decref(entries);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"each family has an oracle, a capacity row and a GGUF name", complete},
        {"each family's prefixes name the same tensors", prefixes},
        {"a fused tensor of a wrong shape is refused with its parts", shapes},
        {"a missing key is named as the family calls it", own_key},
        {"random models of every family begin as training does", random_models},
        {0}};
    return tap_run("family_names", tests);
}
