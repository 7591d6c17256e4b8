/* SPDX-License-Identifier: Apache-2.0 */
/* See part.h. */
#include "src/cli/part.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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
        return sh_misused(e, "--shard %s: expected I/N with I from 1 to N, N at most %d", text, MOST_PARTS);
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

int sh_part_mark(struct sh_store *s, const struct sh_part *p, const char *command, uint64_t job, uint64_t model,
                 int has_weights, struct sh_err *e)
{
    struct sh_shard shard = {.part = p->part, .parts = p->parts};
    snprintf(shard.job, sizeof shard.job, "%016" PRIx64, job);
    snprintf(shard.model, sizeof shard.model, "%s%016" PRIx64, has_weights ? "" : SH_SHARD_SHAPE, model);
    snprintf(shard.command, sizeof shard.command, "%s", command);
    snprintf(shard.program, sizeof shard.program, "%s", PACKAGE_VERSION);
    return sh_shard_mark(s, &shard, e);
}
