/* SPDX-License-Identifier: Apache-2.0 */
/* See writer.h. */
#include "traces/writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "traces/db.h"

enum { GROUP_BYTES = 64 << 20, MOST_BATCHES = 256 };

struct node {
    struct sh_batch batch;
    size_t bytes;
    struct node *next;
};

struct sh_writer {
    struct sh_store *store;
    int run;
    struct sh_stages *stages;           /* NULL: time is not measured */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct node *first, **last;
    size_t queued, limit;
    int ending, failed;
    struct sh_err error;
};

/* The first batches of the queue, for one transaction. */
static int choose_group(const struct sh_writer *w, const struct sh_batch **group)
{
    size_t bytes = 0;
    int n = 0;
    for (const struct node *at = w->first; at && n < MOST_BATCHES; at = at->next) {
        bytes += at->bytes;
        if (n && bytes > GROUP_BYTES)
            break;
        group[n++] = &at->batch;
    }
    return n;
}

/* Returns the number of batches stored. A group that fails is written one by one, up to the first that fails. *turn:
 * the time until which readers have the file. */
static int write_group(struct sh_writer *w, const struct sh_batch *const *group, int n, double *turn, struct sh_err *e)
{
    sh_wait_until(*turn);
    double began = sh_now_s();
    int bad = sh_store_write(w->store, w->run, group, n, e);
    *turn = sh_wait_turn(began, sh_now_s());
    if (!bad)
        return n;
    if (n == 1 || e->is_locked)
        return 0;
    for (int i = 0; i < n; i++)
        if (sh_store_write(w->store, w->run, group + i, 1, e))
            return i;
    return n;
}

static void drop_first(struct sh_writer *w)
{
    struct node *n = w->first;
    w->first = n->next;
    if (!w->first)
        w->last = &w->first;
    w->queued -= n->bytes;
    sh_batch_clear(&n->batch);
    free(n);
}

static void *write_all(void *argument)
{
    struct sh_writer *w = argument;
    const struct sh_batch *group[MOST_BATCHES];
    struct sh_err e;
    double turn = 0;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->ending)
            pthread_cond_wait(&w->changed, &w->lock);
        if (!w->first)
            break;
        int skip = w->failed, n = choose_group(w, group);
        pthread_mutex_unlock(&w->lock);
        unsigned long long since = sh_stage_begin(w->stages);
        int bad = !skip && write_group(w, group, n, &turn, &e) < n;
        sh_stage_end(w->stages, SH_STAGE_WRITER, since, 1);
        pthread_mutex_lock(&w->lock);
        if (bad) {
            w->failed = 1;
            w->error = e;
        }
        while (n--)
            drop_first(w);
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void wait_without_end(struct sh_store *s, int patient)
{
    s->patient = patient;
    s->tell = NULL;
}

struct sh_writer *sh_writer_begin(struct sh_store *s, int run, size_t queue_bytes, struct sh_err *e)
{
    struct sh_writer *w = xcalloc(1, sizeof *w);
    w->store = s;
    w->run = run;
    wait_without_end(s, 1);
    w->limit = queue_bytes;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int problem = pthread_create(&w->thread, NULL, write_all, w);
    if (!problem)
        return w;
    sh_fail(e, "%s: cannot start the writer thread: %s", sh_store_path(s), strerror(problem));
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    wait_without_end(s, 0);
    free(w);
    return NULL;
}

void sh_writer_watch(struct sh_writer *w, struct sh_stages *stages, void (*tell)(void *to, const char *path), void *to)
{
    w->stages = stages;
    w->store->tell = tell;
    w->store->tell_to = to;
}

int sh_writer_push(struct sh_writer *w, struct sh_batch *b, struct sh_err *e)
{
    struct node *n = xcalloc(1, sizeof *n);
    n->batch = *b;
    *b = (struct sh_batch){0};
    for (int i = 0; i < n->batch.n_block; i++)
        n->bytes += n->batch.block[i].bytes;
    pthread_mutex_lock(&w->lock);
    while (w->queued && w->queued + n->bytes > w->limit && !w->failed)
        pthread_cond_wait(&w->changed, &w->lock);
    int failed = w->failed;
    if (failed) {
        *e = w->error;
        sh_batch_clear(&n->batch);
        free(n);
    } else {
        *w->last = n;
        w->last = &n->next;
        w->queued += n->bytes;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return failed ? -1 : 0;
}

int sh_writer_end(struct sh_writer *w, struct sh_err *e)
{
    pthread_mutex_lock(&w->lock);
    w->ending = 1;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    int failed = w->failed;
    if (failed)
        *e = w->error;
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    wait_without_end(w->store, 0);
    free(w);
    return failed ? -1 : 0;
}
