/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that would change what a model computes (gguf_maker.h). Of those of its architecture the ones about
 * attention, rotation, experts and scales must be known; others (a chat template, how pictures are cut) do not
 * touch the layers. */
#include <stdio.h>
#include <string.h>

#include "src/model/files/gguf_maker.h"

/* Read by gguf_config.c and its parts. */
static const char *const read_keys[] = {
    "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
    "attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon", "attention.scale",
    "attention.sliding_window", "attention.sliding_window_pattern", "attn_logit_softcapping",
    "final_logit_softcapping", "rope.dimension_count", "rope.freq_base", "rope.freq_base_swa",
    "rope.global.freq_base", "rope.local.freq_base", "rope.scaling.type", "rope.scaling.factor", "rope.scale_linear",
    "rope.scaling.original_context_length", "rope.scaling.finetuned", "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow", NULL};

/* With this value they change nothing. */
static const struct neutral { const char *name; double value; } neutral[] = {
    {"expert_count", 0}, {"expert_used_count", 0}, {"attention.clamp_kqv", 0}, {"attention.causal", 1},
    {"attention.recurrent_layer_count", 0}, {"residual_scale", 1}, {"embedding_scale", 1}, {"logit_scale", 1},
    {"rope.scaling.attn_factor", 1}, {"rope.scaling.yarn_attn_factor", 1}, {"rope.scaling.yarn_ext_factor", 1},
    {"rope.scaling.yarn_log_multiplier", 0}, {NULL, 0}};

static int begins(struct sh_gguf_text text, const char *word)
{
    size_t n = strlen(word);
    return text.bytes >= n && !memcmp(text.at, word, n);
}

static int ends(struct sh_gguf_text text, const char *word)
{
    size_t n = strlen(word);
    return text.bytes >= n && !memcmp(text.at + text.bytes - n, word, n);
}

static int matters(struct sh_gguf_text name)
{
    return begins(name, "attention.") || begins(name, "rope.") || begins(name, "expert") || begins(name, "ssm.") ||
           begins(name, "attn_") || ends(name, "_scale") || ends(name, "softcapping");
}

static int check_neutral(struct sh_gguf_maker *m, const struct sh_gguf_value *v, const struct neutral *n)
{
    char expected[40];
    if (v->kind == SH_GGUF_STRING || v->kind == SH_GGUF_ARRAY || sh_gguf_real_at(v, 0) != n->value) {
        snprintf(expected, sizeof expected, "%g", n->value);
        return sh_gguf_cannot(m, n->name, expected);
    }
    return 0;
}

static int check_key(struct sh_gguf_maker *m, const struct sh_gguf_value *v, struct sh_gguf_text name)
{
    char shown[100];
    for (const char *const *known = read_keys; *known; known++)
        if (sh_gguf_text_is(name, *known))
            return 0;
    for (const struct neutral *n = neutral; n->name; n++)
        if (sh_gguf_text_is(name, n->name))
            return check_neutral(m, v, n);
    int is_alibi = (m->form->traits & SH_GGUF_ALIBI) != 0;
    if (sh_gguf_text_is(name, "attention.max_alibi_bias"))
        return check_neutral(m, v, &(struct neutral){"attention.max_alibi_bias", is_alibi ? 8 : 0});
    if (!matters(name))
        return 0;
    snprintf(shown, sizeof shown, "%.*s", (int)(name.bytes < sizeof shown ? name.bytes : sizeof shown - 1), name.at);
    return sh_fail(m->e, "%s: key '%s.%s' is not supported for this family: it would change what the model computes",
                   m->g->path, m->form->arch, shown);
}

int sh_gguf_check_keys(struct sh_gguf_maker *m)
{
    size_t skip = strlen(m->form->arch) + 1;
    for (size_t i = 0; i < m->g->n; i++) {
        const struct sh_gguf_value *v = &m->g->values[i];
        if (!begins(v->key, m->form->arch) || v->key.bytes <= skip || v->key.at[skip - 1] != '.')
            continue;
        if (check_key(m, v, (struct sh_gguf_text){v->key.at + skip, v->key.bytes - skip}))
            return -1;
    }
    return 0;
}
