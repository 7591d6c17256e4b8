/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 3 (Kamath et al., 2025): Gemma 2 with norms on queries and keys in place of the caps, and five
 * windowed layers, which turn faster, to one that sees everything. In checkpoints that see pictures, too,
 * the text's config is a part of the whole and says only what differs from these defaults. */
#include "src/model/config.h"
#include "src/model/families/families.h"

#define FIELD(name) offsetof(struct sh_arch, name)

static const char *const model_types[] = {"gemma3_text", NULL};
static const char *const architectures[] = {"Gemma3ForCausalLM", "Gemma3TextModel", "Gemma3ForConditionalGeneration",
                                            NULL};
static const char *const prefixes[] = {"model.", "", "language_model.model.", "model.language_model.", NULL};

static const struct sh_key keys[] = {
    {{"num_hidden_layers"}, SH_KEY_COUNT, FIELD(n_layer), 0, 1, 1e4},
    {{"num_attention_heads"}, SH_KEY_COUNT, FIELD(n_head), 0, 0, 1e5},
    {{"num_key_value_heads"}, SH_KEY_COUNT, FIELD(n_kv_head), 0, 0, 1e5},
    {{"head_dim"}, SH_KEY_COUNT, FIELD(d_head), 0, 0, 1e5},
    {{"hidden_size"}, SH_KEY_COUNT, FIELD(d_model), 0, 1, 1e7},
    {{"intermediate_size"}, SH_KEY_COUNT, FIELD(d_ff), 0, 1, 1e8},
    {{"vocab_size"}, SH_KEY_COUNT, FIELD(n_vocab), 0, 0, 1e8},
    {{"max_position_embeddings"}, SH_KEY_COUNT, FIELD(max_pos), 0, 0, 1e8},
    {{"hidden_activation"}, SH_KEY_ACT, FIELD(act), 0, 0, 0},
    {{"rms_norm_eps"}, SH_KEY_REAL, FIELD(norm_eps), 0, 0, 1},
    {{"rope_parameters.full_attention.rope_theta", "rope_theta"}, SH_KEY_REAL, FIELD(rope.base), 0, 0, 1e12},
    {{"rope_parameters.sliding_attention.rope_theta", "rope_local_base_freq"}, SH_KEY_REAL, FIELD(local_rope.base), 0,
     0, 1e12},
    {{"initializer_range"}, SH_KEY_REAL, FIELD(init_std), 0, 0, 100},
    {{"attention_bias"}, SH_KEY_FLAG, 0, SH_HAS_BIAS | SH_HAS_OUT_BIAS, 0, 0},
    {{"tie_word_embeddings"}, SH_KEY_FLAG, 0, SH_TIED_HEAD, 0, 0},
    {{"dtype", "torch_dtype"}, SH_KEY_TYPE, FIELD(type), 0, 0, 0},
    {{NULL}, SH_KEY_COUNT, 0, 0, 0, 0}};

static int but_each(int layer, int period)
{
    return (layer + 1) % period != 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const whole[] = {"rope_scaling", "rope_parameters.full_attention", NULL};
    static const char *const local[] = {"rope_parameters.sliding_attention", NULL};
    int period = 6;
    if (sh_gemma_finish(a, c, e))
        return -1;
    a->softcap = 0;                     /* of scores; the key is there, and nothing reads it */
    if (sh_config_rope(c, whole, a, &a->rope, e) || sh_config_rope(c, local, a, &a->local_rope, e))
        return -1;
    sh_config_lengthen(a, &a->rope);
    return sh_config_count(c, "sliding_window_pattern", (int)1e8, &period, e) ||
           sh_config_windows(c, but_each, period, a, e) ? -1 : 0;
}

const struct sh_family sh_family_gemma3 = {
    .name = "gemma3",
    .model_types = model_types,
    .architectures = architectures,
    .prefixes = prefixes,
    .start = {.n_head = 8, .n_kv_head = 4, .d_head = 256, .n_vocab = 262208, .max_pos = 131072,
              .norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY,
              .type = SH_F32, .norm_eps = 1e-6f, .init_std = 0.02f, .rotary_share = 1, .rope = {.base = 1e6f},
              .local_rope = {.base = 1e4f},
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_TIED_HEAD | SH_HAS_QK_NORM},
    .keys = keys,
    .params = sh_gemma_params,
    .finish = finish,
};
