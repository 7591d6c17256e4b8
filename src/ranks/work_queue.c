/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 serves in a thread of its own, the only one there that passes messages; its own worker
 * uses function calls, under the same lock. */
#include "src/ranks/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/mem.h"
#include "src/base/progress.h"

enum { TO_SERVER = 1, TO_WORKER = 2 };          /* tags                                           */
enum kind { ASK, BEAT, FAILED, GIVE, WAIT, STOP };
enum { NONE = -1, MOST_TRIES = 3 };
static const double send_s = 60;                /* messages of this size are sent without waiting  */

struct message {
    int kind, unit;                     /* ASK: unit that was finished, or NONE; STOP: ranks that were lost */
    double share;                       /* BEAT: of the unit that is done                         */
    int status;                         /* FAILED                                                 */
    char text[1024], hint[512];
};

static void nap(long ms)
{
    const struct timespec pause = {0, ms * 1000000};
    nanosleep(&pause, NULL);
}

/* ---- rank 0 ---- */

struct rank { int unit, stopped, lost; double heard_s, share; };
struct unit { double size; int number, done, out, tries; };

struct server {
    const struct sh_ranks *r;
    const struct sh_work_queue *s;
    int n_rank;
    struct rank *rank;
    struct unit *unit;                  /* in order of size                                       */
    int *place;                         /* of a unit's number in that order                       */
    unsigned char *stopped;             /* [n_rank]: waits for the end, and hears that rank 0 lives */
    double told_s;
    int left, failed;
    double total, finished, looked_s;
    struct sh_progress progress;
    struct sh_err error;
    pthread_mutex_t lock;
};

static int larger_first(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    return x->size != y->size ? (x->size < y->size) - (x->size > y->size) : x->number - y->number;
}

static void make_units(struct server *v)
{
    const struct sh_work_queue *s = v->s;
    v->unit = xcalloc((size_t)s->n + 1, sizeof *v->unit);
    v->place = xcalloc((size_t)s->n + 1, sizeof *v->place);
    for (int i = 0; i < s->n; i++) {
        v->unit[i] = (struct unit){.size = s->unit[i].size, .number = i, .done = s->unit[i].is_done};
        v->left += !v->unit[i].done;
        v->total += v->unit[i].done ? 0 : v->unit[i].size;
    }
    qsort(v->unit, (size_t)s->n, sizeof *v->unit, larger_first);
    for (int i = 0; i < s->n; i++)
        v->place[v->unit[i].number] = i;
}

static void fail_with(struct server *v, int rank, const char *text, const char *hint, int status)
{
    if (v->failed)
        return;
    v->failed = 1;
    sh_fail(&v->error, "%s", text);
    if (rank)
        sh_err_prefix(&v->error, "rank %d", rank);
    v->error.status = status;
    if (hint[0])
        sh_hint(&v->error, "%s", hint);
}

static void finish(struct server *v, int number)
{
    struct unit *u = number >= 0 && number < v->s->n ? &v->unit[v->place[number]] : NULL;
    if (!u || u->done)
        return;
    u->done = 1;
    v->left--;
    v->finished += u->size;
}

static int count_lost(const struct server *v)
{
    int lost = 0;
    for (int i = 0; i < v->n_rank; i++)
        lost += v->rank[i].lost;
    return lost;
}

/* The next unit for a free rank: its number, WAIT or STOP. */
static int next(struct server *v, int rank, int *number)
{
    struct rank *k = &v->rank[rank];
    k->unit = NONE;
    k->share = 0;
    k->lost = 0;
    k->stopped = v->failed || !v->left;
    if (k->stopped)
        return STOP;
    for (int i = 0; i < v->s->n; i++) {
        struct unit *u = &v->unit[i];
        if (u->done || u->out)
            continue;
        u->out = 1;
        u->tries++;
        k->unit = i;
        *number = u->number;
        return GIVE;
    }
    return WAIT;
}

/* Marks ranks that made no progress for too long as lost, so that their units go to others. Time in which rank 0 itself
 * was stopped does not count. */
