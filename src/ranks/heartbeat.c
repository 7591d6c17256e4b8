/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats of rank 0 (ranks.h). */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "src/base/mem.h"
#include "src/ranks/ranks.h"

struct sh_heartbeat {
    const struct sh_ranks *r;
    int n, over;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

void sh_heartbeat_tell(const struct sh_ranks *r, int n, const unsigned char *to)
{
    enum { SEND_S = 60 };               /* a message of this size is sent without waiting */
    char byte = 0, why[200];
    for (int i = 1; i < n; i++)
        if (!to || to[i])
            r->send(i, SH_RANKS_PATIENCE, &byte, 1, SEND_S, why, sizeof why);  /* a dead rank needs none */
}

static void *tell(void *argument)
{
    struct sh_heartbeat *p = argument;
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    pthread_mutex_lock(&p->lock);
    while (!p->over) {
        sh_heartbeat_tell(p->r, p->n, NULL);
        next.tv_sec++;
        while (!p->over && !pthread_cond_timedwait(&p->changed, &p->lock, &next))
            continue;                   /* until a second is over */
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct sh_heartbeat *sh_heartbeat_begin(const struct sh_ranks *r, int n)
{
    struct sh_heartbeat *p = xcalloc(1, sizeof *p);
    p->r = r;
    p->n = n;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (!pthread_create(&p->thread, NULL, tell, p))
        return p;
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

void sh_heartbeat_end(struct sh_heartbeat *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->over = 1;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
