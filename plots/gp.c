/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a script, see gp.h: it is gathered in memory, then gnuplot draws into an already open
 * temporary file (no path ever reaches gnuplot), or the script is written there instead. */
#include "plots/gp.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plots/gnuplot.h"
#include "src/base/mem.h"

static const char *const extensions[SH_GP_FORMATS] = {".svg", ".png", ".pdf", ".eps", ".tex"};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The format whose extension the path has, or -1. A bare ".svg" is a hidden file without one. */
static int format_of(const char *path)
{
    const char *name = base_name(path), *dot = strrchr(name, '.');
    for (int i = 0; dot && dot != name && i < SH_GP_FORMATS; i++)
        if (strcasecmp(dot, extensions[i]) == 0)
            return i;
    return -1;
}

int sh_gp_is_figure(const char *path)
{
    return format_of(path) >= 0;
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
        return sh_misused(e, "figure '%s': found a folder, expected a file", path);
    if (!script && format_of(path) < 0)
        return sh_misused(e, "figure %s: expected a name ending in " SH_GP_NAMES, path);
    for (const char *c = path; script && script != SH_GP_DATA && *c; c++)
        if ((unsigned char)*c < 32)
            return sh_misused(e, "figure: a script cannot contain a name with control characters");
    if (lstat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return sh_misused(e, "figure %s: exists but is not a regular file", path);
    return 0;
}

static int check_look(const struct sh_gp_look *l, struct sh_err *e)
{
    for (const char *c = l->font ? l->font : ""; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(" -_.", *c))
            return sh_misused(e, "font \"%.60s\": expected a name of letters, digits, blanks, '-', '_' and '.'",
                              l->font);
    return 0;
}

/* An unnamed file for a figure that becomes a text. */
static int temporary(struct sh_err *e)
{
    FILE *f = tmpfile();
    int fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0)
        sh_fail(e, "cannot create a temporary file for a figure: %s", strerror(errno));
    if (f)
        fclose(f);
    return fd;
}

int sh_gp_open(struct sh_gp *gp, const char *path, int script, const struct sh_gp_look *look, struct sh_err *e)
{
    struct sh_gp new = {.script = script, .fd = -1};
    if (look) {
        new.look = *look;
        new.width_in = look->width_in;
        new.height_in = look->height_in;
    }
    if ((path && check_path(path, script, e)) || check_look(&new.look, e))
        return -1;
    if (path && !(new.file = sh_file_begin(path, e)))
        return sh_err_prefix(e, "figure");
    new.fd = path ? sh_file_fd(new.file) : temporary(e);
    if (new.fd < 0)
        return -1;
    char *what = path ? xasprintf("figure %s", path) : xstrdup("figure");
    new.path = path ? xstrdup(path) : NULL;
    new.program = script ? NULL : sh_gnuplot_need(what, e);
    free(what);
    if (!script && !new.program) {
        sh_gp_abandon(&new);
        return -1;
    }
    char *figure = script ? sh_gp_figure_path(path) : NULL;
    new.format = figure ? format_of(figure) : path ? format_of(path) : SH_GP_SVG;
    free(figure);
    if (new.look.dpi && new.format != SH_GP_PNG) {
        sh_gp_abandon(&new);
        return sh_misused(e, "figure %s: only a PNG has dots per inch", path ? path : "");
    }
    *gp = new;
    gp->to = xmemstream(&gp->text, &gp->text_bytes);
    return 0;
}

void sh_gp_abandon(struct sh_gp *gp)
{
    if (gp->to)
        fclose(gp->to);
    struct sh_err unused;
    if (gp->file)
        sh_file_end(gp->file, -1, &unused);
    else if (gp->fd >= 0)
        close(gp->fd);
    free(gp->path);
    free(gp->program);
    free(gp->text);
    *gp = (struct sh_gp){.fd = -1};
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
    xmemclose(gp->to, &gp->text, &gp->text_bytes);
    gp->to = NULL;
    if (gp->script == SH_GP_DATA)
        keep_data(gp);
    if (gp->script && sh_write_all(gp->fd, gp->text, gp->text_bytes))
        return sh_fail(e, "writing it failed: %s", strerror(errno));
    if (!gp->script && sh_gnuplot_run(gp->program, gp->text, gp->text_bytes, gp->fd, e))
        return -1;
    if (fstat(gp->fd, &s) || s.st_size == 0)
        return sh_fail(e, "gnuplot ended without drawing anything");
    return s.st_size;
}

int sh_gp_close(struct sh_gp *gp, struct sh_err *e)
{
    int bad = produce(gp, e) < 0;
    struct sh_file *f = bad ? NULL : gp->file;
    if (bad) {
        sh_err_prefix(e, "figure %s", gp->path);
    } else {
        gp->file = NULL;
        gp->fd = -1;
        if (sh_file_end(f, 0, e))
            bad = sh_err_prefix(e, "figure");
    }
    sh_gp_abandon(gp);
    return bad ? -1 : 0;
}

/* Everything from the file's beginning on; 0 at its end, -1. */
static int read_back(int fd, char *at, size_t bytes)
{
    for (size_t n = 0; n < bytes;) {
        ssize_t got = pread(fd, at + n, bytes - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got ? errno : EIO;
            return -1;
        }
        n += (size_t)got;
    }
    return 0;
}

int sh_gp_close_text(struct sh_gp *gp, char **text, struct sh_err *e)
{
    long long size = produce(gp, e);
    char *at = size < 0 ? NULL : xmalloc((size_t)size + 1);
    if (at && read_back(gp->fd, at, (size_t)size)) {
        sh_fail(e, "a temporary file cannot be read: %s", strerror(errno));
        free(at);
        at = NULL;
    }
    sh_gp_abandon(gp);
    if (!at)
        return sh_err_prefix(e, "figure");
    at[size] = '\0';
    *text = at;
    return 0;
}
