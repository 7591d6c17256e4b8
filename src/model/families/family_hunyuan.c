/* SPDX-License-Identifier: Apache-2.0 */
/* Hunyuan dense (Tencent, 2025): LLaMA with norms on queries and keys after the rotation, whose base is stretched by
 * alpha^(d / (d - 2)). */
#include <math.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION,
    SH_NORM_WEIGHT(Q_NORM, SH_LAYER "self_attn.query_layernorm.weight", HEAD, 0),
    SH_NORM_WEIGHT(K_NORM, SH_LAYER "self_attn.key_layernorm.weight", HEAD, 0), SH_LLAMA_FEED, {.name = NULL}};

int sh_hunyuan_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float alpha = 0;
    const char *object = sh_config_is_filled(c, "rope_scaling") ? "rope_scaling" : "rope_parameters";
    int old = !strcmp(object, "rope_scaling");
    if (sh_config_real(c, old ? "rope_scaling.alpha" : "rope_parameters.alpha", 1e9, &alpha, e) ||
        sh_config_real(c, "rope_parameters.rope_theta", 1e12, &a->rope.base, e))
        return -1;
    const char *type = NULL;
    if (sh_config_word(c, old ? "rope_scaling.rope_type" : "rope_parameters.rope_type", &type, e) ||
        (!type && sh_config_word(c, old ? "rope_scaling.type" : "rope_parameters.type", &type, e)))
        return -1;
    if (!(alpha > 0) || (type && strcmp(type, "dynamic")))
        return sh_config_whole_rope(a, c, e);
    if (a->n_rot < 4)
        return sh_config_refuse(c, "head_dim", "at least 4", e);
    a->rope.base *= (float)pow((double)alpha, (double)a->n_rot / (a->n_rot - 2));
    a->rope.original = a->max_pos;
    return 0;
}

const struct sh_family sh_family_hunyuan_v1_dense = {
    .special = "a norm of each query and key after the rotation, alpha scaling",
    .name = "hunyuan_v1_dense", .model_types = SH_WORDS("hunyuan_v1_dense"),
    .architectures = SH_WORDS("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_LATE},
    .keys = sh_llama_keys, .params = params,
    .gguf = &sh_gguf_hunyuan_v1_dense, .only = SH_WORDS("use_qk_norm=true", "use_cla=false"),
    .finish = sh_hunyuan_finish};
