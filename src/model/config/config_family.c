/* SPDX-License-Identifier: Apache-2.0 */
/* Reads config.json (config.h) by the families' tables: finds the family, and takes the values of its keys. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/config/config.h"
#include "src/model/config/config_quant.h"
#include "src/model/families/families.h"

enum { MOST_ARCHITECTURES = 64 };

static const struct sh_word acts[] = {
    {"relu", SH_ACT_RELU}, {"gelu", SH_ACT_GELU}, {"gelu_python", SH_ACT_GELU}, {"gelu_new", SH_ACT_GELU_TANH},
    {"gelu_fast", SH_ACT_GELU_TANH}, {"gelu_pytorch_tanh", SH_ACT_GELU_TANH}, {"gelu_accurate", SH_ACT_GELU_TANH},
    {"silu", SH_ACT_SILU}, {"swish", SH_ACT_SILU}, {"linear", SH_ACT_NONE}, {"relu2", SH_ACT_RELU2},
    {"xielu", SH_ACT_XIELU}, {NULL, 0}};

static const struct sh_word types[] = {
    {"float32", SH_F32}, {"float16", SH_F16}, {"bfloat16", SH_BF16}, {"torch.float32", SH_F32},
    {"torch.float16", SH_F16}, {"torch.bfloat16", SH_BF16}, {NULL, 0}};

#define FAMILY_ADDRESS(name) &sh_family_##name,
const struct sh_family *const sh_families[] = {SH_FAMILIES(FAMILY_ADDRESS) NULL};
#undef FAMILY_ADDRESS

/* What means the same in every family, under all names that it has. The first NEEDED ones must be there. */
enum { NEEDED = 4 };
static const struct sh_key common[] = {
    SH_COUNT_KEY(n_layer, 1e4, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    SH_COUNT_KEY(d_model, 1e7, "hidden_size", "n_embd", "d_model", "n_embed"),
    SH_COUNT_KEY(n_head, 1e5, "num_attention_heads", "n_head", "n_heads", "num_heads"),
    SH_COUNT_KEY(n_vocab, 1e8, "vocab_size"),
    SH_COUNT_KEY(d_ff, 1e8, "intermediate_size", "ffn_dim", "n_inner"),
    SH_COUNT_KEY(max_pos, 1e8, "max_position_embeddings", "n_positions", "max_seq_len"),
    SH_COUNT_KEY(n_kv_head, 1e5, "num_key_value_heads"),
    SH_COUNT_KEY(d_head, 1e5, "head_dim"),
    SH_REAL_KEY(init_std, 100, "initializer_range", "init_std"),
    SH_FLAG_KEY(SH_HAS_BIAS | SH_HAS_OUT_BIAS, "attention_bias"),
    SH_FLAG_KEY(SH_HAS_MLP_BIAS, "mlp_bias"),
    SH_FLAG_KEY(SH_TIED_HEAD, "tie_word_embeddings"),
    SH_TYPE_KEY("dtype", "torch_dtype"),
    {.json = {NULL}}};

/* ---- keys ---- */

static int read_choice(const struct sh_config *c, const char *key, const struct sh_word *words, void *field,
                       struct sh_err *e)
{
    int choice = *(int *)field;         /* of an enum, which is as wide                               */
    int bad = sh_config_choice(c, key, words, &choice, e);
    *(int *)field = choice;
    return bad;
}

static int read_flag(const struct sh_config *c, const char *key, unsigned flag, unsigned *flags, struct sh_err *e)
{
    int is = -1;
    if (sh_config_flag(c, key, &is, e))
        return -1;
    if (is >= 0)
        *flags = is ? *flags | flag : *flags & ~flag;
    return 0;
}

/* A list counts as its value where all layers have the same. */
static int read_count(const struct sh_config *c, const struct sh_key *k, const char *key, int *out, struct sh_err *e)
{
    int n = sh_config_length(c, key);
    if (n <= 0)
        return sh_config_count(c, key, (int)k->max, out, e);
    for (int i = 0; i < n; i++) {
        char at[96];
        int one = -1;
        snprintf(at, sizeof at, "%s.%d", key, i);
        if (sh_config_count(c, at, (int)k->max, &one, e))
            return -1;
        if (one < 0)
            return sh_config_refuse(c, at, "a whole number for each layer", e);
        if (i && one != *out)
            return sh_config_refuse(c, key, "one value for all layers", e);
        *out = one;
    }
    return 0;
}

static int read_key(const struct sh_config *c, const struct sh_key *k, struct sh_arch *a, struct sh_err *e)
{
    void *field = (char *)a + k->field;
    const char *key = sh_config_first(c, k->json, SH_MOST_NAMES);
    switch (k->kind) {
    case SH_KEY_COUNT: return read_count(c, k, key, field, e);
    case SH_KEY_REAL: return sh_config_real(c, key, k->max, field, e);
    case SH_KEY_FLAG: return read_flag(c, key, k->flag, &a->flags, e);
    case SH_KEY_ACT: return read_choice(c, key, acts, field, e);
    case SH_KEY_TYPE: return read_choice(c, key, types, field, e);
    }
    return 0;
}

static int known(const char *const *list, const char *word)
{
    for (; list && *list; list++)
        if (!strcmp(*list, word))
            return 1;
    return 0;
}

/* Those of the table but the family's `unread` ones. */
static int read_keys(const struct sh_config *c, const struct sh_key *k, const char *const *unread, int for_memory,
                     struct sh_arch *a, struct sh_err *e)
{
    for (; k && k->json[0]; k++)
        if (!(for_memory && (k->kind == SH_KEY_REAL || k->kind == SH_KEY_ACT)) && !known(unread, k->json[0]) &&
            read_key(c, k, a, e))
            return -1;
    return 0;
}

static const struct sh_key *find_count(const struct sh_key *k, size_t field)
{
    while (k && k->json[0] && (k->kind != SH_KEY_COUNT || k->field != field))
        k++;
    return k && k->json[0] ? k : NULL;
}

/* The family's own key, which is read last, unless the file has only the usual one. */
static const char *count_key(const struct sh_config *c, const struct sh_family *f, size_t field)
{
    const struct sh_key *own = find_count(f->keys, field), *usual = find_count(common, field);
    const char *name = own ? sh_config_first(c, own->json, SH_MOST_NAMES) : NULL,
               *usual_name = usual ? sh_config_first(c, usual->json, SH_MOST_NAMES) : NULL;
    return !name || (usual_name && !sh_config_is_set(c, name) && sh_config_is_set(c, usual_name)) ? usual_name : name;
}

const char *sh_config_count_name(const struct sh_config *c, const struct sh_family *f, size_t field)
{
    const char *name = count_key(c, f, field);
    return name ? sh_config_key_name(c, name) : NULL;
}

static int check_count(const struct sh_config *c, const struct sh_family *f, size_t field, const struct sh_arch *a,
                       struct sh_err *e)
{
    return *(const int *)((const char *)a + field) ? 0
           : sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), count_key(c, f, field));
}

