/* SPDX-License-Identifier: Apache-2.0 */
/* The list of figures, and the way from data to a file. */
#include "plots/figure.h"

#include <string.h>

#include "src/base/err.h"
#include "src/base/mem.h"

#define ENTRY(name, data) &sh_figure_##name,
const struct sh_figure *const sh_figures[] = {SH_FIGURES(ENTRY) NULL};

const struct sh_figure *sh_figure_find(const char *name, struct sh_err *e)
{
    char names[300] = "", known[400] = "known are";
    for (int i = 0; sh_figures[i]; i++) {
        if (strcmp(name, sh_figures[i]->name) == 0)
            return sh_figures[i];
        if (sh_figures[i]->drawn_by)
            continue;
        size_t used = strlen(names), said = strlen(known);
        snprintf(names + used, sizeof names - used, "%s\n", sh_figures[i]->name);
        snprintf(known + said, sizeof known - said, "%s %s", used ? "," : "", sh_figures[i]->name);
    }
    sh_misused(e, "unknown figure \"%.80s\"", name);
    sh_hint_near(e, name, strlen(name), names, known);
    return NULL;
}

/* The parts of its data: the `int n` that each of these structs begins with. */
static int n_parts(const struct sh_figure *f, const struct sh_fig_data *d)
{
#define DATA(name, data) d->name,
    const void *const all[] = {SH_FIGURES(DATA)};
    return all[f->number] ? *(const int *)all[f->number] : 0;
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

/* Checks the data, opens and draws. */
static int draw(struct sh_gp *gp, const struct sh_figure *f, const struct sh_fig_data *d, const char *path, int script,
                const struct sh_gp_look *look, struct sh_err *e)
{
    int n = n_parts(f, d);
    if (n < 1 || n > f->most)
        return sh_misused(e, "figure %s shows 1 to %d %s, found %d", f->name, f->most, f->parts, n);
    if (sh_gp_open(gp, path, script, look, e))
        return -1;
    gp->title = gp->look.no_title ? NULL : gp->look.title ? gp->look.title : d->title;
    gp->settings = gp->look.no_title ? NULL : d->settings;
    int bad = f->draw(gp, d, e);
    if (!bad && gp->problem[0])
        bad = sh_misused(e, "figure %s %s", f->name, gp->problem);
    if (bad)
        sh_gp_abandon(gp);
    return bad;
}

int sh_figure_plot(const struct sh_figure *f, const struct sh_fig_data *d, const char *path, int script,
                   const struct sh_gp_look *look, struct sh_err *e)
{
    struct sh_gp gp;
    return draw(&gp, f, d, path, script, look, e) ? -1 : sh_gp_close(&gp, e);
}

int sh_figure_svg(const struct sh_figure *f, const struct sh_fig_data *d, const struct sh_gp_look *look, char **svg,
                  struct sh_err *e)
{
    struct sh_gp gp;
    return draw(&gp, f, d, NULL, SH_GP_DRAW, look, e) ? -1 : sh_gp_close_text(&gp, svg, e);
}
