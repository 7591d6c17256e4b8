/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a script, see gp.h: it is gathered in memory, then gnuplot draws into an already open
 * temporary file (no path ever reaches gnuplot), or the script is written there instead. */
#include "plots/gp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plots/gnuplot.h"
#include "src/base/mem.h"

/* Order known to sh_gp_page, in gp_write.c. */
static const char *const extensions[] = {".svg", ".png", ".pdf"};
enum { N_FORMATS = 3 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The format whose extension the path has, or -1. A bare ".svg" is a hidden file without one. */
static int format_of(const char *path)
{
    const char *name = base_name(path), *dot = strrchr(name, '.');
    for (int i = 0; dot && dot != name && i < N_FORMATS; i++)
        if (strcasecmp(dot, extensions[i]) == 0)
            return i;
    return -1;
}

char *sh_gp_figure_path(const char *path)
{
    const char *name = base_name(path), *dot = strrchr(name, '.');
    int format = format_of(path);
    if (format >= 0)
        return xasprintf("%s%s", path, extensions[format]);
    char *stem = xstrdup(path);
    if (dot && dot != name)
        stem[dot - path] = '\0';
    if (format_of(stem) >= 0)
        return stem;
    char *figure = xasprintf("%s.svg", stem);
    free(stem);
    return figure;
}

static int check_path(const char *path, int script, struct sh_err *e)
{
    struct stat s;
    if (!*base_name(path))
        return sh_misused(e, "figure '%s': this names a folder, not a file", path);
    if (!script && format_of(path) < 0) {
        sh_misused(e, "figure %s: unknown kind of file; known are .svg, .png and .pdf", path);
        return sh_hint(e,
                       "with --script the file may have any name, for instance one ending in .gp");
    }
    for (const char *c = path; script && *c; c++)
        if ((unsigned char)*c < 32)
            return sh_misused(e, "figure: a name with control characters cannot stand in a script");
    if (lstat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return sh_misused(e, "figure %s: there is something by this name that is not a plain file",
                          path);
    return 0;
}

static int open_temporary(struct sh_gp *gp, const char *path, struct sh_err *e)
{
    int folder = (int)(base_name(path) - path);
    for (int i = 0; i < 100; i++) {
        gp->temporary = xasprintf("%.*s.shears-plot-%ld-%d.tmp", folder, path, (long)getpid(), i);
        gp->fd = open(gp->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (gp->fd >= 0)
            return 0;
        free(gp->temporary);
        gp->temporary = NULL;
        if (errno != EEXIST)
            break;
    }
    return sh_fail(e, "figure %s: cannot write in its folder: %s", path, strerror(errno));
}

int sh_gp_open(struct sh_gp *gp, const char *path, int script, double width_in, double height_in,
               struct sh_err *e)
{
    struct sh_gp new = {.script = script, .width_in = width_in, .height_in = height_in, .fd = -1};
    if (check_path(path, script, e) || open_temporary(&new, path, e))
        return -1;
    char *what = xasprintf("figure %s", path);
    new.path = xstrdup(path);
    new.program = script ? NULL : sh_gnuplot_need(what, e);
    free(what);
    if (!script && !new.program) {
        sh_gp_abandon(&new);
        return sh_hint(
            e, "install gnuplot (Debian: gnuplot-nox), or add --script to get the gnuplot script");
    }
    char *figure = script ? sh_gp_figure_path(path) : NULL;
    new.format = format_of(figure ? figure : path);
    free(figure);
    *gp = new;
    gp->to = open_memstream(&gp->text, &gp->text_bytes);
    if (!gp->to) {
        sh_gp_abandon(gp);
        return sh_fail(e, "figure %s: no memory for its script", path);
    }
    return 0;
}

int sh_gp_open_text(struct sh_gp *gp, double width_in, struct sh_err *e)
{
    struct sh_gp new = {.width_in = width_in, .fd = -1};
    FILE *drawn = tmpfile();
    new.program = sh_gnuplot_need("figure", e);
    if (drawn)
        new.fd = fcntl(fileno(drawn), F_DUPFD_CLOEXEC, 0);
    if (drawn)
        fclose(drawn);
    if (new.program && new.fd < 0)
        sh_fail(e, "a temporary file for a figure: %s", strerror(errno));
    if (!new.program || new.fd < 0) {
        sh_gp_abandon(&new);
        return -1;
    }
    *gp = new;
    gp->to = open_memstream(&gp->text, &gp->text_bytes);
    if (gp->to)
        return 0;
    sh_gp_abandon(gp);
    return sh_fail(e, "figure: no memory for its script");
}

void sh_gp_abandon(struct sh_gp *gp)
{
    if (gp->to)
        fclose(gp->to);
    if (gp->fd >= 0)
        close(gp->fd);
    if (gp->temporary)
        unlink(gp->temporary);
    free(gp->temporary);
    free(gp->path);
    free(gp->program);
    free(gp->text);
    *gp = (struct sh_gp){.fd = -1};
}

static int write_all(const struct sh_gp *gp, struct sh_err *e)
{
    for (size_t at = 0; at < gp->text_bytes;) {
        ssize_t n = write(gp->fd, gp->text + at, gp->text_bytes - at);
        if (n < 0 && errno != EINTR)
            return sh_fail(e, "writing it failed: %s", strerror(errno));
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Of the script only the named blocks, each with its name above and an empty line below. */
static void keep_data(struct sh_gp *gp)
{
    char *to = gp->text, *from = gp->text;
    int inside = 0;
    while (*from) {
        size_t n = strcspn(from, "\n"), skip = n + (from[n] == '\n');
        int begins = *from == '$' && n > 7 && !memcmp(from + n - 7, " << EOD", 7);
        if (begins) {
            *to++ = '#';
            memmove(to, from + 1, n - 8);
            to += n - 8;
            *to++ = '\n';
        } else if (inside && n == 3 && !memcmp(from, "EOD", 3)) {
            *to++ = '\n';
        } else if (inside) {
            for (size_t i = 0; i < skip; i++)
                *to++ = from[i] == ' ' && *from != '#' ? '\t' : from[i];
        }
        inside = begins || (inside && (n != 3 || memcmp(from, "EOD", 3)));
        from += skip;
    }
    gp->text_bytes = (size_t)(to - gp->text);
}

/* Draws into the open file; gives its size, or -1. */
static long long produce(struct sh_gp *gp, struct sh_err *e)
{
    struct stat s;
    int failed = ferror(gp->to);
    failed |= fclose(gp->to);
    gp->to = NULL;
    if (failed)
        return sh_fail(e, "no memory for its script");
    if (gp->script == SH_GP_DATA)
        keep_data(gp);
    if (gp->script ? write_all(gp, e)
                   : sh_gnuplot_run(gp->program, gp->text, gp->text_bytes, gp->fd, e))
        return -1;
    if (fstat(gp->fd, &s) || s.st_size == 0)
        return sh_fail(e, "gnuplot ended without drawing anything");
    return s.st_size;
}

static int put_in_place(struct sh_gp *gp, struct sh_err *e)
{
    int failed = close(gp->fd);
    gp->fd = -1;
    if (failed || rename(gp->temporary, gp->path))
        return sh_fail(e, "cannot put it in place: %s", strerror(errno));
    free(gp->temporary);
    gp->temporary = NULL;
    return 0;
}

int sh_gp_close(struct sh_gp *gp, struct sh_err *e)
{
    int result = produce(gp, e) < 0 || put_in_place(gp, e) ? -1 : 0;
    if (result)
        sh_err_prefix(e, "figure %s", gp->path);
    sh_gp_abandon(gp);
    return result;
}

int sh_gp_close_text(struct sh_gp *gp, char **text, size_t *bytes, struct sh_err *e)
{
    long long size = produce(gp, e);
    char *at = size < 0 ? NULL : xmalloc((size_t)size + 1);
    ssize_t n = 1;
    *bytes = 0;
    while (at && *bytes < (size_t)size && n > 0) {
        n = pread(gp->fd, at + *bytes, (size_t)size - *bytes, (off_t)*bytes);
        *bytes += n > 0 ? (size_t)n : 0;
    }
    sh_gp_abandon(gp);
    if (!at)
        return sh_err_prefix(e, "figure");
    at[*bytes] = '\0';
    *text = at;
    return 0;
}