/* ---- the family ---- */

static void add_names(char *to, size_t bytes, const char *const *list)
{
    for (; list && *list; list++) {
        size_t used = strlen(to);
        snprintf(to + used, bytes - used, " %s", *list);
    }
}

/* Common model types without a cache that a plan could make smaller, and why; also under the names of GGUF files. */
#define RECURRENT "whose state does not grow with the text, so there is no cache to make smaller"
#define ENCODER "an encoder, which reads a whole text at once and keeps no cache, so there is none to make smaller"
#define PAIR "an encoder with a decoder, which shears does not run: the cache of its input does not grow"
static const struct { const char *why; const char *const *types; } unplanned[] = {
    {RECURRENT, SH_WORDS("mamba", "mamba2", "falcon_mamba", "rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm")},
    {ENCODER, SH_WORDS("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "albert", "electra", "deberta",
                       "deberta-v2", "mpnet", "nomic_bert", "nomic-bert", "modernbert", "eurobert", "clip",
                       "clip_text_model", "siglip", "siglip_text_model", "vit")},
    {PAIR, SH_WORDS("t5", "mt5", "umt5", "longt5", "t5gemma", "bart", "mbart", "whisper", "marian", "pegasus",
                    "m2m_100", "blenderbot", "led", "prophetnet")}};

