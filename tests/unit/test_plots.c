/* SPDX-License-Identifier: Apache-2.0 */
/* plots: the scripts against reviewed ones, their numbers against the inputs, what gnuplot makes of
 * them, names that try to be commands, and every way in which drawing can fail. Everything is
 * written into a folder of its own, which is the current one while the tests run. With `--write
 * DIR` the program only writes the scripts of tests/golden/plots there. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plots/figure.h"
#include "plots/gnuplot.h"
#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/plot_data.h"

static char *golden, *usual_path;
static struct plot_data tame;

static char *slurp(const char *path)
{
    char *text = NULL, part[4096];
    size_t bytes = 0, n;
    FILE *from = fopen(path, "rb");
    if (!from)
        return NULL;
    while ((n = fread(part, 1, sizeof part, from)) > 0) {
        text = xreallocarray(text, bytes + n + 1, 1);
        memcpy(text + bytes, part, n);
        bytes += n;
    }
    fclose(from);
    if (text)
        text[bytes] = '\0';
    return text;
}

static void spit(const char *path, const char *text, mode_t mode)
{
    FILE *to = fopen(path, "wb");
    fputs(text, to);
    fclose(to);
    chmod(path, mode);
}

static int n_files(void)
{
    int n = 0;
    DIR *here = opendir(".");
    for (struct dirent *f = readdir(here); f; f = readdir(here))
        n += strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0;
    closedir(here);
    return n;
}

static int has_gnuplot(void)
{
    char *path = sh_gnuplot_find();
    int found = path != NULL;
    if (!found)
        tap_skip("no gnuplot on PATH");
    free(path);
    return found;
}

/* Draws; the status that came of it, SH_OK when it worked. */
static enum sh_status plot(const char *name, const struct sh_fig_data *d, const char *path,
                           int script, struct sh_err *e)
{
    const struct sh_figure *f = sh_figure_find(name, e);
    return f && sh_figure_plot(f, d, path, script, NULL, e) == 0 ? SH_OK : e->status;
}

/* Is it drawn? Else the output says which figure is not, and why. */
static int draws(const char *name, const struct sh_fig_data *d, const char *path, int script)
{
    struct sh_err e = {.text = ""};
    int bad = plot(name, d, path, script, &e) != SH_OK;
    if (bad)
        printf("# figure %s: %s\n", name, e.text);
    return !bad;
}

static char *script_of(const char *name, const struct sh_fig_data *d)
{
    CU_ASSERT_FATAL(draws(name, d, "it.gp", 1));
    char *text = slurp("it.gp");
    CU_ASSERT_FATAL(text != NULL);
    unlink("it.gp");
    return text;
}

static void scripts_are_the_reviewed_ones(void)
{
    for (int i = 0; sh_figures[i]; i++) {
        char *path = xasprintf("%s/%s.gp", golden, sh_figures[i]->name);
        char *expected = slurp(path), *found = script_of(sh_figures[i]->name, &tame.d);
        if (!expected)
            printf("# figure %s has no golden script: test_plots --write DIR makes it\n", sh_figures[i]->name);
        CU_ASSERT_FATAL(expected != NULL);
        if (strcmp(found, expected))
            printf("# figure %s: its script is not that of tests/golden/plots\n", sh_figures[i]->name);
        CU_ASSERT_STRING_EQUAL(found, expected);
        free(expected);
        free(found);
        free(path);
    }
}

/* The first numbers of a data block, comments left out; how many there are in all. */
static int block(const char *script, const char *name, double *out, int most)
{
    char *begin = xasprintf("$%s << EOD\n", name);
    const char *at = strstr(script, begin);
    int n = 0;
    for (at = at ? at + strlen(begin) : "EOD"; strncmp(at, "EOD", 3) != 0;) {
        char *end;
        double v = strtod(at, &end);
        if (*at == '#')
            end = strchr(at, '\n');
        else if (n++ < most)
            out[n - 1] = v;
        at = end + strspn(end, " \n");
    }
    free(begin);
    return n;
}

