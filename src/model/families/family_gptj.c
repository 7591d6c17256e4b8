/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-J (Wang and Komatsuzaki, 2021): GPT-2 with rotary positions and one norm for both blocks of a layer. Its memory
 * is counted. */
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {SH_FIXED_FACT(norms, 1), SH_FIXED_FACT(head_bias, 1), {.json = {NULL}}};

const struct sh_family sh_family_gptj = {
    .name = "gptj", .model_types = SH_WORDS("gptj"),
    .start = {.norm = SH_NORM_LAYER, .pos = SH_POS_ROTARY, .flags = SH_HAS_MLP_BIAS},
    .facts = facts, .shape = sh_four_wide};
