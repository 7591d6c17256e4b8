/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h: values that several commands read alike. */
#include "src/cli/options.h"

#include <stdlib.h>
#include <string.h>

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

void sh_note_one_token(struct sh_out *o, const struct sh_budget *budget, int n)
{
    for (int i = 0; i < n; i++)
        if (budget[i].tokens == 1) {
            sh_out_note(o, "Budget 1 is one token per KV head; the whole sequence is 1.0 or 100%%.");
            return;
        }
}

int sh_read_rows(const char *text, enum sh_rows *to, struct sh_err *e)
{
    *to = strcmp(text, "recorded") ? SH_ROWS_RENORMALISED : SH_ROWS_RECORDED;
    if (*to == SH_ROWS_RENORMALISED && strcmp(text, "renormalised"))
        return sh_misused(e, "--rows: \"%s\", expected renormalised or recorded", text);
    return 0;
}

/* "3.3in", "16cm" as inches. NULL: 0, the figure's own size. */
static int read_size(const char *option, const char *text, double *inches, struct sh_err *e)
{
    static const struct { const char *unit; double inches; } units[] = {
        {"", 1}, {"in", 1}, {"cm", 1 / 2.54}, {"mm", 1 / 25.4}, {"pt", 1 / 72.0}};
    char *end = NULL;
    *inches = text ? strtod(text, &end) : 0;
    if (!text)
        return 0;
    for (size_t i = 0; i < sizeof units / sizeof *units && end != text; i++)
        if (!strcmp(end, units[i].unit)) {
            *inches *= units[i].inches;
            if (*inches >= 0.5 && *inches <= 100)
                return 0;
            break;
        }
    return sh_misused(e, "%s: '%s', expected a size from 0.5 to 100 inches, such as 3.3in, 16cm, 84mm or 240pt", option,
                      text);
}

static int read_panels(const char *text, unsigned *to, struct sh_err *e)
{
    *to = 0;
    for (const char *s = text; s; ) {
        char *end;
        long n = strtol(s, &end, 10);
        if (end == s || n < 1 || n > SH_GP_PANELS || (*end && *end != ','))
            return sh_misused(e, "--panels %.60s: expected numbers from 1 to %d, separated by commas", text,
                              SH_GP_PANELS);
        *to |= 1u << (n - 1);
        s = *end ? end + 1 : NULL;
    }
    return 0;
}

int sh_read_page(const struct sh_page_args *typed, struct sh_gp_look *to, struct sh_err *e)
{
    *to = (struct sh_gp_look){.font_size = typed->font_size, .dpi = (int)typed->dpi, .no_title = typed->no_title,
                              .font = typed->font, .title = typed->title};
    if (typed->title && typed->no_title)
        return sh_misused(e, "--title and --no-title cannot be combined");
    return read_size("--width", typed->width, &to->width_in, e) ||
           read_size("--height", typed->height, &to->height_in, e) ||
                   read_panels(typed->panels, &to->panels, e) ? -1 : 0;
}

int sh_check_figure(const char *path, const struct sh_page_args *typed, struct sh_err *e)
{
    struct sh_gp gp;
    struct sh_gp_look look;
    if (!path)
        return 0;
    if (sh_read_page(typed, &look, e) || sh_gp_open(&gp, path, 0, &look, e))
        return -1;
    sh_gp_abandon(&gp);
    return 0;
}
