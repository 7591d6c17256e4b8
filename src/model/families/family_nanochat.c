/* SPDX-License-Identifier: Apache-2.0 */
/* nanochat (Karpathy, 2025): RMS norms without weights, one of them on the embedding; queries and keys are normed after
 * a rotation in the opposite direction; squared ReLU, capped logits. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_ATTENTION, SH_MATRIX(UP_W, SH_LAYER "mlp.fc1.weight", FF, MODEL, 0),
    SH_MATRIX(DOWN_W, SH_LAYER "mlp.fc2.weight", MODEL, FF, 0), {.name = NULL}};

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->rope.is_backward = 1;
    return sh_gemma_cap(c, "final_logit_softcapping", &a->head_softcap, e) || sh_config_classic_rope(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_nanochat = {
    .special = "norms without weights, rotation backwards, squared ReLU",
    .name = "nanochat", .model_types = SH_WORDS("nanochat"),
    .architectures = SH_WORDS("NanoChatForCausalLM", "NanoChatModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_RELU2, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = 10000}, .head_softcap = 15,
              .flags = SH_HAS_FINAL_NORM | SH_HAS_EMBED_NORM | SH_HAS_QK_NORM | SH_QK_NORM_LATE},
    .keys = keys, .params = params, .finish = finish};
