/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 3 (Kamath et al., 2025): Gemma 2 with norms on queries and keys in place of the caps, and five windowed layers,
 * with faster rotation, to one that sees all tokens. In models with vision, the config of the text is one part of the
 * file and gives only what differs from these defaults. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_activation"),
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_parameters.full_attention.rope_theta", "rope_theta"),
    SH_REAL_KEY(local_rope.base, 1e12, "rope_parameters.sliding_attention.rope_theta", "rope_local_base_freq"),
    {.json = {NULL}}};

static int but_each(int layer, int period)
{
    return (layer + 1) % period != 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int period = 6;
    return sh_config_window(c, 4096, a, e) || sh_config_count(c, "sliding_window_pattern", (int)1e8, &period, e) ||
           sh_config_windows(c, but_each, period, a, e) ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const whole[] = {"rope_scaling", "rope_parameters.full_attention", NULL};
    static const char *const local[] = {"rope_parameters.sliding_attention", NULL};
    if (sh_gemma_finish(a, c, e))
        return -1;
    a->softcap = 0;                     /* of scores; the key is there, and nothing reads it */
    if (sh_config_rope(c, whole, a, &a->rope, e) || sh_config_rope(c, local, a, &a->local_rope, e))
        return -1;
    sh_config_lengthen(a, &a->rope);
    return 0;
}

static const struct sh_gguf_form gguf = {
    .arch = "gemma3", .items = sh_llama_items, .base_key = "rope_theta", .period = 6, .large = 62,
    .traits = SH_GGUF_ROTARY | SH_GGUF_HEAD | SH_GGUF_CAPS | SH_GGUF_LOCAL_BASE};

const struct sh_family sh_family_gemma3 = {
    .name = "gemma3", .model_types = SH_WORDS("gemma3_text"), .counted_types = SH_WORDS("gemma3"),
    .architectures = SH_WORDS("Gemma3ForCausalLM", "Gemma3TextModel", "Gemma3ForConditionalGeneration"),
    .prefixes = SH_WORDS("model.", "", "language_model.model.", "model.language_model."),
    .start = {.n_head = 8, .n_kv_head = 4, .d_head = 256, .n_vocab = 262208, .max_pos = 131072, .norm = SH_NORM_RMS,
              .norm_place = SH_NORM_BOTH, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-6f, .init_std = 0.02f, .rotary_share = 1, .rope = {.base = 1e6f},
              .local_rope = {.base = 1e4f},
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_TIED_HEAD | SH_HAS_QK_NORM},
    .keys = keys, .params = sh_gemma_params, .gguf = &gguf,
    .knows = " sliding_window layer_types sliding_window_pattern ", .shape = shape, .finish = finish};
