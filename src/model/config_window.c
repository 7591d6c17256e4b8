/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers see only a window (config.h). Newer files list the layers; older ones have a rule that
 * each family knows. */
#include <stdio.h>
#include <string.h>

#include "src/model/config.h"

static const struct sh_word types[] = {
    {"full_attention", 0}, {"sliding_attention", 1}, {"global", 0}, {"local", 1}, {NULL, 0}};

int sh_config_layer_types(const struct sh_config *c, const char *list, struct sh_arch *a, struct sh_err *e)
{
    char key[96];
    for (int layer = 0; layer < a->n_layer; layer++) {
        int is_local = -1;
        snprintf(key, sizeof key, "%s.%d", list, layer);
        if (sh_config_choice(c, key, types, &is_local, e))
            return -1;
        if (is_local < 0)
            return sh_config_refuse(c, key, "one string for each layer", e);
        if (!is_local)
            sh_arch_see_all(a, layer);
    }
    return 0;
}

int sh_config_window(const struct sh_config *c, int fallback, struct sh_arch *a, struct sh_err *e)
{
    a->window = sh_config_has(c, "sliding_window") ? 0 : fallback;
    return sh_config_count(c, "sliding_window", (int)1e8, &a->window, e);
}

int sh_config_windows(const struct sh_config *c, sh_layer_rule *is_local, int number, struct sh_arch *a,
                      struct sh_err *e)
{
    if (!a->window)
        return 0;
    if (sh_config_has(c, "layer_types.0"))
        return sh_config_layer_types(c, "layer_types", a, e);
    for (int layer = 0; layer < a->n_layer; layer++)
        if (!is_local(layer, number))
            sh_arch_see_all(a, layer);
    return 0;
}
