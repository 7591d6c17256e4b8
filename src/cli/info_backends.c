/* SPDX-License-Identifier: Apache-2.0 */
/* See info.h. */
#include "src/cli/info.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/load.h"
#include "src/base/mem.h"

struct device {
    struct sh_props props;              /* chip is empty where the device did not open  */
    struct sh_err why;                  /* of that; else the text is empty              */
};

/* One backend on this machine. */
struct seen {
    const char *name, *state;
    const struct sh_module *module;
    struct sh_err why;                  /* unless usable                                */
    struct device *device;              /* [n]                                          */
    int n;
};

static void try_devices(struct seen *s, int n_threads)
{
    const struct sh_backend *b = s->module->backend;
    int usable = 0, n = b->count(&s->why);
    s->state = "cannot open";
    s->n = n > 0 ? n : 0;
    if (n == 0)
        sh_absent(&s->why, "backend %s: cannot open: this machine has no device for it", s->name);
    s->device = xcalloc((size_t)s->n, sizeof *s->device);
    for (int i = 0; i < s->n; i++) {
        struct device *v = &s->device[i];
        struct sh_dev *d = b->open(&(struct sh_open){.ordinal = i, .n_threads = n_threads}, &v->why);
        if (d)
            b->props(d, &v->props);
        else if (!usable)
            s->why = v->why;
        usable += d != NULL;
        b->close(d);
    }
    if (usable) {
        s->state = "usable";
        s->why = (struct sh_err){0};
    }
}

static void look_at(struct seen *s, const char *name, int n_threads)
{
    *s = (struct seen){.name = name, .module = sh_backend_look(name)};
    if (s->module->state == SH_MODULE_READY) {
        try_devices(s, n_threads);
        return;
    }
    s->state = s->module->state == SH_MODULE_NOT_BUILT ? "not built" : "cannot load";
    s->why = s->module->why;
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static void list_backends(struct sh_out *o, const struct seen *seen, int n)
{
    sh_out_list(o, "backends", "backends");
    for (const struct seen *s = seen; s < seen + n; s++) {
        sh_out_item(o);
        sh_out_text(o, "backend", "backend", s->name);
        sh_out_text(o, "state", "state", s->state);
        sh_out_bool(o, "usable", "usable", !strcmp(s->state, "usable"));
        sh_out_text(o, "module", "module", or_null(s->module->path));
        sh_out_text(o, "reason", "reason", or_null(s->why.text));
    }
    sh_out_end(o);
}

static void list_devices(struct sh_out *o, const struct seen *seen, int n)
{
    sh_out_list(o, "devices", "devices");
    for (const struct seen *s = seen; s < seen + n; s++)
        for (int i = 0; i < s->n; i++) {
            const struct sh_props *p = &s->device[i].props;
            sh_out_item(o);
            sh_out_text(o, "backend", "backend", s->name);
            sh_out_int(o, "device", "device", i);
            if (p->memory_bytes)
                sh_out_int(o, "memory_bytes", "memory, bytes", (long long)p->memory_bytes);
            else
                sh_out_text(o, "memory_bytes", "memory, bytes", NULL);
            sh_out_bool(o, "native_bf16", "native bf16", p->native_bf16);
            sh_out_text(o, "chip", "chip", or_null(p->chip));
            sh_out_text(o, "reason", "reason", or_null(s->device[i].why.text));
        }
    sh_out_end(o);
}

int sh_info_backends(const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    struct seen *seen = NULL;
    int n = 0;
    for (; sh_backend_names[n]; n++) {
        seen = xreallocarray(seen, (size_t)n + 1, sizeof *seen);
        look_at(&seen[n], sh_backend_names[n], (int)common->threads);
    }
    list_backends(o, seen, n);
    list_devices(o, seen, n);
    for (int i = 0; i < n; i++)
        if (seen[i].why.hint[0])
            sh_out_note(o, "hint: %s", seen[i].why.hint);
    for (int i = 0; i < n; i++)
        free(seen[i].device);
    free(seen);
    return sh_common_write(common, o, 0, e);
}
