/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen 2 and 2.5 (Yang et al., 2024): LLaMA with biases on q, k and v. The window counts only with use_sliding_window,
 * and only in the layers from max_window_layers on. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static int from_layer(int layer, int first)
{
    return layer >= first;
}

int sh_qwen_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int uses = 0, first = 28;
    a->flags &= ~(unsigned)SH_HAS_MLP_BIAS;                        /* mlp_bias is not a key of Qwen */
    if (sh_config_flag(c, "use_sliding_window", &uses, e))
        return -1;
    if (!uses)
        return 0;
    return sh_config_window(c, 4096, a, e) ||
           sh_config_at_least(c, "max_window_layers", 0, (int)1e8, &first, e) ||
           sh_config_windows(c, from_layer, first, a, e) ? -1 : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags = (a->flags | SH_HAS_BIAS) & ~(unsigned)SH_HAS_OUT_BIAS;  /* nor is attention_bias one of Qwen 2 */
    return sh_qwen_shape(a, c, e);
}

static const struct sh_gguf_form gguf = {
    .arch = "qwen2", .items = sh_llama_items, .base_key = "rope_theta", .share_key = "partial_rotary_factor",
    .traits = SH_GGUF_ROTARY | SH_GGUF_SHARE | SH_GGUF_HEAD | SH_GGUF_QKV_BIAS};

const struct sh_family sh_family_qwen2 = {
    .name = "qwen2", .model_types = SH_WORDS("qwen2"), .architectures = SH_WORDS("Qwen2ForCausalLM", "Qwen2Model"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS},
    .keys = sh_llama_keys, .params = sh_llama_params, .gguf = &gguf, .knows = SH_QWEN_KNOWS, .shape = shape,
    .finish = sh_config_whole_rope};

/* MiMo: the same and layers that predict further tokens, which are not counted. */
const struct sh_family sh_family_mimo = {
    .name = "mimo", .model_types = SH_WORDS("mimo"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS},
    .knows = SH_QWEN_KNOWS "num_nextn_predict_layers ", .shape = shape};
