/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coded_folder.h"

#include <stdio.h>

#include "src/model/config/config.h"
#include "tests/tap.h"

const char *coded_golden(const char *folder, const char *file)
{
    static char path[4096];
    char name[200];
    snprintf(name, sizeof name, "coded/%s/%s", folder, file);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tap_golden(name));
    snprintf(path, sizeof path, "%s", tap_golden(name));
    return path;
}

struct sh_weights *coded_joined(const char *config, const char *file, struct sh_err *e)
{
    struct sh_quant q;
    struct sh_config *c = sh_config_open(config, e);
    struct sh_weights *w = c && !sh_config_quant(c, &q, e) ? sh_weights_open(file, e) : NULL;
    if (w && sh_weights_join(w, &q, e)) {
        sh_weights_close(w);
        w = NULL;
    }
    sh_config_close(c);
    return w;
}
