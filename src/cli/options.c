/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h: values that several commands read alike. */
#include "src/cli/options.h"

#include <string.h>

#include "plots/gp.h"

int sh_read_policies(const struct sh_list *typed, struct sh_policy_spec *to, int most, int *n, struct sh_err *e)
{
    if (typed->n > most)
        return sh_misused(e, "--policy: more than %d policies", most);
    for (int i = 0; i < typed->n; i++)
        if (sh_policy_parse(typed->at[i], &to[(*n)++], e))
            return sh_err_prefix(e, "--policy");
    return 0;
}

int sh_read_budgets(const struct sh_list *typed, struct sh_budget *to, int *n, struct sh_err *e)
{
    for (int i = 0; i < typed->n; i++)
        if (sh_budget_parse(typed->at[i], to, n, e))
            return sh_err_prefix(e, "--budget");
    return 0;
}

int sh_read_budget(const char *text, struct sh_budget *to, struct sh_err *e)
{
    struct sh_budget all[SH_MAX_BUDGETS];
    int n = 0;
    if (sh_budget_parse(text, all, &n, e))
        return sh_err_prefix(e, "--budget");
    *to = all[0];
    return n == 1 ? 0 : sh_misused(e, "--budget %s: expected one budget", text);
}

int sh_read_rows(const char *text, enum sh_rows *to, struct sh_err *e)
{
    *to = strcmp(text, "recorded") ? SH_ROWS_RENORMALISED : SH_ROWS_RECORDED;
    if (*to == SH_ROWS_RENORMALISED && strcmp(text, "renormalised"))
        return sh_misused(e, "--rows: \"%s\", expected renormalised or recorded", text);
    return 0;
}

int sh_check_figure(const char *path, struct sh_err *e)
{
    struct sh_gp gp;
    if (!path)
        return 0;
    if (sh_gp_open(&gp, path, 0, 0, 0, e))
        return -1;
    sh_gp_abandon(&gp);
    return 0;
}