static void look_for_lost(struct server *v, double now)
{
    double blind_s = now - v->looked_s > 1 ? now - v->looked_s : 0;
    v->looked_s = now;
    for (int i = 1; i < v->n_rank; i++) {
        struct rank *k = &v->rank[i];
        k->heard_s += blind_s;
        if (k->stopped || k->lost || now - k->heard_s <= v->s->timeout_s)
            continue;
        k->lost = 1;
        struct unit *u = k->unit >= 0 ? &v->unit[k->unit] : NULL;
        if (u && !u->done) {
            char text[128];
            snprintf(text, sizeof text, "unit %d was given up after %d ranks were lost on it (raise --rank-timeout if "
                     "ranks are slow)", u->number, u->tries);
            u->out = 0;
            if (u->tries == MOST_TRIES)
                fail_with(v, 0, text, "", SH_FAILED);
        }
        k->unit = NONE;
    }
}

static void serve_message(struct server *v, int from, const struct message *m)
{
    struct rank *k = &v->rank[from];
    struct message answer = {.unit = NONE};
    char why[200];
    k->heard_s = sh_now_s();
    if (m->kind == BEAT) {
        k->share = m->share;
        return;
    }
    if (m->kind == FAILED)
        fail_with(v, from, m->text, m->hint, m->status);
    else
        finish(v, m->unit);
    answer.kind = next(v, from, &answer.unit);
    if (answer.kind == STOP)
        answer.unit = count_lost(v);
    if (v->r->send(from, TO_WORKER, &answer, sizeof answer, send_s, why, sizeof why))
        k->heard_s = -1e9;              /* unreachable: lost at the next check */
}

static void show(struct server *v)
{
    char who[48];
    double done = v->finished;
    int busy = 0;
    for (int i = 0; i < v->n_rank; i++)
        if (v->rank[i].unit >= 0 && !v->unit[v->rank[i].unit].done) {
            done += v->rank[i].share * v->unit[v->rank[i].unit].size;
            busy++;
        }
    snprintf(who, sizeof who, "%d of %d ranks", busy, v->n_rank);
    sh_progress_show(&v->progress, 100 * done / (v->total > 0 ? v->total : 1), who);
}

static void *serve(void *argument)
{
    struct server *v = argument;
    for (int over = 0; !over;) {
        struct message m;
        char why[400];
        size_t bytes;
        int from, got;
        pthread_mutex_lock(&v->lock);
        while ((got = v->r->poll(-1, TO_SERVER, &m, sizeof m, &bytes, &from, why, sizeof why)) == 1)
            if (bytes == sizeof m)
                serve_message(v, from, &m);
        if (got < 0) {
            char said[sizeof why + 32];
            snprintf(said, sizeof said, "mpi: receiving failed: %s", why);
            fail_with(v, 0, said, "", SH_FAILED);
        }
        if (sh_interrupted())
            fail_with(v, 0, "interrupted", "finished work is kept; run the same command again to resume", SH_FAILED);
        look_for_lost(v, sh_now_s());
        if (sh_now_s() - v->told_s >= 1) {      /* idle ranks wait until the last unit is done, or its rank is lost */
            v->told_s = sh_now_s();
            for (int i = 1; i < v->n_rank; i++)
                v->stopped[i] = (unsigned char)(v->rank[i].stopped && !v->rank[i].lost);
            sh_heartbeat_tell(v->r, v->n_rank, v->stopped);
        }
        show(v);
        over = v->failed || !v->left;
        for (int i = 0; i < v->n_rank; i++)
            over &= v->rank[i].stopped || v->rank[i].lost;
        pthread_mutex_unlock(&v->lock);
        nap(1);
    }
    return NULL;
}

static void own_beat(void *to, double share)
{
    struct server *v = to;
    v->rank[0].share = share;           /* for display only: a torn value would be shown for a second */
}

static void work_here(struct server *v)
{
    struct sh_err e = {0};
    int finished = NONE, unit = NONE, bad = 0, what;
    do {
        pthread_mutex_lock(&v->lock);
        if (bad)
            fail_with(v, 0, e.text, e.hint, (int)e.status);
        else
            finish(v, finished);
        what = next(v, 0, &unit);
        pthread_mutex_unlock(&v->lock);
        finished = NONE;
        bad = 0;
        if (what == WAIT)
            nap(5);
        else if (what == GIVE && !(bad = v->s->run(v->s->to, unit, &e)))
            finished = unit;
    } while (what != STOP);
}

