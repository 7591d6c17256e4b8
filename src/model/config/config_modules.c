/* SPDX-License-Identifier: Apache-2.0 */
/* The number formats of a quantised checkpoint's matrices, for capacity: of each kind of matrix in each layer, by the
 * names that the family's tables give them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/config/config.h"
#include "src/model/config/config_quant.h"
#include "src/model/config/module_rules.h"

enum { NONE = 255, MOST_STEM = 240 };

static const struct { enum sh_role role; enum sh_matrix_kind kind; } kinds[] = {
    {SH_Q_W, SH_MATRIX_Q}, {SH_K_W, SH_MATRIX_K}, {SH_V_W, SH_MATRIX_V}, {SH_O_W, SH_MATRIX_O},
    {SH_ATTN_PRODUCT_W, SH_MATRIX_O}, {SH_ATTN_GATE_W, SH_MATRIX_GATE_OF_VALUES}, {SH_Q_A_W, SH_MATRIX_Q_A},
    {SH_Q_B_W, SH_MATRIX_Q_B}, {SH_KV_A_W, SH_MATRIX_KV_A}, {SH_KV_B_W, SH_MATRIX_KV_B},
    {SH_RECUR_Q_W, SH_MATRIX_STATE}, {SH_RECUR_K_W, SH_MATRIX_STATE}, {SH_RECUR_V_W, SH_MATRIX_STATE},
    {SH_RECUR_X_W, SH_MATRIX_STATE}, {SH_RECUR_Z_W, SH_MATRIX_STATE_GATE}, {SH_RECUR_Z_IN_W, SH_MATRIX_STATE_GATE},
    {SH_RECUR_A_W, SH_MATRIX_STATE_STEPS}, {SH_RECUR_A_IN_W, SH_MATRIX_STATE_STEPS},
    {SH_RECUR_DECAY_W, SH_MATRIX_STATE_STEPS}, {SH_RECUR_INPUT_W, SH_MATRIX_STATE_STRENGTHS},
    {SH_RECUR_MIX_W, SH_MATRIX_STATE_STEPS}, {SH_RECUR_STEP_W, SH_MATRIX_STATE_STEPS},
    {SH_RECUR_B_W, SH_MATRIX_STATE_STRENGTHS}, {SH_RECUR_OUT_W, SH_MATRIX_STATE_OUT}, {SH_GATE_W, SH_MATRIX_GATE},
    {SH_UP_W, SH_MATRIX_UP}, {SH_FEED_PRODUCT_W, SH_MATRIX_UP}, {SH_DOWN_W, SH_MATRIX_DOWN},
    {SH_EXPERT_GATE_W, SH_MATRIX_EXPERT_GATE}, {SH_EXPERT_UP_W, SH_MATRIX_EXPERT_UP},
    {SH_EXPERT_DOWN_W, SH_MATRIX_EXPERT_DOWN}, {SH_SHARED_GATE_W, SH_MATRIX_SHARED_GATE},
    {SH_SHARED_UP_W, SH_MATRIX_SHARED_UP}, {SH_SHARED_DOWN_W, SH_MATRIX_SHARED_DOWN},
    {SH_EXPERT_IN_W, SH_MATRIX_EXPERT_IN}, {SH_EXPERT_OUT_W, SH_MATRIX_EXPERT_OUT}};

/* Kinds that planner/capacity tells apart if not all have one format. */
enum { ATTENTION, FEED, EXPERTS, N_CLASS };

static int class_of(int kind)
{
    return kind < SH_MATRIX_GATE ? ATTENTION : kind >= SH_MATRIX_EXPERT_GATE && kind <= SH_MATRIX_EXPERT_DOWN ? EXPERTS
                                                                                                              : FEED;
}

struct walk {
    struct sh_module_rules *rules;
    const struct sh_family *family;
    const struct sh_arch *arch;
    struct sh_kv_facts *f;
    int n_layer;                        /* one more than the largest number of a layer in a name  */
};

/* The module of a tensor: numbers and the first expert filled in, without ".weight". */
static void name_module(const char *tensor, struct sh_numbers is, char to[MOST_STEM])
{
    size_t n = 0;
    for (const char *c = tensor; *c && n < MOST_STEM - 12; c++)
        if (strchr("#%@", *c))
            n += (size_t)snprintf(to + n, MOST_STEM - n, "%d", *c == '#' ? is.layer : *c == '%' ? is.part : 0);
        else
            to[n++] = *c;
    to[n] = '\0';
    char *end = n > 7 ? to + n - 7 : to;
    if (!strcmp(end, ".weight"))
        *end = '\0';
}

/* Of several names for one matrix, any may be in the lists. to: its format; NULL: it is counted as not quantised, and
 * only looked up because lists may leave it out. */
static void look_up(struct walk *w, const struct sh_param *p, int layer, unsigned char *to)
{
    static const char *const no_prefix[] = {"", NULL};
    struct sh_numbers is = sh_param_numbers(w->family, w->arch, p, layer);
    char name[MOST_STEM];
    name_module(p->name, is, name);
    w->n_layer = is.layer < w->n_layer ? w->n_layer : is.layer + 1;
    int found = sh_module_format(w->rules, name, w->family->prefixes ? w->family->prefixes : no_prefix, 0);
    if (to && (*to == NONE || *to == sh_module_usual(w->rules)))
        *to = (unsigned char)found;
}

