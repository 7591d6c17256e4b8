/* SPDX-License-Identifier: Apache-2.0 */
/* See load.h. Relies on /proc/self/exe for the program's own folder. */
#include "kernels/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/cpu.h"

enum { CUDA, CPU, N_KNOWN };

const char *const sh_backend_names[N_KNOWN + 1] = {[CUDA] = "cuda", [CPU] = "cpu"};

struct places {
    char at[2][sizeof ((struct sh_module *)0)->path - 64];      /* leaves room for a module's name */
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

static void list_places(struct places *p)
{
    const char *chosen = getenv("SH_MODULE_DIR");
    size_t size = sizeof p->at[0];
    p->n = 0;
    if (chosen && *chosen) {
        snprintf(p->at[p->n++], size, "%s", chosen);
        return;
    }
    char *beside = p->at[0];
    if (!own_folder(beside, size - sizeof "/kernels")) {
        snprintf(beside + strlen(beside), sizeof "/kernels", "/kernels");
        p->n++;
    }
    snprintf(p->at[p->n++], size, "%s", SH_PKGLIBDIR);
}

/* What cannot even be looked at is left to dlopen, which says why. */
static int is_there(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static void not_built(struct sh_module *m, const char *name, const struct places *p)
{
    m->state = SH_MODULE_NOT_BUILT;
    m->path[0] = '\0';
    sh_absent(&m->why, "backend %s: not built: there is no %s.so in %.400s%s%.400s; a program that was configured "
              "without it has none", name, name, p->at[0], p->n > 1 ? " or " : "", p->n > 1 ? p->at[1] : "");
    sh_hint(&m->why, "./configure --with-%s && make builds it", name);
}

static void load(struct sh_module *m, const char *name)
{
    void *file = dlopen(m->path, RTLD_NOW | RTLD_LOCAL);
    const struct sh_backend *b = file ? dlsym(file, SH_BACKEND_SYMBOL) : NULL;
    m->state = SH_MODULE_CANNOT_LOAD;
    if (!b)
        sh_absent(&m->why, "backend %s: cannot load: %s", name, dlerror());
    else if (b->abi != SH_BACKEND_ABI)
        sh_absent(&m->why, "backend %s: cannot load: %s: built with another version: its interface is number %u, "
                  "this program's is %u", name, m->path, b->abi, (unsigned)SH_BACKEND_ABI);
    else if (strcmp(b->name, name))
        sh_absent(&m->why, "backend %s: cannot load: %s: holds backend \"%s\", expected \"%s\"", name, m->path, b->name,
                  name);
    else {
        m->state = SH_MODULE_READY;
        m->backend = b;
    }
}

static void look(struct sh_module *m, const char *name)
{
    struct places p;
    list_places(&p);
    for (int i = 0; i < p.n; i++) {
        snprintf(m->path, sizeof m->path, "%s/%s.so", p.at[i], name);
        if (is_there(m->path)) {
            load(m, name);
            return;
        }
    }
    not_built(m, name, &p);
}

const struct sh_module *sh_backend_look(const char *name)
{
    static struct sh_module known[N_KNOWN] = {[CPU] = {.backend = &sh_backend_cpu}};
    static int looked[N_KNOWN] = {[CPU] = 1};
    for (int i = 0; i < N_KNOWN; i++) {
        if (strcmp(name, sh_backend_names[i]))
            continue;
        if (!looked[i])
            look(&known[i], name);
        looked[i] = 1;
        return &known[i];
    }
    return NULL;
}

const struct sh_backend *sh_backend_find(const char *name, struct sh_err *e)
{
    int any = !strcmp(name, "auto");
    for (int i = 0; i < N_KNOWN && any; i++)
        if (sh_backend_look(sh_backend_names[i])->backend)
            return sh_backend_look(sh_backend_names[i])->backend;
    const struct sh_module *m = sh_backend_look(name);
    if (!m)
        sh_misused(e, "backend \"%s\": there is none of that name; known are auto, cpu, cuda", name);
    else if (!m->backend)
        *e = m->why;
    return m ? m->backend : NULL;
}
