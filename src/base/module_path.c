/* SPDX-License-Identifier: Apache-2.0 */
/* See file.h. */
#include "src/base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 3 };

struct places {
    char at[PLACES][SH_PATH - 64];      /* leaves room for a module's name */
    int n;
};

/* The folder of the program, or nothing where /proc is not mounted. */
static int own_folder(char *to, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", to, size);
    if (n <= 0 || (size_t)n >= size)
        return -1;
    to[n] = '\0';
    char *slash = strrchr(to, '/');
    if (!slash)
        return -1;
    *slash = '\0';
    return 0;
}

/* The folder of installed modules of a program that is in `own`: its place relative to the folder of installed programs
 * stays when an installation is moved, or was made with another prefix than the configured one. -1: `own` is no such
 * folder. */
static int moved_folder(const char *own, char *to, size_t size)
{
    static const char programs[] = SH_BINDIR, modules[] = SH_PKGLIBDIR;
    size_t same = 0, n = strlen(own);
    for (size_t i = 0; programs[i] && programs[i] == modules[i]; i++)
        same = programs[i] == '/' ? i : same;
    size_t rest = sizeof programs - 1 - same;           /* "/bin" */
    if (n < rest || strcmp(own + n - rest, programs + same))
        return -1;
    snprintf(to, size, "%.*s%s", (int)(n - rest), own, modules + same);
    return strcmp(to, modules) ? 0 : -1;
}

static void list_places(struct places *p, const char *in_build)
{
    const char *chosen = getenv("SH_MODULE_DIR");
    size_t size = sizeof p->at[0];
    p->n = 0;
    if (chosen && *chosen) {
        snprintf(p->at[p->n++], size, "%s", chosen);
        return;
    }
    char *own = p->at[0];
    if (!own_folder(own, size - strlen(in_build) - 1)) {
        size_t used = strlen(own);
        int is_moved = !moved_folder(own, p->at[1], size);
        snprintf(own + used, size - used, "/%s", in_build);
        p->n += 1 + is_moved;
    }
    snprintf(p->at[p->n++], size, "%s", SH_PKGLIBDIR);
}

static int is_there(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int sh_module_find(const char *name, const char *in_build, char path[SH_PATH])
{
    struct places p;
    list_places(&p, in_build);
    for (int i = 0; i < p.n; i++) {
        snprintf(path, SH_PATH, "%s/%s.so", p.at[i], name);
        if (is_there(path))
            return 1;
    }
    for (int i = 0, used = 0; i < p.n; i++)
        used += snprintf(path + used, (size_t)(SH_PATH - used), "%s%.260s", i ? " or " : "", p.at[i]);
    return 0;
}