/* Scores are written as floats: read back, they round to the same float. */
static int same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void map_numbers_are_the_inputs(void)
{
    double v[MAP * MAP];
    char *script = script_of("heatmap", &tame.d);
    CU_ASSERT_FATAL(block(script, "score0", v, MAP * MAP) == MAP * MAP);
    for (int i = 0; i < MAP * MAP; i++)
        CU_ASSERT(same((double)(float)v[i], (double)tame.score[i / MAP][i % MAP]));
    CU_ASSERT_FATAL(block(script, "significant0", v, MAP * MAP) == MAP * MAP);
    for (int r = 0; r < MAP; r++)
        for (int c = 0; c < MAP; c++)       /* k / 1024 > 1 / (r + 1), without division */
            CU_ASSERT(same(v[r * MAP + c], c > r ? NAN : tame.k[r][c] * (r + 1) > 1024));
    CU_ASSERT_FATAL(block(script, "rows0", v, MAP * MAP) == 2 * MAP);
    for (int c = 0; c < MAP; c++) {
        CU_ASSERT(same((double)(float)v[c], (double)tame.score[5][c]));
        CU_ASSERT(same((double)(float)v[MAP + c], (double)tame.score[10][c]));
    }
    free(script);
}

static void line_and_table_numbers_are_the_inputs(void)
{
    double v[64];
    char name[32], *script = script_of("persistence", &tame.d);
    for (int p = 0; p < PANELS; p++)
        for (int s = 0; s < SERIES; s++) {
            snprintf(name, sizeof name, "p%ds%d", p, s);
            CU_ASSERT_FATAL(block(script, name, v, 64) == 5 * LAYERS);
            for (int l = 0; l < LAYERS; l++)
                for (int k = 0; k < 5; k++)
                    CU_ASSERT(same(v[5 * l + k], k ? tame.line[p][s][k - 1][l] : l));
        }
    CU_ASSERT(block(script, "p1m1", v, 64) == 1 && v[0] == 2);
    CU_ASSERT(block(script, "p0m0", v, 64) == 0);
    CU_ASSERT(strstr(script, "set ytics add ('none' 0.03333)") != NULL);     /* below 0.1, where the axis begins */
    CU_ASSERT(strstr(script, "$p1m1 using ($1 + 0.00):(0.03333) with points") != NULL);
    free(script);
    script = script_of("persistence-grid", &tame.d);
    CU_ASSERT_FATAL(block(script, "lift0", v, 64) == ALPHAS * RECENTS);
    for (int i = 0; i < ALPHAS * RECENTS; i++)
        CU_ASSERT(same(v[i], tame.lift[i / RECENTS][i % RECENTS]));
    CU_ASSERT(strstr(script, "'none' at 3, 2 ") != NULL);
    free(script);
    script = script_of("heads", &tame.d);
    CU_ASSERT_FATAL(block(script, "ratio0", v, 64) == LAYERS * HEADS);
    for (int i = 0; i < LAYERS * HEADS; i++)
        CU_ASSERT(same(v[i], tame.head_ratio[i / HEADS][i % HEADS]));
    CU_ASSERT_FATAL(block(script, "lift0", v, 64) == LAYERS * HEADS);
    for (int i = 0; i < LAYERS * HEADS; i++)
        CU_ASSERT(same(v[i], tame.head_lift[i / HEADS][i % HEADS]));
    free(script);
}

/* Columns of a policy's block, and of what the leaderboard shows of it. */
static void policy_numbers_are_the_inputs(void)
{
    double v[16 * SHARES];
    char name[32], *script = script_of("budget-curve", &tame.d);
    for (int i = 0; i < CURVES; i++) {
        snprintf(name, sizeof name, "s0c%d", i);
        CU_ASSERT_FATAL(block(script, name, v, 7 * SHARES) == 7 * SHARES);
        for (int k = 0; k < SHARES; k++) {
            CU_ASSERT(same(v[7 * k], tame.share[k]));
            for (int c = 0; c < 6; c++)
                CU_ASSERT(same(v[7 * k + 1 + c], tame.kept[i][c][k]));
        }
    }
    CU_ASSERT(strstr(script, "'oracle'") != NULL && strstr(script, "'others, or more than the budget'") != NULL);
    CU_ASSERT(strstr(script, "$s0c6 using 1:(seen($7)) with linespoints ls 6 dt 1") != NULL);
    CU_ASSERT(strstr(script, "$s0c7 using 1:(seen($7)) with lines lc rgb '#c8c8c8'") != NULL);   /* the seventh: grey */
    free(script);
    script = script_of("leaderboard", &tame.d);
    for (int i = 0; i < CURVES; i++)
        CU_ASSERT(strstr(script, tame.curve[i].label) != NULL);
    const char *at = strstr(script, "$board0 << EOD\n");
    CU_ASSERT_FATAL(at != NULL);
    at = strchr(strchr(at, '\n') + 1, '\n') + 1;
    for (int i = 0; i < CURVES; i++, at = strchr(at, '\n') + 1) {
        double n, height, m[3];
        char colour[16];
        CU_ASSERT_FATAL(sscanf(at, "%lf %lf %15s %lf %lf %lf", &n, &height, colour, &m[0], &m[1], &m[2]) == 6);
        CU_ASSERT(same(n, i) && same(height, tame.curve[i].height));
        CU_ASSERT(same(m[0], tame.kept[i][0][0]) && same(m[1], tame.kept[i][0][1]) &&
                  same(m[2], tame.kept[i][0][4]));
    }
    CU_ASSERT(strstr(script, "set xrange [0:1]") != NULL && strstr(script, "using 2:1:(0):2:") != NULL);
    CU_ASSERT(strstr(script, "'too few of these budgets' at graph 0.01, first 3 ") != NULL);
    free(script);
}

