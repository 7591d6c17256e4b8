/* SPDX-License-Identifier: Apache-2.0 */
/* See writer.h. */
#include "traces/writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct node {
    struct sh_batch batch;
    size_t bytes;
    struct node *next;
};

struct sh_writer {
    struct sh_store *store;
    int run;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct node *first, **last;
    size_t queued, limit;
    int ending, failed;
    struct sh_err error;
};

static void *write_all(void *argument)
{
    struct sh_writer *w = argument;
    struct sh_err e;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->ending)
            pthread_cond_wait(&w->changed, &w->lock);
        struct node *n = w->first;
        if (!n)
            break;
        int skip = w->failed;
        pthread_mutex_unlock(&w->lock);
        int bad = skip ? 0 : sh_store_write(w->store, w->run, &n->batch, &e);
        pthread_mutex_lock(&w->lock);
        if (bad) {
            w->failed = 1;
            w->error = e;
        }
        w->first = n->next;
        if (!w->first)
            w->last = &w->first;
        w->queued -= n->bytes;
        sh_batch_clear(&n->batch);
        free(n);
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct sh_writer *sh_writer_begin(struct sh_store *s, int run, size_t queue_bytes, struct sh_err *e)
{
    struct sh_writer *w = xcalloc(1, sizeof *w);
    w->store = s;
    w->run = run;
    w->limit = queue_bytes;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int problem = pthread_create(&w->thread, NULL, write_all, w);
    if (!problem)
        return w;
    sh_fail(e, "%s: no thread to write with: %s", sh_store_path(s), strerror(problem));
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
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
    free(w);
    return failed ? -1 : 0;
}
