/* SPDX-License-Identifier: Apache-2.0 */
/* Doge (SmallDoge, 2024) without experts: keys with a number that is added to their scores (key_bias.c). In texts
 * longer than keep_window_size tokens, this number also chooses the tokens that are seen, so only shorter texts are
 * read. A block's output is added to the hidden states times a vector. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_VECTOR(Q_NORM_W, SH_LAYER "self_attn.q_norm.weight", HEAD, 0, 0),
    SH_VECTOR(K_NORM_W, SH_LAYER "self_attn.k_norm.weight", HEAD, 0, 0),
    SH_LINEAR(KEY_BIAS, SH_LAYER "self_attn.dt_proj", KV_HEADS, KV, SH_HAS_BIAS, 0),
    SH_VECTOR(KEY_DECAY, SH_LAYER "self_attn.A", KV_HEADS, 0, 0),
    SH_VECTOR(ATTN_KEEP, SH_LAYER "input_residual", MODEL, 0, 0),
    SH_VECTOR(MLP_KEEP, SH_LAYER "post_attention_residual", MODEL, 0, 0), {.name = NULL}};

enum { WIDTHS = 8 };                        /* attention requires widths that are multiples of it */

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int chosen = 2048;
    if (sh_config_count(c, "keep_window_size", 100000000, &chosen, e) || sh_config_whole_rope(a, c, e))
        return -1;
    a->max_pos = chosen < a->max_pos ? chosen : a->max_pos;
    a->d_key = a->d_value = a->d_head;
    a->value_scale = 1;
    a->has_key_bias = 1;
    a->d_head = (a->d_head + WIDTHS) / WIDTHS * WIDTHS;
    return 0;
}

/* Counted in every layer: the product that makes the keys' numbers from values, its decays, and the vectors that
 * multiply hidden states. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    long long kv = f->kv_heads ? f->kv_heads : f->heads, d = f->head_dim ? f->head_dim : f->hidden / f->heads;
    if (sh_config_check_only(c, "is_moe=false", e))
        return -1;
    f->layer_more += kv * kv * d;
    f->vectors_more += kv + 2LL * f->hidden + (f->qkv_bias ? kv : 0);
    return 0;
}

const struct sh_family sh_family_doge = {
    .special = "keys with a number that is added to their scores, a factor for each hidden number",
    .name = "doge", .model_types = SH_WORDS("doge"), .architectures = SH_WORDS("DogeForCausalLM", "DogeModel"),
    .prefixes = sh_llama_prefixes, .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS}, .keys = sh_llama_keys,
    .params = params, .only = SH_WORDS("is_moe=false"), .knows = " sliding_window num_experts ",
    .shape = sh_window_shape, .finish = finish, .count = count};