const char *sh_config_unplanned(const char *type, size_t n)
{
    for (size_t i = 0; i < sizeof unplanned / sizeof *unplanned; i++)
        for (const char *const *t = unplanned[i].types; *t; t++)
            if (strlen(*t) == n && !memcmp(*t, type, n))
                return unplanned[i].why;
    return NULL;
}

static int is_unplanned(const struct sh_config *c, const char *type, struct sh_err *e)
{
    const char *why = type ? sh_config_unplanned(type, strlen(type)) : NULL;
    return why && sh_fail(e, "%s: key '%s': found \"%s\", %s; expected %s", sh_config_path(c),
                          sh_config_key_name(c, "model_type"), type, why, SH_PLANNED);
}

/* Say which model types there are: those that run, or all. */
static const struct sh_family *refuse_family(const struct sh_config *c, const char *key, int all, struct sh_err *e)
{
    char expected[1024];
    snprintf(expected, sizeof expected, "one of%s", all ? "" : " these model types:");
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        add_names(expected, sizeof expected, all || (*f)->params ? (*f)->model_types : NULL);
        add_names(expected, sizeof expected, all ? (*f)->counted_types : NULL);
    }
    sh_config_refuse(c, key, expected, e);
    return NULL;
}

/* What a text part is wrapped in counts, not what it would be alone. */
static int names_any(const struct sh_config *c, int n, const struct sh_family *f)
{
    static const char *const anything[] = {NULL};
    if (sh_config_has_text(c) && sh_config_outer_has(c, "architectures", anything))
        return sh_config_outer_has(c, "architectures", f->architectures) || sh_config_is_wrapped(c);
    for (int i = 0; i < n; i++) {
        char key[32];
        const char *name = NULL;
        struct sh_err ignored;
        snprintf(key, sizeof key, "architectures.%d", i);
        if (!sh_config_word(c, key, &name, &ignored) && name && known(f->architectures, name))
            return 1;
    }
    return 0;
}

const struct sh_family *sh_config_family(const struct sh_config *c, struct sh_err *e)
{
    const char *type = NULL;
    int n = sh_config_length(c, "architectures");
    if (sh_config_word(c, "model_type", &type, e))
        return NULL;
    if (n < 0 || n > MOST_ARCHITECTURES) {
        sh_config_refuse(c, "architectures", n < 0 ? "a list of strings" : "a list of at most 64 strings", e);
        return NULL;
    }
    if (!type && (!n || sh_config_has_text(c)))
        return sh_fail_null(e, "%s: key '%smodel_type' is missing", sh_config_path(c),
                            sh_config_has_text(c) ? "text_config." : "");
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        if (type && !known((*f)->model_types, type))
            continue;
        if (!n || (type && !(*f)->params) || names_any(c, n, *f))
            return *f;
        if (type) {
            char *expected = xasprintf("%s (a causal language model)", (*f)->architectures[0]);
            if (sh_config_has_text(c))
                sh_config_outer_refuse(c, "architectures", "a model whose text part runs (see doc/commands.md)", e);
            else
                sh_config_refuse(c, "architectures", expected, e);
            free(expected);
            return NULL;
        }
    }
    return is_unplanned(c, type, e) ? NULL : refuse_family(c, type ? "model_type" : "architectures", 0, e);
}

