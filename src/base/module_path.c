/* SPDX-License-Identifier: Apache-2.0 */
/* See file.h. */
#include "src/base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct places {
    char at[2][SH_PATH - 64];           /* leaves room for a module's name */
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

static void list_places(struct places *p, const char *beside)
{
    const char *chosen = getenv("SH_MODULE_DIR");
    size_t size = sizeof p->at[0];
    p->n = 0;
    if (chosen && *chosen) {
        snprintf(p->at[p->n++], size, "%s", chosen);
        return;
    }
    char *own = p->at[0];
    if (!own_folder(own, size - strlen(beside) - 1)) {
        size_t used = strlen(own);
        snprintf(own + used, size - used, "/%s", beside);
        p->n++;
    }
    snprintf(p->at[p->n++], size, "%s", SH_PKGLIBDIR);
}

static int is_there(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int sh_module_find(const char *name, const char *beside, char path[SH_PATH])
{
    struct places p;
    list_places(&p, beside);
    for (int i = 0; i < p.n; i++) {
        snprintf(path, SH_PATH, "%s/%s.so", p.at[i], name);
        if (is_there(path))
            return 1;
    }
    snprintf(path, SH_PATH, "%.400s%s%.400s", p.at[0], p.n > 1 ? " or " : "", p.n > 1 ? p.at[1] : "");
    return 0;
}
