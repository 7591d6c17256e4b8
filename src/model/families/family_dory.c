/* SPDX-License-Identifier: Apache-2.0 */
/* Dory (NVIDIA, 2026): nGPT (ngpt.c) with a gate on attention and windows in three of four layers; the layers in the
 * middle run several times (loop.c). Published files number attention and feed-forward blocks through. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(rate_start, 1e6, "ngpt_alpha_init"), {.json = {NULL}}};

#define A SH_LAYER "self_attn."
#define F SH_LAYER "mlp."
#define M SH_LAYER "mixer."
#define ATTENTION(stem, gate, how) \
    SH_LINEAR(Q, stem "q_proj", Q, MODEL, SH_HAS_BIAS, how), \
    SH_LINEAR(K, stem "k_proj", KV, MODEL, SH_HAS_BIAS, how), \
    SH_LINEAR(V, stem "v_proj", KV, MODEL, SH_HAS_BIAS, how), \
    SH_LINEAR(O, stem "o_proj", MODEL, Q, SH_HAS_OUT_BIAS, how), \
    SH_MATRIX(ATTN_GATE_W, stem gate ".weight", Q, MODEL, how), SH_VECTOR(QUERY_FACTOR, stem "sqk", Q, 0, how), \
    SH_VECTOR(ATTN_GATE_FACTOR, stem "s_gate", Q, 0, how)
#define FEED(stem, how) \
    SH_LINEAR(GATE, stem "gate_proj", FF, MODEL, SH_HAS_MLP_BIAS, how), \
    SH_LINEAR(UP, stem "up_proj", FF, MODEL, SH_HAS_MLP_BIAS, how), \
    SH_LINEAR(DOWN, stem "down_proj", MODEL, FF, SH_HAS_MLP_BIAS, how), \
    SH_VECTOR(GATE_FACTOR, stem "suv_gate", FF, 0, how), SH_VECTOR(UP_FACTOR, stem "suv_up", FF, 0, how)
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_MATRIX(TOK_EMBED, "embeddings.weight", VOCAB, EMBED, 0),
    SH_VECTOR(LOGIT_FACTOR, "lm_head.logit_scale", VOCAB, 0, SH_WHOLE_NAME),
    ATTENTION(A, "g_proj", 0), SH_MATRIX(ATTN_GATE_W, A "gate_proj.weight", Q, MODEL, 0), FEED(F, 0),
    SH_VECTOR(ATTN_RATE, SH_LAYER "lambda_1", MODEL, 0, 0), SH_VECTOR(MLP_RATE, SH_LAYER "lambda_2", MODEL, 0, 0),
    ATTENTION(M, "g_proj", SH_PAIR_FIRST), SH_VECTOR(ATTN_RATE, SH_LAYER "attn_alpha", MODEL, 0, SH_PAIR_FIRST),
    FEED(M, SH_PAIR_SECOND), SH_VECTOR(MLP_RATE, SH_LAYER "mlp_alpha", MODEL, 0, SH_PAIR_SECOND), {.name = NULL}};

/* Do the counts and the list count blocks? */
static int counts_blocks(const struct sh_config *c)
{
    int n = sh_config_length(c, "layer_types");
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof key, "layer_types.%d", i);
        if (!sh_config_is_null(c, key) && sh_config_is(c, key, "\"mlp\""))
            return 1;
    }
    return 0;
}

static int read_loop(struct sh_arch *a, const struct sh_config *c, int by, struct sh_err *e)
{
    int n = a->n_layer / by, first = 8, last = 8, loop = -1, times = 2;
    if (sh_config_at_least(c, "n_input_layers", 0, 10000, &first, e) ||
        sh_config_at_least(c, "n_output_layers", 0, 10000, &last, e) ||
        sh_config_at_least(c, "n_recurrent_layers", 0, 10000, &loop, e) ||
        sh_config_at_least(c, "n_recurrent_loops", 1, 10000, &times, e))
        return -1;
    first /= by;
    last /= by;
    loop = loop < 0 ? n - first - last : loop / by;
    if (first < 1 || loop < 1 || first + loop + last != n)
        return sh_fail(e, "%s: found %d layers, of which n_input_layers are %d, n_recurrent_layers %d and "
                       "n_output_layers %d; expected at least 1, at least 1, and the rest", sh_config_path(c), n, first,
                       loop, last);
    if (first + (long long)loop * times + last > 10000)
        return sh_config_refuse(c, "n_recurrent_loops", "at most 10000 layers in all passes", e);
    a->loop = (struct sh_loop){first, loop, times};
    a->n_layer = first + loop * times + last;
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    enum { WHOLE = 1, WINDOW };
    static const struct sh_word kinds[] = {{"full_attention", WHOLE}, {"sliding_attention", WINDOW}, {NULL, 0}};
    int by = counts_blocks(c) ? 2 : 1, listed = sh_config_has(c, "layer_types.0");
    if (sh_config_is_null(c, "sliding_window"))
        return sh_config_refuse(c, "sliding_window", "a whole number", e);
    if (read_loop(a, c, by, e) || sh_config_window(c, 1024, a, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++) {
        int number = sh_arch_number(a, i), kind = (number + 1) % 4 ? WINDOW : WHOLE;
        if (listed && sh_config_choice_at(c, "layer_types", by * number, kinds, &kind, e))
            return -1;
        if (kind == WHOLE)
            sh_arch_see_all(a, i);
    }
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const kinds[] = {"rope_parameters.full_attention", "rope_parameters.sliding_attention"};
    for (int i = 0; i < 2; i++) {
        char base[64];
        snprintf(base, sizeof base, "%s.rope_theta", kinds[i]);
        if (sh_config_is_filled(c, kinds[i]) && !sh_config_is_set(c, base))
            return sh_config_refuse(c, base, "the base of the rotation", e);
    }
    a->learned_start = a->init_std;
    if (!(a->init_std > 0) || !(a->rate_start > 0))
        return sh_config_refuse(c, a->init_std > 0 ? "ngpt_alpha_init" : "initializer_range", "a number above 0", e);
    return sh_config_whole_ropes_by_kind(a, c, e);
}

const struct sh_family sh_family_dory = {
    .special = "hidden states of length 1, learned rates and factors; layers in the middle run several times",
    .name = "dory", .model_types = SH_WORDS("dory"), .architectures = SH_WORDS("DoryForCausalLM", "DoryModel"),
    .prefixes = SH_WORDS("model.", "backbone.", ""),
    .start = {.norm = SH_NORM_LENGTH, .norm_place = SH_NORM_TAKEN, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY,
              .type = SH_F32, .norm_eps = 1e-6f, .init_std = 0.0177f, .rate_start = 0.05f, .max_pos = 8192,
              .n_kv_head = 4, .d_head = 256, .rotary_share = 1, .rope = {.base = 1e7f}, .local_rope = {.base = 1e4f},
              .flags = SH_HAS_FINAL_NORM | SH_GATED | SH_HAS_QK_NORM | SH_HAS_SUB_NORM | SH_ATTENTION_GATE},
    .keys = keys, .params = params, .only = SH_WORDS("recurrent_kv_cache_mode=\"per_loop\""),
    .knows = " layer_types sliding_window ", .shape = shape, .finish = finish};
