/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/common/quality_limit.h"

#include <stdlib.h>
#include <string.h>

int sh_quality_share(const char *option, const char *text, double *out, struct sh_err *e)
{
    char *end;
    double x = strtod(text, &end);
    int is_percent = *end == '%';
    if (end == text || end[is_percent] || !(x >= 0 && x <= 1000))
        return sh_misused(e, "%s: found \"%.40s\", expected 0 to 1000, such as 0.01 or 1%%", option, text);
    *out = is_percent ? x / 100 : x;
    return 0;
}

int sh_quality_increase(const char *option, const char *text, double *out, struct sh_err *e)
{
    if (sh_quality_share(option, text, out, e))
        return -1;
    if (*out < 1 || strchr(text, '%'))
        return 0;
    sh_misused(e, "%s: found %.40s, which is %g %%", option, text, 100 * *out);
    return *out < 10 ? sh_hint(e, "for %g per cent write %g%% or %g; for %g per cent write %g%%", *out, *out,
                               *out / 100, 100 * *out, 100 * *out)
                     : sh_hint(e, "for %g per cent write %g%%", *out, *out);
}