static void theory_and_plan_numbers_are_the_inputs(void)
{
    double v[64];
    char *script = script_of("dropped-mass", &tame.d);
    CU_ASSERT_FATAL(block(script, "d0", v, 64) == 8 * SHARES);
    for (int k = 0; k < SHARES; k++) {
        CU_ASSERT(same(v[8 * k], tame.share[k]));
        for (int c = 0; c < 7; c++)
            CU_ASSERT(same(v[8 * k + 1 + c], tame.drop[c][k]));
    }
    CU_ASSERT(strstr(script, "says nothing") == NULL);
    free(script);
    struct plot_data silent = tame;
    struct sh_fig_dropped dropped = tame.dropped;
    for (int k = 0; k < SHARES; k++)
        silent.drop[5][k] = NAN;
    dropped.printed = silent.drop[5];
    dropped.law = silent.drop[5];
    struct sh_fig_drops drops = {1, &dropped};
    silent.d.dropped_mass = &drops;
    script = script_of("dropped-mass", &silent.d);
    CU_ASSERT(strstr(script, "Theorem 4.1 as printed says nothing") != NULL);
    CU_ASSERT(strstr(script, "law D has no value here") != NULL);
    free(script);
    script = script_of("allocation", &tame.d);
    CU_ASSERT_FATAL(block(script, "plan0", v, 64) == LAYERS * HEADS);
    for (int i = 0; i < LAYERS * HEADS; i++)
        CU_ASSERT(same(v[i], tame.tokens_kept[i / HEADS][i % HEADS]));
    CU_ASSERT_FATAL(block(script, "layers0", v, 64) == 4 * LAYERS);
    for (int l = 0; l < LAYERS; l++) {
        int last = l == 5 ? 1 : 2;              /* a head of layer 5 is not planned */
        CU_ASSERT(same(v[4 * l + 2], tame.tokens_kept[l][0]));
        CU_ASSERT(same(v[4 * l + 3], tame.tokens_kept[l][last]));
        CU_ASSERT(fabs(v[4 * l + 1] - (tame.tokens_kept[l][0] + tame.tokens_kept[l][last]) / 2) < 1e-12);
    }
    free(script);
}

static void every_figure_in_every_format(void)
{
    static const char *const kinds[][2] = {{"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF-"},
                                           {"eps", "%!PS-Adobe"}, {"tex", "\\begin{tikzpicture}"}};
    if (!has_gnuplot())
        return;
    for (int i = 0; sh_figures[i]; i++)
        for (int k = 0; k < 5; k++) {
            char *path = xasprintf("figure.%s", kinds[k][0]);
            CU_ASSERT(draws(sh_figures[i]->name, &tame.d, path, 0));
            char *drawn = slurp(path);
            CU_ASSERT(drawn && strncmp(drawn, kinds[k][1], strlen(kinds[k][1])) == 0);
            CU_ASSERT(k > 0 || (drawn && strstr(drawn, "The demo model on its own text") != NULL));
            CU_ASSERT(n_files() == 1);
            unlink(path);
            free(drawn);
            free(path);
        }
}

static const char *const hostile[] = {
    "`touch pwned`",
    "'.system('touch pwned').'",
    "'",
    "''",
    "'''",
    "' ; system 'touch pwned' #",
    "\";system \"touch pwned\"",
    "a\nsystem 'touch pwned'\nb",
    "@GPVAL_VERSION",
    "$(touch pwned)",
    "%s%n%d%",
    "\\",
    "a\\",
    "{/Symbol a}_b^c",
    "}{",
    "# x",
    "</text><script>&amp;",
    "\xff\xfe\xc3(",
    "\xe2\x80\xae!",
    "\x1b[31m\x07",
    "",
    "EOD\n!touch pwned",
    "a very long name, longer "
    "than anything that has room in a figure, let alone next to an axis, and therefore cut "
    "somewhere near its beginning"};
