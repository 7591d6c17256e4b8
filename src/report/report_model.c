/* SPDX-License-Identifier: Apache-2.0 */
#include "src/report/report_model.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/capacity/capacity_names.h"
#include "src/app/capacity/capacity_quality.h"
#include "src/model/config/config.h"
#include "src/model/families/family.h"

/* The word after --model in a typed command; for free(). NULL: none. */
static char *typed_model(const char *line)
{
    const char *at = strstr(line, "--model");
    if (!at || (at[7] != ' ' && at[7] != '='))
        return NULL;
    const char *word = at + 8;
    int quoted = *word == '\'';
    word += quoted;
    return xasprintf("%.*s", (int)strcspn(word, quoted ? "'" : " "), word);
}

/* If there is such a model, its positions are the length, unless one was asked for. */
static int try_model(const struct sh_report *r, struct sh_report_model *m, const struct sh_capacity_names *names,
                     const char *name, struct sh_err *e)
{
    struct sh_kv_shape shape;
    if (!name || sh_capacity_model(names, name, 0, &shape, e))
        return 0;
    m->name = name;
    m->length = r->length ? r->length : shape.f.max_pos > 0 ? shape.f.max_pos : 2048;
    sh_kv_shape_clear(&shape);
    return 1;
}

int sh_report_find_model(const struct sh_report *r, struct sh_report_model *m, struct sh_err *e)
{
    struct sh_capacity_names names;
    struct sh_err missed = {0};         /* an unknown name is not a failure */
    int found = 0;
    if (sh_capacity_names_open(&names, r->gpus, NULL, e))
        return -1;
    if (r->model)
        found = try_model(r, m, &names, r->model, e);
    for (int i = 0; i < r->n_store && !found && !r->model; i++)
        if (r->store[i].n_run) {
            free(m->from_trace);
            m->from_trace = typed_model(r->store[i].run[0].command);
            found = try_model(r, m, &names, r->store[i].run[0].model, &missed) ||
                    try_model(r, m, &names, m->from_trace, &missed);
        }
    if (!found && missed.is_io)
        *e = missed;
    sh_capacity_names_close(&names);
    return !found && (r->model || missed.is_io) ? -1 : found;
}

/* "…/models--facebook--opt-125m/…", a folder of the hub's cache: "facebook/opt-125m"; NULL: another. For free(). */
static char *hub_name(const char *path)
{
    static const char models[] = "models--";
    const char *at = strstr(path, models), *owner = at ? at + strlen(models) : "", *name = strstr(owner, "--");
    size_t end = strcspn(owner, "/");
    if (!name || name >= owner + end)
        return NULL;
    return xasprintf("%.*s/%.*s", (int)(name - owner), owner, (int)(owner + end - name - 2), name + 2);
}

char *sh_report_known_as(const struct sh_report *r, const struct sh_stored_run *run)
{
    struct sh_err ignored;
    char *typed = typed_model(run->command), *known = NULL;
    int is_asked = r->model && sh_capacity_same_model(r->model, run->model);
    const char *path = is_asked ? r->model : typed ? typed : "", *said = NULL;
    struct sh_config *c = *path ? sh_config_open(path, &ignored) : NULL;
    const struct sh_family *f = c ? sh_config_family(c, &ignored) : NULL;
    char *name = hub_name(path);
    if (c)
        sh_config_word(c, "_name_or_path", &said, &ignored);
    if (!name && said && *said)
        name = xstrdup(said);
    if (name && !sh_capacity_same_model(name, run->model))
        known = xasprintf(" (%s)", name);
    else if (!name && f)
        known = xasprintf(" (%s%s%s, %d layer%s)", strchr(path, '/') ? path : "", strchr(path, '/') ? ": " : "",
                          f->name, run->n_layer, run->n_layer == 1 ? "" : "s");
    sh_config_close(c);
    free(name);
    free(typed);
    return known ? known : xstrdup("");
}

void sh_report_model_clear(struct sh_report_model *m)
{
    free(m->from_trace);
}

int sh_report_measured(const struct sh_report *r, int *at, struct sh_err *e)
{
    *at = -1;
    for (int i = 0; i < r->n_store && *at < 0; i++) {
        struct sh_quality_point *point;
        struct sh_err none = {0};
        int n;
        if (r->store[i].n_run && sh_report_is_random(&r->store[i].run[0]))
            continue;
        if (sh_quality_read(r->store[i].path, NULL, &point, &n, &none)) {
            if (!none.is_io)
                continue;
            *e = none;
            return -1;
        }
        free(point);
        if (n)
            *at = i;
    }
    return 0;
}
