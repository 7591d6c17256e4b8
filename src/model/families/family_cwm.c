/* SPDX-License-Identifier: Apache-2.0 */
/* CWM (Meta, 2025): LLaMA with a window in three of four layers; the first layer of each four has none. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static int is_local(int layer, int period)
{
    return layer % period != 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_window(c, 8192, a, e) || sh_config_windows(c, is_local, 4, a, e) ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (!sh_config_says_rope(c))
        return sh_fail(e, "%s: key 'rope_parameters' is missing", sh_config_path(c));
    return sh_config_whole_rope(a, c, e);
}

const struct sh_family sh_family_cwm = {
    .special = "windows in three of four layers",
    .name = "cwm", .model_types = SH_WORDS("cwm"), .architectures = SH_WORDS("CwmForCausalLM", "CwmModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .d_head = 128, .rotary_share = 1, .rope = {.base = 1e6f},
              .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = sh_llama_params, .knows = " sliding_window layer_types ", .shape = shape,
    .finish = finish};