enum { N_HOSTILE = sizeof hostile / sizeof *hostile };

static void names_are_never_commands(void)
{
    if (!has_gnuplot())
        return;
    for (int h = 0; h < N_HOSTILE; h++)
        for (int i = 0; sh_figures[i]; i++) {
            struct plot_data p;
            struct sh_err e = {.text = ""};
            plot_data_fill(&p, hostile[h]);
            CU_ASSERT(plot(sh_figures[i]->name, &p.d, "it.svg", 0, &e) == SH_OK);
            if (e.text[0])
                printf("# %s: %s\n", hostile[h], e.text);
            CU_ASSERT(n_files() == 1);
            char *drawn = slurp("it.svg");
            if (!strpbrk(hostile[h], "\n&\xff\xe2\x1b") && strlen(hostile[h]) < 40) {
                char *shown = xasprintf(">%s<", hostile[h]);
                CU_ASSERT(drawn && (!*hostile[h] || strstr(drawn, shown)));
                free(shown);
            }
            CU_ASSERT(drawn && !strstr(drawn, "<script"));
            free(drawn);
            unlink("it.svg");
            plot_data_free(&p);
        }
}

/* Runs gnuplot on a script as a user would. */
static int run_script(const char *path)
{
    int status;
    char *plain = xasprintf("./%s", path);
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr))
            execlp("gnuplot", "gnuplot", "-d", plain, (char *)NULL);
        _exit(99);
    }
    waitpid(pid, &status, 0);
    free(plain);
    return status;
}

static void paths_are_never_commands(void)
{
    static const char *const paths[] = {
        "|touch pwned.svg", "`touch pwned`.svg", "a'b''c.svg", "'.svg",
        "~x.svg",           "a b.svg",           "\".svg",     "-d.svg"};
    if (!has_gnuplot())
        return;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct sh_err e = {.text = ""};
        CU_ASSERT(plot("heads", &tame.d, paths[i], 0, &e) == SH_OK);
        CU_ASSERT(access(paths[i], R_OK) == 0 && n_files() == 1);
        unlink(paths[i]);
        char *script = xasprintf("%.*s.gp", (int)strlen(paths[i]) - 4, paths[i]);
        CU_ASSERT(plot("heads", &tame.d, script, 1, &e) == SH_OK);
        CU_ASSERT(run_script(script) == 0);
        char *drawn = slurp(paths[i]);
        CU_ASSERT(drawn && strncmp(drawn, "<?xml", 5) == 0);
        CU_ASSERT(n_files() == 2);
        free(drawn);
        unlink(paths[i]);
        unlink(script);
        free(script);
    }
}

