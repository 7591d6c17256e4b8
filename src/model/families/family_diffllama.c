/* SPDX-License-Identifier: Apache-2.0 */
/* DiffLLaMA (2024): LLaMA with differential attention. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LAMBDA(part, tensor) SH_VECTOR(LAMBDA_##part, SH_LAYER "self_attn.lambda_" tensor, HEAD, 0, 0)
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, LAMBDA(Q_1, "q1"), LAMBDA(K_1, "k1"),
    LAMBDA(Q_2, "q2"), LAMBDA(K_2, "k2"), SH_LLAMA_FEED, {.name = NULL}};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (a->n_kv_head % 2)
        return sh_config_refuse(c, "num_key_value_heads", "an even number", e);
    if ((long long)a->n_head * a->d_head > 50000000)
        return sh_config_refuse(c, "head_dim", "a width of at most 5 * 10^7 over all heads", e);
    if (sh_config_whole_rope(a, c, e))
        return -1;
    a->d_key = a->d_head;
    a->d_head *= 2;
    return 0;
}

const struct sh_family sh_family_diffllama = {
    .special = "differential attention",
    .name = "diffllama", .model_types = SH_WORDS("diffllama"),
    .architectures = SH_WORDS("DiffLlamaForCausalLM", "DiffLlamaModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .flags = SH_LLAMA_FLAGS}, .keys = sh_llama_keys, .params = params,
    .only = SH_WORDS("mlp_bias=false"), .finish = finish};