static int run_server(const struct sh_ranks *r, const struct sh_rank_place *me, const struct sh_work_queue *s,
                      int *lost, struct sh_err *e)
{
    struct server v = {.r = r, .s = s, .n_rank = me->size, .looked_s = sh_now_s()};
    pthread_t thread;
    v.rank = xcalloc((size_t)me->size, sizeof *v.rank);
    v.stopped = xcalloc((size_t)me->size, 1);
    for (int i = 0; i < me->size; i++)
        v.rank[i] = (struct rank){.unit = NONE, .heard_s = sh_now_s()};
    make_units(&v);
    sh_progress_begin(&v.progress, s->what, "percent", 100, s->quiet);
    pthread_mutex_init(&v.lock, NULL);
    sh_progress_listen(own_beat, &v);
    int problem = pthread_create(&thread, NULL, serve, &v), bad = 0;
    if (problem) {
        bad = sh_fail(e, "cannot create the thread that hands out work: %s", strerror(problem));
    } else {
        work_here(&v);
        pthread_join(thread, NULL);
    }
    sh_progress_listen(NULL, NULL);
    sh_progress_end(&v.progress);
    *lost = count_lost(&v);
    if (v.failed) {
        *e = v.error;
        bad = -1;
    }
    pthread_mutex_destroy(&v.lock);
    free(v.rank);
    free(v.stopped);
    free(v.unit);
    free(v.place);
    return bad;
}

/* ---- the others ---- */

struct worker {
    const struct sh_ranks *r;
    double beat_s, share;
};

static void tell_beat(void *to, double share)
{
    struct worker *w = to;
    struct message m = {.kind = BEAT, .unit = NONE, .share = share};
    char why[200];
    double now = sh_now_s();
    if (now - w->beat_s < 0.5 || share == w->share)
        return;
    w->beat_s = now;
    w->share = share;
    w->r->send(0, TO_SERVER, &m, sizeof m, send_s, why, sizeof why);    /* the next request will fail if it is gone */
}

static int ask(const struct worker *w, const struct message *question, double timeout_s, struct message *answer,
               struct sh_err *e)
{
    char why[400];
    size_t bytes;
    if (w->r->send(0, TO_SERVER, question, sizeof *question, timeout_s, why, sizeof why))
        return sh_fail(e, "rank 0 cannot be reached: %s", why);
    if (sh_ranks_await(w->r, 0, TO_WORKER, answer, sizeof *answer, &bytes, timeout_s, e))
        return -1;
    return bytes == sizeof *answer ? 0 : sh_fail(e, "rank 0 sent %zu bytes, expected %zu", bytes, sizeof *answer);
}

static void copy_error(struct message *m, const struct sh_err *e)
{
    m->kind = FAILED;
    m->status = (int)e->status;
    memcpy(m->text, e->text, sizeof m->text);
    memcpy(m->hint, e->hint, sizeof m->hint);
}

static int run_worker(const struct sh_ranks *r, const struct sh_work_queue *s, int *lost, struct sh_err *e)
{
    struct worker w = {.r = r};
    struct message question = {.kind = ASK, .unit = NONE}, answer;
    sh_progress_listen(tell_beat, &w);
    int bad;
    while (!(bad = ask(&w, &question, s->timeout_s, &answer, e)) && answer.kind != STOP) {
        struct sh_err mine = {0};
        question = (struct message){.kind = ASK, .unit = NONE};
        if (answer.kind == WAIT)
            nap(20);
        else if (s->run(s->to, answer.unit, &mine))
            copy_error(&question, &mine);
        else
            question.unit = answer.unit;
    }
    sh_progress_listen(NULL, NULL);
    *lost = bad ? 0 : answer.unit;
    return bad;
}

int sh_work_queue_run(const struct sh_ranks *r, const struct sh_rank_place *me, const struct sh_work_queue *s,
                      int *lost, struct sh_err *e)
{
    *lost = 0;
    return me->rank ? run_worker(r, s, lost, e) : run_server(r, me, s, lost, e);
}

void sh_work_queue_failed(const struct sh_ranks *r, const struct sh_rank_place *me, const struct sh_err *error)
{
    struct message m = {.unit = NONE};
    char why[200];
    copy_error(&m, error);
    if (me->rank)
        r->send(0, TO_SERVER, &m, sizeof m, send_s, why, sizeof why);
}