static void text_is_cut_and_made_visible(void)
{
    static const struct { const char *in; int most; const char *text, *tic;
    } cases[] = {{"plain", 9, "'plain'", "'plain'"},
                 {"5%", 9, "'5%'", "'5%%'"},
                 {"it's", 9, "'it'.\"'\".'s'", "'it'.\"'\".'s'"},
                 {"a\nb\t", 9, "'a\\nb\\t'", "'a\\nb\\t'"},
                 {"abcdef", 4, "'abc…'", "'abc…'"},
                 {"abcd", 4, "'abcd'", "'abcd'"},
                 {"äöü€𝄞x", 5, "'äöü€…'", "'äöü€…'"},
                 {"\xc3", 9, "'\xef\xbf\xbd'", "'\xef\xbf\xbd'"},
                 {"\xed\xa0\x80", 9, "'\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd'",
                  "'\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd'"},
                 {"", 9, "''", "''"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int tic = 0; tic < 2; tic++) {
            char *text = NULL;
            size_t bytes;
            struct sh_gp gp = {.to = open_memstream(&text, &bytes)};
            (tic ? sh_gp_tic : sh_gp_text)(&gp, cases[i].in, cases[i].most);
            fclose(gp.to);
            CU_ASSERT_STRING_EQUAL(text, tic ? cases[i].tic : cases[i].text);
            free(text);
        }
}

static void refusals_come_first_and_leave_nothing(void)
{
    struct sh_err e;
    CU_ASSERT(plot("heads", &tame.d, "figure.jpg", 0, &e) == SH_MISUSED);
    CU_ASSERT(strstr(e.text, "figure.jpg") && strstr(e.text, SH_GP_NAMES));
    CU_ASSERT(plot("heads", &tame.d, ".svg", 0, &e) == SH_MISUSED);
    CU_ASSERT(plot("heads", &tame.d, "nowhere/figure.svg", 0, &e) == SH_FAILED);
    CU_ASSERT(strstr(e.text, "nowhere/figure.svg") != NULL);
    CU_ASSERT(plot("heads", &tame.d, "nowhere/", 1, &e) == SH_MISUSED);
    CU_ASSERT(plot("pie", &tame.d, "figure.svg", 0, &e) == SH_MISUSED);
    CU_ASSERT(strstr(e.hint, "heatmap, persistence, persistence-grid, heads") != NULL);
    CU_ASSERT(symlink("/dev/null", "link.svg") == 0);
    CU_ASSERT(plot("heads", &tame.d, "link.svg", 0, &e) == SH_MISUSED);
    unlink("link.svg");
    struct sh_fig_data none = {.title = "t"};
    for (int i = 0; sh_figures[i]; i++)
        CU_ASSERT(plot(sh_figures[i]->name, &none, "figure.gp", 1, &e) == SH_MISUSED);
    CU_ASSERT(n_files() == 0);
}

static void without_gnuplot_the_script_remains(void)
{
    struct sh_err e = {.text = ""};
    setenv("PATH", "", 1);
    CU_ASSERT(plot("heads", &tame.d, "figure.svg", 0, &e) == SH_ABSENT);
    CU_ASSERT(strstr(e.hint, "gnuplot-nox") != NULL && n_files() == 0);
    CU_ASSERT(plot("heads", &tame.d, "figure.gp", 1, &e) == SH_OK);
    CU_ASSERT(n_files() == 1);
    unlink("figure.gp");
    setenv("PATH", usual_path, 1);
}

/* What a gnuplot that misbehaves like this leads to; the old figure must survive. */
static void with_fake(const char *body, enum sh_status status, const char *expected)
{
    struct sh_err e = {.text = ""};
    char folder[2048], *script = xasprintf("#!/bin/sh\n%s\n", body);
    CU_ASSERT_FATAL(getcwd(folder, sizeof folder) != NULL);
    spit("gnuplot", script, 0755);
    spit("figure.svg", "old", 0644);
    char *path = xasprintf("%s:%s", folder, usual_path);
    setenv("PATH", path, 1);
    CU_ASSERT(plot("persistence", &tame.d, "figure.svg", 0, &e) == status);
    setenv("PATH", usual_path, 1);
    if (!strstr(e.text, expected))
        printf("# expected '%s', found '%s'\n", expected, e.text);
    CU_ASSERT(strstr(e.text, expected) && strstr(e.text, "figure.svg"));
    char *left = slurp("figure.svg");
    CU_ASSERT(left && strcmp(left, "old") == 0);
    unlink("gnuplot");
    unlink("figure.svg");
    CU_ASSERT(n_files() == 0);
    free(left);
    free(path);
    free(script);
}

static void a_failing_gnuplot_is_told(void)
{
    with_fake(
        "cat >/dev/null; printf '\\ngnuplot> plot x\\n   ^\\n  line 7: it broke\\n' >&2; exit 1",
        SH_FAILED, "gnuplot failed: line 7: it broke");
    with_fake("echo \"line 2: unknown or ambiguous terminal type; type just 'set terminal' for a list\" >&2; exit 1",
              SH_ABSENT, "cannot draw files of this kind");
    with_fake("cat >/dev/null; echo half; exit 3", SH_FAILED, "exit status 3");
    with_fake("cat >/dev/null; exit 0", SH_FAILED, "without drawing anything");
    with_fake("kill -9 $$", SH_FAILED, "signal 9");
}

/* Far more than any pipe holds, for a gnuplot that does not read: neither side waits, and its exit status counts. */
static void a_deaf_gnuplot_does_not_kill(void)
{
    struct sh_err e = {.text = ""};
    size_t bytes = 8u << 20;
    char *script = xmalloc(bytes);
    memset(script, '\n', bytes);
    spit("deaf", "#!/bin/sh\necho drawn\nexit 0\n", 0755);
    FILE *out = tmpfile();
    signal(SIGPIPE, SIG_DFL);
    CU_ASSERT(sh_gnuplot_run("./deaf", script, bytes, fileno(out), &e) == 0);
    spit("deaf", "#!/bin/sh\nexit 4\n", 0755);
    CU_ASSERT(sh_gnuplot_run("./deaf", script, bytes, fileno(out), &e) == -1 && strstr(e.text, "exit status 4"));
    fclose(out);
    unlink("deaf");
    free(script);
}

static void a_bad_script_fails_with_gnuplots_words(void)
{
    struct sh_gp gp;
    struct sh_err e = {.text = ""};
    if (!has_gnuplot())
        return;
    CU_ASSERT_FATAL(sh_gp_open(&gp, "bad.svg", 0, NULL, &e) == 0);
    sh_gp_page(&gp, 4, 3);
    fputs("plot no_such_thing\n", gp.to);
    CU_ASSERT(sh_gp_close(&gp, &e) == -1 && e.status == SH_FAILED);
    CU_ASSERT(strstr(e.text, "undefined variable: no_such_thing") != NULL);
    CU_ASSERT(n_files() == 0);
}

static void names_and_steps(void)
{
    static const char *const names[][2] = {{"fig.gp", "fig.svg"},      {"fig.pdf.gp", "fig.pdf"},
                                           {"fig.png", "fig.png.png"}, {"fig", "fig.svg"},
                                           {"a.b/fig", "a.b/fig.svg"}, {"x/.gp", "x/.gp.svg"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *figure = sh_gp_figure_path(names[i][0]);
        CU_ASSERT_STRING_EQUAL(figure, names[i][1]);
        free(figure);
    }
    CU_ASSERT(sh_gp_step(1, 8) == 1 && sh_gp_step(8, 8) == 1 && sh_gp_step(9, 8) == 2);
    CU_ASSERT(sh_gp_step(17, 8) == 5 && sh_gp_step(96, 12) == 10 && sh_gp_step(2048, 8) == 500);
}

static int write_goldens(const char *folder)
{
    int n_failed = 0;
    for (int i = 0; sh_figures[i]; i++) {
        struct sh_err e;
        char *path = xasprintf("%s/%s.gp", folder, sh_figures[i]->name);
        n_failed += plot(sh_figures[i]->name, &tame.d, "it.gp", 1, &e) != SH_OK;
        char *script = slurp("it.gp");
        spit(path, script ? script : "", 0644);
        unlink("it.gp");
        free(path);
        free(script);
    }
    return n_failed > 0;
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"scripts: equal to the reviewed ones", scripts_are_the_reviewed_ones},
        {"heatmap: inline numbers are the inputs", map_numbers_are_the_inputs},
        {"persistence, grid, heads: inline numbers are the inputs",
         line_and_table_numbers_are_the_inputs},
        {"budget-curve, leaderboard: inline numbers are the inputs", policy_numbers_are_the_inputs},
        {"dropped-mass, allocation: inline numbers are the inputs",
         theory_and_plan_numbers_are_the_inputs},
        {"every figure draws in every format", every_figure_in_every_format},
        {"hostile names are drawn, never run", names_are_never_commands},
        {"hostile paths are written, never run", paths_are_never_commands},
        {"text: cut, quoted, made visible", text_is_cut_and_made_visible},
        {"refusals name what is wrong and leave nothing", refusals_come_first_and_leave_nothing},
        {"no gnuplot: absent, and --script still works", without_gnuplot_the_script_remains},
        {"a failing gnuplot is told and the old figure stays", a_failing_gnuplot_is_told},
        {"a gnuplot that does not read holds up nothing", a_deaf_gnuplot_does_not_kill},
        {"a bad script fails with gnuplot's words", a_bad_script_fails_with_gnuplots_words},
        {"names of figures, steps of tics", names_and_steps},
        {0}};
    char folder[] = "/tmp/test_plots.XXXXXX";
    const char *found = tap_golden("plots");
    golden = found ? realpath(found, NULL) : xstrdup("");
    usual_path = xstrdup(getenv("PATH") ? getenv("PATH") : "");
    char *to = argc == 3 && strcmp(argv[1], "--write") == 0 ? realpath(argv[2], NULL) : NULL;
    plot_data_fill(&tame, NULL);
    if (!mkdtemp(folder) || chdir(folder))
        return 99;
    int status = to ? write_goldens(to) : tap_run("plots", tests);
    rmdir(folder);
    free(golden);
    free(usual_path);
    free(to);
    return status;
}
