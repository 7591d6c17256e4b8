/* SPDX-License-Identifier: Apache-2.0 */
/* EXAONE 4 (LG AI Research, 2025): norms on the blocks' outputs, and on each query and key; in the 32B, a window in
 * three of four layers, and no rotation in the others. */
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_OUT_NORMS, SH_LLAMA_FEED,
    {.name = NULL}};

/* The pattern is a number of layers, the last of them global, or a word of as many letters ("LLLG"). */
int sh_exaone4_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int period = 4;
    const char *word = NULL;
    struct sh_err ignored;
    if (sh_config_word(c, "sliding_window_pattern", &word, &ignored)) {
        if (sh_config_count(c, "sliding_window_pattern", (int)1e8, &period, e))
            return -1;
    } else if (word) {
        period = (int)strlen(word);
        if (!period || strspn(word, "L") != (size_t)period - 1 || word[period - 1] != 'G')
            return sh_config_refuse(c, "sliding_window_pattern", "a word like \"LLLG\"", e);
    }
    if (sh_config_window(c, 4096, a, e) || sh_config_windows(c, sh_but_each, period, a, e))
        return -1;
    sh_config_still_globals(a);
    return 0;
}

const struct sh_family sh_family_exaone4 = {
    .special = "windows with rotation, other layers without positions; norms on outputs",
    .name = "exaone4", .model_types = SH_WORDS("exaone4"),
    .architectures = SH_WORDS("Exaone4ForCausalLM", "Exaone4Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .norm_place = SH_NORM_OUT, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = sh_llama_keys, .params = params,
    .gguf = &sh_gguf_exaone4, .knows = " sliding_window sliding_window_pattern layer_types ",
    .shape = sh_exaone4_shape, .finish = sh_config_whole_rope};
