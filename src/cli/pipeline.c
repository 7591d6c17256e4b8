/* SPDX-License-Identifier: Apache-2.0 */
/* See pipeline.h. */
#include "src/cli/pipeline.h"

#include <stdio.h>

#include "src/cli/commands.h"

enum { START = 11, HIDDEN = 12, FINISHED = 13 };        /* tags; share.c has its own            */

static int take(void *to, float *rows, size_t bytes, struct sh_err *e)
{
    const struct sh_cluster *c = ((const struct sh_pipeline *)to)->c;
    size_t got;
    int from;
    if (sh_ranks_await(c->ranks, c->me.rank - 1, HIDDEN, rows, bytes, &got, &from, c->timeout_s, e))
        return -1;
    return got == bytes ? 0 : sh_fail(e, "rank %d passed %zu bytes of hidden states, expected %zu: its device takes "
                                      "other numbers of tokens at once", from, got, bytes);
}

static int give(void *to, const float *rows, size_t bytes, struct sh_err *e)
{
    const struct sh_cluster *c = ((const struct sh_pipeline *)to)->c;
    char why[400];
    if (c->ranks->send(c->me.rank + 1, HIDDEN, rows, bytes, c->timeout_s, why, sizeof why))
        return sh_fail(e, "hidden states for rank %d: %s", c->me.rank + 1, why);
    return 0;
}

int sh_pipeline_begin(struct sh_pipeline *p, const struct sh_cluster *c, int last_layer, struct sh_err *e)
{
    int n = last_layer + 1, rank = c->me.rank, size = c->me.size;
    if (!c->ranks)
        return sh_misused(e, "--pipeline needs several ranks: mpirun -n N shears trace ...");
    if (size > n)
        return sh_misused(e, "--pipeline: %d ranks for %d layers", size, n);
    *p = (struct sh_pipeline){.c = c, .link = {.first = rank * n / size, .last = (rank + 1) * n / size - 1,
                                               .take = take, .give = give, .to = p}};
    return 0;
}

int sh_pipeline_start(const struct sh_pipeline *p, struct sh_err *e)
{
    const struct sh_cluster *c = p->c;
    char byte = 0, why[400];
    size_t bytes;
    int from;
    if (c->me.rank)
        return sh_ranks_await(c->ranks, 0, START, &byte, 1, &bytes, &from, c->timeout_s, e);
    for (int i = 1; i < c->me.size; i++)
        if (c->ranks->send(i, START, &byte, 1, c->timeout_s, why, sizeof why))
            return sh_fail(e, "rank %d cannot be reached: %s", i, why);
    return 0;
}

void sh_pipeline_finish(struct sh_pipeline *p, struct sh_cluster *c, int bad, struct sh_err *e)
{
    char byte = 0, why[400];
    size_t bytes;
    int from;
    sh_cluster_close(c);
    if (!bad && p->c->me.rank)
        bad = c->ranks->send(0, FINISHED, &byte, 1, c->timeout_s, why, sizeof why) ? sh_fail(e, "rank 0: %s", why) : 0;
    for (int i = 1; i < c->me.size && !bad && !c->me.rank; i++)
        bad = sh_ranks_await(c->ranks, i, FINISHED, &byte, 1, &bytes, &from, c->timeout_s, e);
    if (!bad)
        return;
    snprintf(why, sizeof why, "shears: rank %d: ", c->me.rank);
    sh_say(why, e->text);
    sh_hint(e, "what was committed is kept beside %s; the same command goes on from there", c->db);
    sh_say("hint: ", e->hint);
    c->ranks->abort((int)e->status);
}
