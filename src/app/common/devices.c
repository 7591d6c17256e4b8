/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/common/devices.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/load.h"
#include "src/base/mem.h"
#include "src/base/out.h"
#include "src/base/progress.h"

/* The ordinals requested, of this backend. */
static int resolve(const struct sh_backend *b, const struct sh_ordinals *asked, struct sh_ordinals *to,
                   struct sh_err *e)
{
    *to = *asked;
    if (!asked->all && !asked->n)
        to->n = 1;                      /* at[0] is 0 */
    if (!asked->all)
        return 0;
    int n = b->count(e);
    if (n < 0)
        return -1;
    if (n == 0)
        return sh_absent(e, "backend %s: cannot open: this machine has no device for it", b->name);
    to->n = n < SH_MAX_ORDINAL + 1 ? n : SH_MAX_ORDINAL + 1;
    for (int i = 0; i < to->n; i++)
        to->at[i] = i;
    return 0;
}

static int open_all(struct sh_devices *d, const char *name, const struct sh_common *c, size_t memory_bytes,
                    struct sh_err *e)
{
    struct sh_ordinals list;
    struct sh_devices found = {.backend = sh_backend_find(name, e), .stages = d->stages,
                               .x_bits = d->x_bits};
    if (!found.backend || resolve(found.backend, &c->device, &list, e))
        return -1;
    int each = (int)c->threads / list.n, left = (int)c->threads % list.n;
    found.at = xcalloc((size_t)list.n, sizeof *found.at);
    for (int i = 0; i < list.n; i++) {
        struct sh_open o = {.ordinal = list.at[i], .n_threads = each + (i < left), .memory_bytes = memory_bytes,
                            .stages = d->stages, .x_bits = d->x_bits};
        o.n_threads = o.n_threads > 0 ? o.n_threads : 1;
        found.n_threads = i ? found.n_threads : o.n_threads;
        if (!(found.at[i] = found.backend->open(&o, e))) {
            sh_devices_close(&found);
            return -1;
        }
        found.n++;
    }
    *d = found;
    if (d->stages)
        d->stages->devices = d->n;
    return 0;
}

/* A backend that is not built, or without a device for it, is no surprise; one that cannot use its device is. */
static int is_unexpected(const char *name)
{
    const struct sh_module *m = sh_backend_look(name);
    struct sh_err ignored;
    return m->state == SH_MODULE_READY ? m->backend->count(&ignored) > 0 : m->state != SH_MODULE_NOT_BUILT;
}

int sh_devices_open(struct sh_devices *d, const struct sh_common *c, size_t memory_bytes, struct sh_err *e)
{
    const struct sh_ordinals *asked = &c->device;
    if (strcmp(c->backend, "auto"))
        return open_all(d, c->backend, c, memory_bytes, e);
    int only_first = asked->all || !asked->n || (asked->n == 1 && asked->at[0] == 0), bad = -1;
    for (int i = 0; bad && sh_backend_names[i]; i++) {
        const char *next = sh_backend_names[i + 1];
        bad = open_all(d, sh_backend_names[i], c, memory_bytes, e);
        if (!bad || !next || !only_first)
            break;
        if (!c->quiet && (c->verbose || is_unexpected(sh_backend_names[i])))
            sh_sayf("shears: ", "%s; using %s", e->text, next);
    }
    return bad;
}

void sh_devices_close(struct sh_devices *d)
{
    for (int i = 0; i < d->n; i++)
        d->backend->close(d->at[i]);
    free(d->at);
    *d = (struct sh_devices){0};
}

char *sh_devices_chips(const struct sh_devices *d)
{
    char *all = xstrdup("");
    for (int i = 0, same; i < d->n; i += same) {
        struct sh_props first, other;
        d->backend->props(d->at[i], &first);
        for (same = 1; i + same < d->n; same++) {
            d->backend->props(d->at[i + same], &other);
            if (strcmp(first.chip, other.chip))
                break;
        }
        char *longer = same > 1 ? xasprintf("%s%s%d x %s", all, i ? "; " : "", same, first.chip)
                                : xasprintf("%s%s%s", all, i ? "; " : "", first.chip);
        free(all);
        all = longer;
    }
    return all;
}

struct sh_stages *sh_timing_begin(struct sh_timing *t, int on)
{
    *t = (struct sh_timing){.began_s = sh_now_s(), .on = on};
    return on ? &t->stages : NULL;
}

void sh_timing_put(struct sh_out *o, const struct sh_timing *t)
{
    sh_stages_put(o, t->on ? &t->stages : NULL, sh_now_s() - t->began_s);
}

void sh_timing_tell(const struct sh_timing *t, FILE *to)
{
    struct sh_err ignored;
    if (!t->on)
        return;
    struct sh_out *o = sh_out_new();
    sh_timing_put(o, t);
    sh_out_write(o, SH_OUT_TEXT, to, &ignored);
    sh_out_free(o);
}