static unsigned char *place_of(struct walk *w, enum sh_role role, int layer)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].role == role)
            return &w->f->format[layer][kinds[i].kind];
    return NULL;
}

static void walk_layer(struct walk *w, int layer)
{
    static const struct sh_param queries[] = {
        {.name = "layers.#.self_attn.indexer.wq_b"}, {.name = "layers.#.attention.indexer.wq_b"},
        {.name = "layers.#.self_attn.index_q_proj"}, {.name = "layers.#.self_attn.indexer.q_proj"}, {.name = NULL}};
    static const struct sh_param keys[] = {
        {.name = "layers.#.self_attn.indexer.wk"}, {.name = "layers.#.attention.indexer.wk"},
        {.name = "layers.#.self_attn.index_k_proj"}, {.name = "layers.#.self_attn.indexer.k_proj"}, {.name = NULL}};
    for (const struct sh_param *p = w->family->params; p->name; p++)
        if (p->role >= SH_LAYER_ROLE && sh_param_exists(p, w->arch, layer))
            look_up(w, p, layer, place_of(w, p->role, layer));
    char letter = w->f->pattern[(size_t)layer % strlen(w->f->pattern)];
    for (int i = 0; queries[i].name && (letter == 'I' || letter == 'B'); i++) {
        look_up(w, &queries[i], layer, &w->f->format[layer][SH_MATRIX_INDEX]);
        look_up(w, &keys[i], layer, &w->f->format[layer][SH_MATRIX_INDEX_K]);
    }
    /* A plain block next to experts is counted as a shared expert. */
    unsigned char *plain = &w->f->format[layer][SH_MATRIX_GATE], *shared = &w->f->format[layer][SH_MATRIX_SHARED_GATE];
    for (int i = 0; i < 3; i++)
        shared[i] = shared[i] == NONE ? plain[i] : shared[i];
}

/* The format that all matrices of the class have; -1: they differ, NONE: there are none. */
static int common(const struct sh_kv_facts *f, int class)
{
    int format = NONE;
    for (int i = 0; i < f->layers; i++)
        for (int k = 0; k < SH_N_MATRIX_KIND; k++) {
            int own = class_of(k) == class ? f->format[i][k] : NONE;
            if (own == NONE)
                continue;
            if (format != NONE && format != own)
                return -1;
            format = own;
        }
    return format;
}

static void name_format(const struct walk *w, int format, const char *whole, char to[SH_FORMAT_NAME])
{
    snprintf(to, SH_FORMAT_NAME, "%s", format && format != NONE ? sh_module_format_name(w->rules, format) : whole);
}

/* As few words as say it: one format for all, or one for each class, or those of all matrices. */
static void summarise(const struct walk *w)
{
    struct sh_kv_facts *f = w->f;
    char whole[SH_FORMAT_NAME];
    int each[N_CLASS], differs = f->head_format != 0;
    snprintf(whole, sizeof whole, "%s", f->published);
    for (int i = 0; i < N_CLASS; i++) {
        each[i] = common(f, i);
        differs |= each[i] < 0;
    }
    f->n_format = 0;
    if (differs) {
        f->n_format = sh_module_format_count(w->rules);
        for (int i = 0; i < f->n_format; i++)
            snprintf(f->formats[i], sizeof f->formats[i], "%s", sh_module_format_name(w->rules, i + 1));
        return;
    }
    int rest = each[FEED] != NONE ? each[FEED] : each[ATTENTION];
    name_format(w, rest, whole, f->published);
    if (each[EXPERTS] != NONE && each[EXPERTS] != rest)
        name_format(w, each[EXPERTS], whole, f->published_experts);
    if (each[ATTENTION] != NONE && each[ATTENTION] != rest)
        name_format(w, each[ATTENTION], whole, f->published_attention);
}

int sh_config_module_formats(const struct sh_config *c, const struct sh_family *family, const struct sh_arch *a,
                             const struct sh_quant *q, struct sh_kv_facts *f, struct sh_err *e)
{
    static const char *const no_prefix[] = {"", NULL};
    struct sh_module_rules *rules = sh_module_rules_new(c, q, e);
    struct walk w = {rules, family, a, f, 0};
    if (!rules)
        return -1;
    int differs = sh_module_rules_differ(rules), bad = 0;
    if (!differs || !family->params) {
        name_format(&w, 1, f->published, f->published);
        sh_module_rules_free(rules);
        return 0;
    }
    if (f->layers >= SH_FACTS_PATTERN)
        bad = sh_config_refuse(c, "num_hidden_layers", "fewer than 1024 layers if some matrices are not quantised", e);
    for (int i = 0; i < f->layers && !bad; i++) {
        memset(f->format[i], NONE, sizeof f->format[i]);
        walk_layer(&w, i);
    }
    if (!bad) {
        f->head_format = f->tied ? 0 : sh_module_format(rules, "lm_head", no_prefix, 1);
        bad = sh_module_rules_check(rules, w.n_layer, e);
    }
    if (!bad)
        summarise(&w);
    sh_module_rules_free(rules);
    return bad ? -1 : 0;
}
