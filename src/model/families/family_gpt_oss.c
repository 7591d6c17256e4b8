/* SPDX-License-Identifier: Apache-2.0 */
/* gpt-oss (OpenAI, 2025): a window in every other layer, a sink for each head, experts with biases, whose gate and up
 * alternate and are clamped. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(knob[0], 1e6, "swiglu_limit"),
    SH_REAL_KEY(knob[1], 1e6, "swiglu_alpha"), SH_COUNT_KEY(mix.n, 1e5, "num_local_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok", "experts_per_token"), {.json = {NULL}}};

#define EXPERTS "mlp.experts."
#define BIAS(part, tensor, width, how) \
    {.role = SH_EXPERT_##part##_B, .name = SH_LAYER EXPERTS tensor, .cols = SH_DIM_##width, .needs = SH_EXPERT_LAYER, \
     .form = how, .count = SH_DIM_EXPERTS}

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION,
    SH_VECTOR(SINKS, SH_LAYER "self_attn.sinks", HEADS, 0, 0), SH_ROUTER("mlp.router.weight"),
    {.role = SH_ROUTER_B, .name = SH_LAYER "mlp.router.bias", .cols = SH_DIM_EXPERTS, .needs = SH_EXPERT_LAYER},
    SH_EXPERT_PART(GATE, EXPERTS "gate_up_proj", EXPERT_FF, MODEL, SH_TRANSPOSED | SH_ALTERNATING),
    SH_EXPERT_PART(UP, EXPERTS "gate_up_proj", EXPERT_FF, MODEL, SH_TRANSPOSED | SH_ALTERNATING),
    SH_EXPERT_PART(DOWN, EXPERTS "down_proj", MODEL, EXPERT_FF, SH_TRANSPOSED),
    BIAS(GATE, "gate_up_proj_bias", EXPERT_FF, SH_ALTERNATING),
    BIAS(UP, "gate_up_proj_bias", EXPERT_FF, SH_ALTERNATING),
    BIAS(DOWN, "down_proj_bias", MODEL, 0), {.name = NULL}};

static int every_other(int layer, int period)
{
    return layer % period == 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_mixture_shape(a, c, e) || sh_config_window(c, 128, a, e) || sh_config_windows(c, every_other, 2, a, e)
               ? -1 : 0;
}

/* A file that says nothing about the rotation means YaRN as in the published models. */
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_whole_rope(a, c, e))
        return -1;
    if (!sh_config_says_rope(c) && !sh_config_is_gguf(c)) {
        a->rope = (struct sh_rope){.kind = SH_ROPE_YARN, .base = a->rope.base, .factor = 32, .original = 4096,
                                   .fast = 32, .slow = 1};
        a->rope.attention = (float)sh_rope_sharpening(32, 1);
        sh_config_lengthen(a, &a->rope);
    }
    return 0;
}

static const struct sh_fact_key facts[] = {SH_FIXED_FACT(sinks, 1), {.json = {NULL}}};

const struct sh_family sh_family_gpt_oss = {
    .special = "sinks, a window in every other layer, experts with clamped SwiGLU",
    .name = "gpt_oss", .model_types = SH_WORDS("gpt_oss"),
    .architectures = SH_WORDS("GptOssForCausalLM", "GptOssModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_CLAMPED, .knob = {7, 1.702f}, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-5f, .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 150000},
              .d_head = 64, .mix = {.used = 4, .route = SH_ROUTE_CHOSEN},
              .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_SINKS},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_gpt_oss, .facts = facts, .knows = " sliding_window layer_types ", .shape = shape,
    .finish = finish};
