/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "src/base/file.h"

enum { CUDA, CPU, N_KNOWN };

const char *const sh_backend_names[N_KNOWN + 1] = {[CUDA] = "cuda", [CPU] = "cpu"};

static void not_built(struct sh_module *m, const char *name)
{
    m->state = SH_MODULE_NOT_BUILT;
    sh_absent(&m->why, "backend %s: not built: there is no %s.so in %.801s (was the program "
                       "configured without it?)", name, name, m->path);
    sh_hint(&m->why, "./configure --with-%s && make builds it", name);
    m->path[0] = '\0';
}

/* The libraries that a module lacks are of no use without a driver: where that is not here either, it is said, too. */
static void cannot_load(struct sh_module *m, const char *name)
{
    const char *why = dlerror();
    sh_absent(&m->why, "backend %s: cannot load: %.800s", name, why ? why : m->path);
    int lacks = strstr(m->why.text, "cannot open shared object file") != NULL;
    if (lacks && !strcmp(name, sh_backend_names[CUDA]) && !dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
        size_t used = strlen(m->why.text);
        snprintf(m->why.text + used, sizeof m->why.text - used,
                 "; nor is there an NVIDIA driver on this machine (libcuda.so.1 was not found)");
    }
}

static void load(struct sh_module *m, const char *name)
{
    void *file = dlopen(m->path, RTLD_NOW | RTLD_LOCAL);
    const struct sh_backend *b = file ? dlsym(file, SH_BACKEND_SYMBOL) : NULL;
    m->state = SH_MODULE_CANNOT_LOAD;
    if (!b)
        cannot_load(m, name);
    else if (b->abi != SH_BACKEND_ABI)
        sh_absent(&m->why, "backend %s: cannot load: %s: built for another version: its interface version is %u, this "
                           "program's is %u", name, m->path, b->abi, (unsigned)SH_BACKEND_ABI);
    else if (strcmp(b->name, name))
        sh_absent(&m->why, "backend %s: cannot load: %s: holds backend \"%s\", expected \"%s\"", name, m->path, b->name,
                  name);
    else {
        m->state = SH_MODULE_READY;
        m->backend = b;
    }
}

const struct sh_module *sh_backend_look(const char *name)
{
    static struct sh_module known[N_KNOWN] = {[CPU] = {.backend = &sh_backend_cpu}};
    static int looked[N_KNOWN] = {[CPU] = 1};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < N_KNOWN; i++) {
        if (strcmp(name, sh_backend_names[i]))
            continue;
        pthread_mutex_lock(&lock);
        if (!looked[i])
            (sh_module_find(name, "kernels", known[i].path) ? load : not_built)(&known[i], name);
        looked[i] = 1;
        pthread_mutex_unlock(&lock);
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
        sh_misused(e, "unknown backend \"%s\"; expected auto, cpu or cuda", name);
    else if (!m->backend)
        *e = m->why;
    return m ? m->backend : NULL;
}
