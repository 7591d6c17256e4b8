/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a resident over a KV cache in host memory (cache.h): what device_cache.h is for one on the device.
 * Products run where the resident is, attention over the slots here. */
#ifndef SH_ENGINE_HOST_CACHE_H
#define SH_ENGINE_HOST_CACHE_H

#include "src/base/stages.h"
#include "src/engine/cache.h"
#include "src/engine/resident.h"

struct sh_host_cache;

/* The setup has been checked (sh_kv_setup_check). NULL: it does not fit. */
struct sh_host_cache *sh_host_cache_new(struct sh_resident *r, const struct sh_session_setup *setup, struct sh_err *e);
void sh_host_cache_free(struct sh_host_cache *c);               /* NULL is fine */
struct sh_kv_cache *sh_host_cache_kv(struct sh_host_cache *c);

/* Where each sequence's next tokens are read in the tables of learned positions, [n_seq]; NULL: these are not inside
 * the cache. */
const int *sh_host_cache_places(const struct sh_host_cache *c);
/* Finds the place of a sequence's next n tokens, after `first` tokens read. Returns how many of them have consecutive
 * places, at least 1; n if places are not needed. */
int sh_host_cache_find_place(struct sh_host_cache *c, int sequence, int first, int n);

/* The resident's hidden rows through all layers. -1: a block does not fit into memory, or the device failed. */
int sh_host_cache_run(struct sh_host_cache *c, const struct sh_piece *p, struct sh_err *e);

struct sh_kv_bytes sh_host_cache_bytes(const struct sh_host_cache *c);

/* ---- block.c ----
 * A block of a prompt's tokens in one KV head of one layer: all of them attend over the cached tokens and causally over
 * each other, the policy observes every row, and then tokens are evicted as for the next token
 * (planner/policy/policy.h, step 1). A block of one token is the stream; a block as long as the prompt is compressed
 * once.
 *
 * Within the block, keys and values are floats as computed. New tokens that stay are then put into the cache's format;
 * cached tokens are not coded again. Meanwhile the head holds all tokens as floats; sh_block_run reports the memory. */

struct sh_block {
    const struct sh_attend *what;       /* of the layer: shapes, scale, window, slopes            */
    int sequence, layer, head;
    struct sh_kv_head *h;
    const struct sh_turn *turn;         /* positions inside the cache: rotary; else NULL          */
    int first, n;                       /* tokens [first, first + n)                              */
    const float *q, *k, *v;             /* of the first token: rows as wide as in `what`          */
    float *mixed;                       /* likewise; NULL: attention has been computed already    */
    unsigned needs;                     /* the policy's (enum sh_needs)                           */
    int observes;                       /* it wants the rows                                      */
    sh_watch *watch;                    /* may be NULL                                            */
    void *watch_to;
    struct sh_stages *stages;           /* NULL: time is not measured                             */
    int sharers;                        /* threads of the time                                    */
};

/* -1: it does not fit into memory, and the head is unchanged. *bytes: what it took in addition to the cache, free again
 * now. */
int sh_block_run(const struct sh_block *b, size_t *bytes, struct sh_err *e);

#endif
