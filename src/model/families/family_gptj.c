/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-J (Wang and Komatsuzaki, 2021): GPT-2 with rotary positions and one norm for both blocks of a layer. Its memory
 * is counted. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    (void)c, (void)e;
    f->norms = f->head_bias = 1;
    return 0;
}

const struct sh_family sh_family_gptj = {
    .name = "gptj",
    .model_types = SH_WORDS("gptj"),
    .start = {.norm = SH_NORM_LAYER, .pos = SH_POS_ROTARY, .flags = SH_HAS_MLP_BIAS},
    .shape = sh_four_wide,
    .count = count,
};
