/* SPDX-License-Identifier: Apache-2.0 */
/* The list of figures, and the way from data to a file. */
#include "plots/figure.h"

#include <string.h>

#include "plots/figures.h"
#include "src/base/mem.h"
#include "src/base/near.h"

#define DECLARE(name) extern const struct sh_figure sh_figure_##name;
SH_FIGURES(DECLARE)

#define ENTRY(name) &sh_figure_##name,
const struct sh_figure *const sh_figures[] = {SH_FIGURES(ENTRY) NULL};

const struct sh_figure *sh_figure_find(const char *name, struct sh_err *e)
{
    char names[300] = "", known[400] = "known are";
    for (int i = 0; sh_figures[i]; i++) {
        if (strcmp(name, sh_figures[i]->name) == 0)
            return sh_figures[i];
        if (sh_figures[i]->needs & (SH_FIG_CHARTS | SH_FIG_STACKS))         /* drawn by the commands themselves */
            continue;
        size_t used = strlen(names), said = strlen(known);
        snprintf(names + used, sizeof names - used, "%s\n", sh_figures[i]->name);
        snprintf(known + said, sizeof known - said, "%s %s", used ? "," : "", sh_figures[i]->name);
    }
    sh_misused(e, "there is no figure \"%.80s\"", name);
    sh_hint_near(e, name, strlen(name), names, known);
    return NULL;
}

static int check(const struct sh_figure *f, const struct sh_fig_data *d, struct sh_err *e)
{
    const struct { int need, n, most; const char *what; } parts[] = {
        {SH_FIG_MAPS, d->n_maps, 5, "score maps"},
        {SH_FIG_PANELS, d->n_panels, 4, "panels"},
        {SH_FIG_GRIDS, d->n_grids, 6, "traces"},
        {SH_FIG_HEADS, d->n_heads, 4, "traces"},
        {SH_FIG_CURVES, d->n_curves, 4, "sets of curves"},
        {SH_FIG_DROPPED, d->n_dropped, 4, "traces"},
        {SH_FIG_PLANS, d->n_plans, 4, "plans"},
        {SH_FIG_CHARTS, d->n_charts, 4, "charts"},
        {SH_FIG_STACKS, d->n_stacks, 1, "set of bars"},
        {SH_FIG_MEASURED, d->n_measured, SH_MEASURED_PANELS, "panels"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if ((f->needs & parts[i].need) && (parts[i].n < 1 || parts[i].n > parts[i].most))
            return sh_misused(e, "figure %s shows 1 to %d %s, found %d", f->name, parts[i].most,
                              parts[i].what, parts[i].n);
    return 0;
}

char *sh_figure_caption(const struct sh_figure *f, const struct sh_fig_data *d)
{
    char *text;
    size_t bytes;
    FILE *to = xmemstream(&text, &bytes);
    if (f->caption)
        f->caption(to, d);
    else
        fputs(f->summary, to);
    xmemclose(to, &text, &bytes);
    return text;
}

int sh_figure_plot(const struct sh_figure *f, const struct sh_fig_data *d, const char *path,
                   int script, double width_in, double height_in, struct sh_err *e)
{
    struct sh_gp gp;
    if (check(f, d, e) || sh_gp_open(&gp, path, script, width_in, height_in, e))
        return -1;
    if (f->draw(&gp, d, e)) {
        sh_gp_abandon(&gp);
        return -1;
    }
    return sh_gp_close(&gp, e);
}

int sh_figure_svg(const struct sh_figure *f, const struct sh_fig_data *d, double width_in, char **svg,
                  struct sh_err *e)
{
    struct sh_gp gp;
    size_t bytes;
    if (check(f, d, e) || sh_gp_open_text(&gp, width_in, e))
        return -1;
    if (f->draw(&gp, d, e)) {
        sh_gp_abandon(&gp);
        return -1;
    }
    return sh_gp_close_text(&gp, svg, &bytes, e);
}
