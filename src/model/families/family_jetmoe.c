/* SPDX-License-Identifier: Apache-2.0 */
/* JetMoe (Shen et al., 2024): mixtures of experts in attention (attention_experts.c) and in its feed-forward block. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("activation_function"), SH_REAL_KEY(final_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"), SH_COUNT_KEY(d_head, 1e5, "kv_channels"),
    SH_COUNT_KEY(mix.n, 1e5, "num_local_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    {.json = {NULL}}};

#define OF_EXPERTS(part, tensor, out, in) \
    {.role = SH_##part##_EXPERT_W, .name = SH_LAYER "self_attention.experts." tensor, .rows = SH_DIM_##out, \
     .cols = SH_DIM_##in, .count = SH_DIM_EXPERTS}
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS,
    SH_MATRIX(ATTN_ROUTER_W, SH_LAYER "self_attention.experts.router.layer.weight", EXPERTS, MODEL, 0),
    OF_EXPERTS(Q, "input_linear.weight", KV_SET, MODEL), OF_EXPERTS(O, "output_linear.weight", MODEL, KV_SET),
    SH_VECTOR(ATTN_MIX_B, SH_LAYER "self_attention.experts.bias", MODEL, 0, 0),
    SH_MATRIX(K_W, SH_LAYER "self_attention.kv_proj.weight", KV_SET, MODEL, 0),
    SH_MATRIX(V_W, SH_LAYER "self_attention.kv_proj.weight", KV_SET, MODEL, 0), SH_ROUTER("mlp.router.layer.weight"),
    SH_EXPERT_PART(GATE, "mlp.input_linear.weight", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.input_linear.weight", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.output_linear.weight", MODEL, EXPERT_FF, 0),
    SH_VECTOR(MIX_B, SH_LAYER "mlp.bias", MODEL, 0, 0), {.name = NULL}};

/* Each set has as many query heads as there are KV heads, whatever num_attention_heads says. */
static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if ((long long)a->n_kv_head * a->mix.used > 100000)
        return sh_config_refuse(c, "num_experts_per_tok", "at most 10^5 heads in all", e);
    a->n_head = a->n_kv_head * a->mix.used;
    return sh_mixture_shape(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->n_kv_head = a->n_head;
    a->mix.attends = 1;
    return sh_config_classic_rope(a, c, e);
}

/* Counted in addition: the experts for queries and outputs, their router, and the biases of the experts' sums. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    (void)c, (void)e;
    long long set = (long long)f->kv_heads * f->head_dim;
    f->layer_more = 2 * (f->experts - f->used) * set * f->hidden + (long long)f->experts * f->hidden;
    f->vectors_more = 2 * f->hidden;
    return 0;
}

const struct sh_family sh_family_jetmoe = {
    .special = "experts for queries and outputs of attention, too",
    .name = "jetmoe", .model_types = SH_WORDS("jetmoe"),
    .architectures = SH_WORDS("JetMoeForCausalLM", "JetMoeModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .n_head = 1, .n_kv_head = 16, .d_head = 128, .final_eps = 1e-6f,
              .mix = {.n = 8, .used = 2, .route = SH_ROUTE_CHOSEN}, .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
    .keys = keys, .params = params, .shape = shape, .finish = finish, .count = count};
