/* SPDX-License-Identifier: Apache-2.0 */
#include "src/jobs/shard_option.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum { MOST_PARTS = 100000 };

int sh_part_parse(const char *text, struct sh_part *out, struct sh_err *e)
{
    int part, parts, used = 0;
    *out = (struct sh_part){0};
    if (!text)
        return 0;
    if (sscanf(text, "%9d/%9d%n", &part, &parts, &used) != 2 || text[used] || part < 1 || part > parts ||
        parts > MOST_PARTS)
        return sh_misused(e, "--shard: \"%s\", expected I/N with 1 <= I <= N <= %d", text, MOST_PARTS);
    *out = (struct sh_part){part, parts};
    return 0;
}

char *sh_part_path(const char *db, const struct sh_part *p)
{
    if (!p->parts)
        return db ? xstrdup(db) : NULL;
    int digits = snprintf(NULL, 0, "%d", p->parts);
    return xasprintf("%s.shard-%0*d-of-%d", db, digits, p->part, p->parts);
}

int sh_part_has(const struct sh_part *p, int i)
{
    return !p->parts || i % p->parts == p->part - 1;
}

void sh_part_hash(uint64_t *h, const char *text)
{
    do
        *h = (*h ^ (unsigned char)*text) * 0x100000001b3u;
    while (*text++);
}

static struct sh_shard shard_of(const struct sh_part *p, const char *command, uint64_t job, uint64_t model,
                                int has_weights)
{
    struct sh_shard shard = {.part = p->part, .parts = p->parts};
    snprintf(shard.job, sizeof shard.job, "%016" PRIx64, job);
    snprintf(shard.model, sizeof shard.model, "%s%016" PRIx64, has_weights ? "" : SH_SHARD_SHAPE, model);
    snprintf(shard.command, sizeof shard.command, "%s", command);
    snprintf(shard.program, sizeof shard.program, "%s", PACKAGE_VERSION);
    return shard;
}

int sh_part_check(struct sh_store *s, const struct sh_part *p, uint64_t job, struct sh_err *e)
{
    struct sh_shard shard = shard_of(p, "trace", job, 0, 1);
    return sh_store_lock(s, e) || sh_shard_check(s, &shard, NULL, 0, e) ? -1 : 0;
}

int sh_part_mark(struct sh_store *s, const struct sh_part *p, uint64_t job, uint64_t model, int is_whole,
                 struct sh_err *e)
{
    struct sh_shard shard = shard_of(p, "trace", job, model, 1);
    return is_whole ? sh_inventory_mark(s, &shard, NULL, 0, 1, e) : sh_shard_mark(s, &shard, e);
}

struct named { const char *settings; int at; };

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int names = strcmp(x->settings, y->settings);
    return names ? names : x->at - y->at;
}

/* The items of this part: of[]; returns how many. */
static int own_settings(const struct sh_part_results *r, const char **of)
{
    struct named *all = xcalloc((size_t)r->n + 1, sizeof *all);
    int n = 0;
    for (int i = 0; i < r->n; i++)
        all[i] = (struct named){r->settings[i], i};
    qsort(all, (size_t)r->n, sizeof *all, by_name);
    for (int i = 0; i < r->n; i++)
        if ((!i || strcmp(all[i].settings, all[i - 1].settings)) && r->own[all[i].at])
            of[n++] = all[i].settings;
    free(all);
    return n;
}

int sh_part_mark_results(struct sh_store *s, const struct sh_part *p, const struct sh_part_results *r, int is_whole,
                         struct sh_err *e)
{
    uint64_t job = SH_PART_HASH;
    for (int i = 0; i < r->n; i++)
        sh_part_hash(&job, r->settings[i]);
    struct sh_shard shard = shard_of(p, r->command, job, r->model, r->has_weights);
    const char **of = xcalloc((size_t)r->n + 1, sizeof *of);
    int n = own_settings(r, of);
    int bad = (!is_whole && (sh_store_lock(s, e) || sh_shard_check(s, &shard, r->settings, r->n, e))) ||
              sh_inventory_mark(s, &shard, of, n, is_whole, e);
    free(of);
    return bad ? -1 : 0;
}
