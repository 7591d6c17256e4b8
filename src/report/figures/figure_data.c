/* SPDX-License-Identifier: Apache-2.0 */
/* See figure_data.h. */
#include "src/report/figures/figure_data.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

/* X(name) stands for figure_<name>.c and its sh_figure_load_<name>. */
#define LOADERS(X) \
    X(maps) \
    X(persistence) \
    X(curves) \
    X(dropped) \
    X(plan) \
    X(evals) \
    X(drift)

#define DECLARE(name) extern const struct sh_figure_loader sh_figure_load_##name;
LOADERS(DECLARE)

#define ENTRY(name) &sh_figure_load_##name,
static const struct sh_figure_loader *const loaders[] = {LOADERS(ENTRY)};

void *sh_figure_keep_by(struct sh_figure_data *d, void *at, void (*release)(void *at))
{
    d->kept = xreallocarray(d->kept, (size_t)d->n_kept + 1, sizeof *d->kept);
    d->kept[d->n_kept++] = (struct sh_figure_kept){at, release};
    return at;
}

void *sh_figure_keep(struct sh_figure_data *d, void *at)
{
    return sh_figure_keep_by(d, at, free);
}

static const struct sh_figure_loader *find(unsigned figures)
{
    for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++)
        if (loaders[i]->figures & figures)
            return loaders[i];
    return NULL;
}

const struct sh_figure_loader *sh_figure_loader(const struct sh_figure *f)
{
    return find(1u << f->number);
}

struct sh_figure_data *sh_figure_data_empty(void)
{
    return xcalloc(1, sizeof(struct sh_figure_data));
}

struct sh_figure_data *sh_figure_data_new(unsigned figures, const struct sh_figure_request *q, struct sh_err *e)
{
    struct sh_figure_data *d = sh_figure_data_empty();
    if (!find(figures)->load(d, figures, q, e))
        return d;
    sh_figure_data_free(d);
    return NULL;
}

const char *sh_figure_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *sh_figure_text(const char *name, const char *path)
{
    const char *known[] = {path, sh_figure_file(path)};
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(known[i]);
        if (!strncmp(name, known[i], n) && name[n] == '=')
            return name + n + 1;
    }
    return NULL;
}

char *sh_figure_named(const struct sh_figure_request *q, const char *path, char *own)
{
    for (int i = 0; own && i < q->n_name; i++) {
        const char *text = sh_figure_text(q->name[i], path);
        if (text) {
            free(own);
            return xstrdup(text);
        }
    }
    return own;
}

char *sh_figure_label(const char *model, const char *weights)
{
    return xasprintf("%s%s", model, strncmp(weights, "random", 6) ? "" : ", random weights");
}

void sh_figure_data_free(struct sh_figure_data *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n_kept; i++)
        d->kept[i].release(d->kept[i].at);
    free(d->kept);
    free(d);
}