const struct sh_family *sh_config_counted(const struct sh_config *c, struct sh_err *e)
{
    const char *type = NULL;
    if (sh_config_word(c, "model_type", &type, e))
        return NULL;
    if (!type)
        return sh_fail_null(e, "%s: key 'model_type' is missing", sh_config_path(c));
    for (const struct sh_family *const *f = sh_families; *f; f++)
        if (known((*f)->model_types, type) || known((*f)->counted_types, type))
            return *f;
    if (is_unplanned(c, type, e))
        return NULL;
    refuse_family(c, "model_type", 1, e);
    sh_hint(e, "shears capacity and shears simulate take any model described by a row of a --models FILE");
    return NULL;
}

/* ---- the model ---- */

/* The text part of llava-1.5-7b, for one, says only where it differs from transformers' class. */
static void fill_wrapped(const struct sh_config *c, const struct sh_family *f, struct sh_arch *a)
{
    const struct sh_wrapped_sizes *s = sh_wrapped_sizes;
    while (s->family && strcmp(s->family, f->name))
        s++;
    if (!s->family || !sh_config_is_wrapped(c))
        return;
    a->n_layer = a->n_layer ? a->n_layer : s->n_layer;
    a->d_model = a->d_model ? a->d_model : s->d_model;
    a->n_head = a->n_head ? a->n_head : s->n_head;
    a->n_kv_head = a->n_kv_head ? a->n_kv_head : s->n_kv_head;
    a->d_ff = a->d_ff ? a->d_ff : s->d_ff;
    a->n_vocab = a->n_vocab ? a->n_vocab : s->n_vocab;
}

/* Files that list the kinds of their layers may leave out how many there are. */
static int read_tables(const struct sh_config *c, const struct sh_family *f, int for_memory, struct sh_arch *a,
                       struct sh_err *e)
{
    if (read_keys(c, common, f->unread, for_memory, a, e) || read_keys(c, f->keys, NULL, for_memory, a, e))
        return -1;
    int listed = a->n_layer ? 0 : sh_config_length(c, "layers_block_type");
    if (listed > 0 && listed < SH_FACTS_PATTERN)
        a->n_layer = listed;
    fill_wrapped(c, f, a);
    int tied = (a->flags & SH_TIED_HEAD) != 0;          /* the outer config decides */
    if (sh_config_is_wrapped(c) && sh_config_outer_flag(c, "tie_word_embeddings", &tied, e))
        return -1;
    a->flags = tied ? a->flags | SH_TIED_HEAD : a->flags & ~(unsigned)SH_TIED_HEAD;
    for (int i = 0; i < NEEDED; i++)
        if (check_count(c, f, common[i].field, a, e))
            return -1;
    if (f->shape && f->shape(a, c, e))
        return -1;
    int recurs = 0;
    for (int i = 0; i < a->n_layer; i++)
        recurs |= sh_arch_recurs(a, i);
    if (!recurs)                        /* of files that could have such layers: arch.h               */
        a->recurrent.n_v = 0;
    return 0;
}

int sh_config_shape(const struct sh_config *c, const struct sh_family *f, struct sh_arch *out, struct sh_err *e)
{
    struct sh_arch a = f->start;
    a.max_pos = 0;
    a.type = SH_F16;                    /* nearly all are published so                                */
    if (read_tables(c, f, 1, &a, e))
        return -1;
    *out = a;
    return 0;
}

static int check_mixture(const struct sh_config *c, struct sh_mixture *m, struct sh_err *e)
{
    m->scale = m->scale > 0 ? m->scale : 1;
    if (m->zero && m->used > m->n + m->zero)
        return sh_fail(e, "%s: found %d experts and %d that compute nothing, of which each token uses %d; expected no "
                       "more used than there are", sh_config_path(c), m->n, m->zero, m->used);
    if (m->n && (m->used < 1 || m->used > m->n + m->zero || m->width < 1))
        return sh_fail(e, "%s: found %d experts of width %d, of which each token uses %d; expected at least 1, and no "
                       "more used than there are", sh_config_path(c), m->n, m->width, m->used);
    if (m->groups > 1 && m->used_groups > m->groups)
        return sh_fail(e, "%s: found %d groups of experts, of which %d are used; expected no more used than there are",
                       sh_config_path(c), m->groups, m->used_groups);
    if (m->groups < 2 || m->used_groups == m->groups)
        m->used_groups = 0;
    if (m->used_groups && (m->n % m->groups || m->n / m->groups * m->used_groups < m->used))
        return sh_fail(e, "%s: found %d groups of %d experts, of which %d are used; expected groups of one size with "
                       "at least the %d experts that a token uses", sh_config_path(c), m->groups, m->n, m->used_groups,
                       m->used);
    return 0;
}

