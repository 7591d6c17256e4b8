/* SPDX-License-Identifier: Apache-2.0 */
#include "src/jobs/pipeline.h"

#include <stdio.h>
#include <time.h>

#include "src/base/progress.h"

enum { START = 11, HIDDEN = 12, FINISHED = 13, PASSED = 14, READY = 15 };       /* tags; work_queue.c has its own */

/* The last rank: reports how much of its work is done. */
static void tell_passed(void *to, double share)
{
    enum { EACH_S = 1 };
    struct sh_pipeline *p = to;
    char why[200];
    double now = sh_now_s();
    if (share <= p->passed || (share < 1 && now - p->told_s < EACH_S))
        return;
    p->told_s = now;
    p->passed = share;
    p->c->ranks->send(0, PASSED, &share, sizeof share, p->c->timeout_s, why, sizeof why);   /* the next says more */
}

/* Rank 0: takes progress reports of the last rank. Was there one? */
static int take_passed(struct sh_pipeline *p)
{
    const struct sh_job *c = p->c;
    char why[200];
    double share;
    size_t bytes;
    int from, any = 0;
    while (c->ranks->poll(c->me.size - 1, PASSED, &share, sizeof share, &bytes, &from, why, sizeof why) == 1) {
        any = 1;
        if (bytes == sizeof share && share > p->passed && share <= 1)
            p->passed = share;
    }
    snprintf(why, sizeof why, "through %d ranks", c->me.size);
    sh_progress_show(&p->shown, 100 * p->passed, why);
    return any;
}

static void show_passed(void *to, double own_share)
{
    (void)own_share;                    /* far ahead of the last rank's */
    take_passed(to);
}

static void not_told(void *to, double share)
{
    (void)to;
    (void)share;
}

/* Waits for a one-byte message. A rank is silent while it works; as long as results come through the last one, all
 * are alive. */
static int await(struct sh_pipeline *p, int rank, int tag, struct sh_err *e)
{
    const struct sh_job *c = p->c;
    const struct timespec pause = {0, 500000};
    char byte, why[400];
    size_t bytes;
    int from, got;
    double heard_s = sh_now_s(), told_s = heard_s;
    while (!(got = c->ranks->poll(rank, tag, &byte, 1, &bytes, &from, why, sizeof why))) {
        if (!c->me.rank && take_passed(p))
            heard_s = sh_now_s();
        if (sh_now_s() - heard_s > c->timeout_s)
            return sh_fail(e, "rank %d: no heartbeat for %.0f s; marked as lost", rank, c->timeout_s);
        if (!c->me.rank && sh_now_s() - told_s > 1) {           /* ranks that have finished wait, too */
            told_s = sh_now_s();
            sh_heartbeat_tell(c->ranks, c->me.size, NULL);
        }
        nanosleep(&pause, NULL);
    }
    return got < 0 ? sh_fail(e, "mpi: receiving failed: %s", why) : 0;
}

/* ---- hidden states: sent when the next rank is ready to receive ---- */

static int take(void *to, float *rows, size_t bytes, struct sh_err *e)
{
    const struct sh_job *c = ((const struct sh_pipeline *)to)->c;
    char byte = 0, why[400];
    size_t got;
    if (c->ranks->send(c->me.rank - 1, READY, &byte, 1, c->timeout_s, why, sizeof why))
        return sh_fail(e, "rank %d cannot be reached: %s", c->me.rank - 1, why);
    if (sh_ranks_await(c->ranks, c->me.rank - 1, HIDDEN, rows, bytes, &got, c->timeout_s, e))
        return -1;
    return got == bytes ? 0 : sh_fail(e, "rank %d sent %zu bytes of hidden states, expected %zu: its device uses a "
                                         "different batch size", c->me.rank - 1, got, bytes);
}

static int give(void *to, const float *rows, size_t bytes, struct sh_err *e)
{
    const struct sh_job *c = ((const struct sh_pipeline *)to)->c;
    char why[400];
    if (await(to, c->me.rank + 1, READY, e))
        return -1;
    if (c->ranks->send(c->me.rank + 1, HIDDEN, rows, bytes, c->timeout_s, why, sizeof why))
        return sh_fail(e, "sending hidden states to rank %d failed: %s", c->me.rank + 1, why);
    return 0;
}

int sh_pipeline_begin(struct sh_pipeline *p, const struct sh_job *c, int last_layer, struct sh_err *e)
{
    int n = last_layer + 1, rank = c->me.rank, size = c->me.size;
    if (!c->ranks)
        return sh_misused(e, "--pipeline requires several ranks: mpirun -n N shears trace ...");
    if (size > n)
        return sh_misused(e, "--pipeline: found %d ranks for %d layers, expected at most one rank per layer", size, n);
    *p = (struct sh_pipeline){.c = c, .link = {.first = rank * n / size, .last = (rank + 1) * n / size - 1,
                                               .take = take, .give = give, .to = p}};
    return 0;
}

int sh_pipeline_start(struct sh_pipeline *p, struct sh_err *e)
{
    const struct sh_job *c = p->c;
    char byte = 0, why[400];
    size_t bytes;
    sh_progress_listen(!c->me.rank ? show_passed : c->me.rank == c->me.size - 1 ? tell_passed : not_told, p);
    if (c->me.rank)
        return sh_ranks_await(c->ranks, 0, START, &byte, 1, &bytes, c->timeout_s, e);
    sh_progress_begin(&p->shown, "tracing", "percent", 100, c->common.quiet);
    for (int i = 1; i < c->me.size; i++)
        if (c->ranks->send(i, START, &byte, 1, c->timeout_s, why, sizeof why))
            return sh_fail(e, "rank %d cannot be reached: %s", i, why);
    return 0;
}

void sh_pipeline_finish(struct sh_pipeline *p, struct sh_job *c, int bad, struct sh_err *e)
{
    char byte = 0, why[400];
    sh_job_close(c);
    if (!bad && p->c->me.rank)
        bad = c->ranks->send(0, FINISHED, &byte, 1, c->timeout_s, why, sizeof why) ? sh_fail(e, "rank 0: %s", why) : 0;
    for (int i = 1; i < c->me.size && !bad && !c->me.rank; i++)
        bad = await(p, i, FINISHED, e);
    sh_progress_listen(NULL, NULL);
    if (!c->me.rank) {
        take_passed(p);                 /* leave no message unread */
        sh_progress_end(&p->shown);
    }
    if (!bad)
        return;
    snprintf(why, sizeof why, "shears: rank %d: ", c->me.rank);
    sh_say(why, e->text);
    sh_hint(e, "committed layers are kept next to %s; run the same command again to resume", c->db);
    sh_say("hint: ", e->hint);
    c->ranks->abort((int)e->status);
}
