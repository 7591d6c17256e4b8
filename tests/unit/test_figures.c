/* SPDX-License-Identifier: Apache-2.0 */
/* figures: each of the list is whole: its number, name and summary, what draws it, its data for the tests, its reviewed
 * script. What is missing is named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "tests/tap.h"
#include "tests/unit/plot_data.h"

static void must(int is_there, const struct sh_figure *f, const char *what)
{
    if (!is_there)
        printf("# figure %s: %s\n", f->name ? f->name : "without a name", what);
    CU_ASSERT(is_there);
}

static void every_descriptor_is_whole(void)
{
    for (int i = 0; sh_figures[i]; i++) {
        const struct sh_figure *f = sh_figures[i];
        must((int)f->number == i, f, ".number is not its own of plots/figure.h");
        must(f->name && f->summary, f, "no .name or .summary");
        must(f->most > 0 && f->parts, f, "no .most or .parts: how many parts it shows side by side, and what they are");
        must(f->draw != NULL, f, "no .draw");
        for (int k = 0; k < i; k++)
            must(strcmp(f->name, sh_figures[k]->name), f, "another figure has its name");
    }
}

/* Either shears plot draws it, with the data of a loader, or a command of its own. */
static void every_figure_has_its_data(void)
{
    for (int i = 0; sh_figures[i]; i++) {
        const struct sh_figure *f = sh_figures[i];
        const struct sh_figure_loader *l = sh_figure_loader(f);
        must(l || f->drawn_by, f, "no loader of src/report/figures fills its data, and it has no .drawn_by");
        must(!l || !f->drawn_by, f, "has a loader and .drawn_by");
        must(!l || l->load, f, "its loader has no .load");
    }
}

static void every_figure_is_tested(void)
{
    struct plot_data made_up;
    plot_data_fill(&made_up, NULL);
    for (int i = 0; sh_figures[i]; i++) {
        const struct sh_figure *f = sh_figures[i];
        struct sh_err e = {.text = ""};
        char *name = xasprintf("plots/%s.gp", f->name), *script = xasprintf("/tmp/test_figures.%d.gp", (int)getpid());
        const char *golden = tap_golden(name);
        int bad = sh_figure_plot(f, &made_up.d, script, 1, NULL, &e);
        must(!bad, f, "tests/unit/plot_data.c has no data that it can draw");
        if (bad)
            printf("# %s\n", e.text);
        must(golden && !access(golden, R_OK), f,
             "tests/golden/plots has no script of it: tests/unit/test_plots --write tests/golden/plots makes it");
        unlink(script);
        free(script);
        free(name);
    }
    plot_data_free(&made_up);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"every figure of the list has a whole descriptor", every_descriptor_is_whole},
        {"every figure has a loader, or a command that draws it", every_figure_has_its_data},
        {"every figure has test data and a reviewed script", every_figure_is_tested},
        {0}};
    return tap_run("figures", tests);
}