static int complete(const struct sh_config *c, const struct sh_family *f, struct sh_arch *a, struct sh_err *e)
{
    const char *heads = sh_config_count_name(c, f, offsetof(struct sh_arch, n_head));
    if (!a->d_head && a->d_model % a->n_head)
        return sh_fail(e, "%s: key '%s': found %d, expected a multiple of '%s', which is %d", sh_config_path(c),
                       sh_config_count_name(c, f, offsetof(struct sh_arch, d_model)), a->d_model, heads, a->n_head);
    a->d_head = a->d_head ? a->d_head : a->d_model / a->n_head;
    a->n_kv_head = a->n_kv_head ? a->n_kv_head : a->n_head;
    if (a->n_head % a->n_kv_head)
        return sh_fail(e, "%s: key '%s': found %d, expected a divisor of '%s', which is %d", sh_config_path(c),
                       sh_config_count_name(c, f, offsetof(struct sh_arch, n_kv_head)), a->n_kv_head, heads, a->n_head);
    if ((size_t)a->n_head * (size_t)a->d_head > SH_WIDEST_HEADS)
        return sh_fail(e, "%s: key '%s': found %d heads of %d, expected a product of at most %zu",
                       sh_config_path(c), heads, a->n_head, a->d_head, SH_WIDEST_HEADS);
    a->d_embed = a->d_embed ? a->d_embed : a->d_model;
    a->scale = a->scale > 0 ? a->scale : 1 / sqrtf((float)a->d_head);
    a->embed_scale = a->embed_scale > 0 ? a->embed_scale : 1;
    a->residual_scale = a->residual_scale > 0 ? a->residual_scale : 1;
    a->logit_scale = a->logit_scale > 0 ? a->logit_scale : 1;
    if (check_mixture(c, &a->mix, e))
        return -1;
    if (!a->n_rot)
        a->n_rot = a->pos == SH_POS_ROTARY ? (int)((float)a->d_head * a->rotary_share) : 0;
    if (a->pos == SH_POS_ROTARY && (a->n_rot < 2 || a->n_rot % 2 || a->n_rot > a->d_head))
        return sh_fail(e, "%s: found %d rotary elements in a head of %d, expected an even number, at least "
                       "2", sh_config_path(c), a->n_rot, a->d_head);
    return 0;
}

int sh_config_check_only(const struct sh_config *c, const char *only, struct sh_err *e)
{
    char key[80];
    const char *value = strchr(only, '=') + 1;
    snprintf(key, sizeof key, "%.*s", (int)(value - only - 1), only);
    return sh_config_is(c, key, value) ? 0 : sh_config_refuse(c, key, value, e);
}

static int check_only(const struct sh_config *c, const struct sh_family *f, struct sh_err *e)
{
    for (const char *const *only = f->only; only && *only; only++)
        if (sh_config_check_only(c, *only, e))
            return -1;
    return 0;
}

/* xIELU has parameters, which only few families have tensors for. */
static int check_act(const struct sh_config *c, const struct sh_family *f, const struct sh_arch *a, struct sh_err *e)
{
    for (const struct sh_param *p = f->params; p->name; p++)
        if (p->role == SH_ACT_AP)
            return 0;
    for (const struct sh_key *k = f->keys; k && k->json[0]; k++)
        if (k->kind == SH_KEY_ACT && *(const int *)((const char *)a + k->field) == SH_ACT_XIELU)
            return sh_config_refuse(c, sh_config_first(c, k->json, SH_MOST_NAMES),
                                    "an activation without parameters of its own", e);
    return 0;
}

