/* SPDX-License-Identifier: Apache-2.0 */
/* The list `ignore` of compressed-tensors and modelopt, or `exclude_modules` of modelopt's own file: names, expressions
 * after "re:", or patterns with '*'. It is read for the capacity if it leaves out whole kinds of matrices in every
 * layer. Their spelling is not standardised, so this file lists the spellings in use. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/config.h"
#include "src/model/config_quant.h"

enum { ATTENTION = 1, FEED = 2, SHARED = 4, EXPERTS = 8, ALL = 15 };

/* What a name within a layer covers; 0: a router, which is never quantised; -1: not known. */
static int kind_of(const char *name)
{
    static const struct { const char *name; int kind; } kinds[] = {
        {"", ALL}, {"self_attn", ATTENTION}, {"linear_attn", ATTENTION}, {"mlp", FEED | SHARED},
        {"mlp.shared_expert", SHARED}, {"mlp.shared_experts", SHARED}, {"mlp.shared_expert_gate", 0}, {"mlp.gate", 0},
        {"router", 0}, {"mlp.router", 0}, {"block_sparse_moe.gate", 0}};
    size_t n = strcspn(name, "*");
    while (n && name[n - 1] == '.')
        n--;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == n && !strncmp(kinds[i].name, name, n))
            return kinds[i].kind;
    return -1;
}

/* The kinds that a name covers, *layer: in this layer, -1: in all; -1: not known. */
static int read_name(const char *name, int *layer, int *is_head)
{
    static const struct { const char *name; int kind; } every[] = {
        {"re:.*self_attn.*", ATTENTION}, {"*self_attn*", ATTENTION}, {"re:.*shared_experts.*", SHARED},
        {"*.mlp.shared_expert.*", SHARED}, {"re:.*mlp\\.(gate|up|gate_up|down)_proj.*", FEED}};
    static const char *const ends[] = {"embed_tokens", ".gate", "router", "router*"};
    size_t n = strlen(name);
    *layer = -1;
    *is_head = strstr(name, "lm_head") != NULL;
    static const char *const towers[] = {"vision", "visual", "mm_projector", "multi_modal_projector", "connector",
                                         "audio_tower"};
    for (size_t i = 0; i < sizeof towers / sizeof *towers; i++)
        if (strstr(name, towers[i]))
            return 0;
    if (*is_head || !strncmp(name, "mtp", 3))
        return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n >= strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i]))
            return 0;
    for (size_t i = 0; i < sizeof every / sizeof *every; i++)
        if (!strcmp(name, every[i].name))
            return every[i].kind;
    const char *at = strstr(name, "layers.");
    if (!at || !isdigit((unsigned char)at[7]))
        return -1;
    char *end;
    long number = strtol(at + 7, &end, 10);
    *layer = number < 100000 ? (int)number : 100000;
    return kind_of(*end == '.' ? end + 1 : *end == '*' && !end[1] ? "" : "?");
}

/* Is the feed-forward block of the layer a plain one? */
static int is_dense(const struct sh_kv_facts *f, int layer)
{
    return !f->experts || layer < f->dense_first;
}

/* 1: in all layers that have the kind; 0: in none; -1: the layers differ. */
static int everywhere(const unsigned char *whole, const struct sh_kv_facts *f, int kind)
{
    int n = 0, marked = 0;
    for (int i = 0; i < f->layers; i++) {
        if ((kind == FEED && !is_dense(f, i)) || (kind == SHARED && (is_dense(f, i) || !f->shared_ffn)) ||
            (kind == EXPERTS && is_dense(f, i)))
            continue;
        n++;
        marked += (whole[i] & kind) != 0;
    }
    return !marked ? 0 : marked == n ? 1 : -1;
}

static int judge(const struct sh_config *c, const struct sh_kv_facts *f, const unsigned char *whole, const char *last,
                 struct sh_left_whole *out, struct sh_err *e)
{
    int mix = everywhere(whole, f, ATTENTION), feed = everywhere(whole, f, FEED), shared = everywhere(whole, f, SHARED);
    int has_feed = !f->experts || f->dense_first, has_shared = f->experts && f->shared_ffn;
    int differ = has_feed && has_shared && feed != shared;
    if (mix < 0 || feed < 0 || shared < 0 || differ || everywhere(whole, f, EXPERTS))
        return sh_config_refuse(c, last, "the same kinds of matrices in every layer, and no experts", e);
    /* Without a plain block and a shared expert nothing is left to tell from attention. */
    *out = (struct sh_left_whole){mix, has_feed ? feed : has_shared ? shared : mix};
    return 0;
}

int sh_config_left_whole(const struct sh_config *c, const char *list, const struct sh_kv_facts *f,
                         struct sh_left_whole *out, struct sh_err *e)
{
    unsigned char *whole = xcalloc((size_t)f->layers, 1);
    char key[64], last[64];
    int n = sh_config_length(c, list), has_head = 0, bad = 0;
    snprintf(last, sizeof last, "%s", list);
    for (int i = 0; i < n && !bad; i++) {
        const char *name = NULL;
        int layer = -1, is_head = 0;
        snprintf(key, sizeof key, "%s.%d", list, i);
        bad = sh_config_word(c, key, &name, e);
        int kind = name ? read_name(name, &layer, &is_head) : 0;
        if (!bad && kind < 0)
            bad = sh_config_refuse(c, key, "lm_head, routers, vision towers, or kinds of matrices in layers", e);
        if (bad || !name)
            continue;
        has_head |= is_head;
        for (int k = layer < 0 ? 0 : layer; k < f->layers && (layer < 0 || k == layer); k++)
            whole[k] |= (unsigned char)kind;
        if (kind)
            memcpy(last, key, sizeof last);
    }
    if (!bad && !has_head)
        bad = sh_config_refuse(c, list, "a list with lm_head", e);
    bad = bad || judge(c, f, whole, last, out, e);
    free(whole);
    return bad ? -1 : 0;
}