int sh_config_arch(const struct sh_config *c, struct sh_arch *out, struct sh_err *e)
{
    const struct sh_family *f = sh_config_family(c, e);
    if (!f)
        return -1;
    if (!f->params)
        return sh_config_refuse(c, "model_type", "a model type that can be run; for this type only the capacity can be "
                                "computed", e);
    struct sh_quant ignored;
    if (sh_config_quant(c, &ignored, e))
        return -1;
    struct sh_arch a = f->start;
    if (check_only(c, f, e) || read_tables(c, f, 0, &a, e) || check_act(c, f, &a, e) ||
        check_count(c, f, offsetof(struct sh_arch, d_ff), &a, e) ||
        check_count(c, f, offsetof(struct sh_arch, max_pos), &a, e) || complete(c, f, &a, e) ||
        (f->finish && f->finish(&a, c, e)))
        return -1;
    if (sh_config_is_gguf(c))
        a.flags &= ~(unsigned)SH_NORM_PLUS_ONE;     /* GGUF files have the weights that multiply */
    *out = a;
    return 0;
}

/* ---- windows: newer files list the layers that have one; older ones have a rule that each family knows ---- */

static const struct sh_word layer_kinds[] = {
    {"full_attention", 0}, {"sliding_attention", 1}, {"global", 0}, {"local", 1}, {NULL, 0}};

int sh_config_layer_types(const struct sh_config *c, const char *list, struct sh_arch *a, struct sh_err *e)
{
    char key[96];
    for (int layer = 0; layer < a->n_layer; layer++) {
        int is_local = -1;
        snprintf(key, sizeof key, "%s.%d", list, layer);
        if (sh_config_choice(c, key, layer_kinds, &is_local, e))
            return -1;
        if (is_local < 0)
            return sh_config_refuse(c, key, "one string for each layer", e);
        if (!is_local)
            sh_arch_see_all(a, layer);
    }
    return 0;
}

int sh_config_window(const struct sh_config *c, int fallback, struct sh_arch *a, struct sh_err *e)
{
    a->window = sh_config_has(c, "sliding_window") ? 0 : fallback;
    return sh_config_count(c, "sliding_window", (int)1e8, &a->window, e);
}

int sh_config_still_layers(const struct sh_config *c, struct sh_arch *a, struct sh_err *e)
{
    int every = 4, listed = sh_config_has(c, "no_rope_layers.0");
    if (sh_config_count(c, "no_rope_layer_interval", (int)1e8, &every, e))
        return -1;
    for (int layer = 0; layer < a->n_layer; layer++) {
        char key[40];
        int rotates = listed ? -1 : (layer + 1) % every != 0;
        snprintf(key, sizeof key, "no_rope_layers.%d", layer);
        if (listed && sh_config_at_least(c, key, 0, 1, &rotates, e))
            return -1;
        if (rotates < 0)
            return sh_config_refuse(c, key, "0 or 1 for each layer", e);
        if (!rotates)
            sh_arch_keep_still(a, layer);
    }
    return 0;
}

void sh_config_still_globals(struct sh_arch *a)
{
    for (int layer = 0; layer < a->n_layer && a->window; layer++)
        if (!sh_arch_window(a, layer))
            sh_arch_keep_still(a, layer);
}

int sh_config_windows(const struct sh_config *c, sh_layer_rule *is_local, int number, struct sh_arch *a,
                      struct sh_err *e)
{
    if (!a->window)
        return 0;
    if (sh_config_has(c, "layer_types.0"))
        return sh_config_layer_types(c, "layer_types", a, e);
    for (int layer = 0; layer < a->n_layer; layer++)
        if (!is_local(layer, number))
            sh_arch_see_all(a, layer);
    return 0;
}
