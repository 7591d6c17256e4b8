/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a resident over a KV cache: in host memory (cache.h), and on the device (device_cache.c). With the
 * cache in host memory products run where the resident is, attention over the slots here. */
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

/* hidden [rows, d_model] f32 in device memory, through the cache's layers. -1: a block does not fit into memory, or the
 * device failed. */
int sh_host_cache_run(struct sh_host_cache *c, void *hidden, const struct sh_piece *p, struct sh_err *e);

/* Tokens whose queries, keys and values are known: they take slots and are seen by the policy; what their attention
 * gives is not wanted. Rows as in p. */
void sh_host_cache_feed(struct sh_host_cache *c, int layer, const struct sh_qkv *x, const struct sh_piece *p);

struct sh_cache_bytes sh_host_cache_bytes(const struct sh_host_cache *c);

/* ---- block.c ----
 * A block of a prompt's tokens in one KV head of one layer: all of them attend over the cached tokens and causally over
 * each other, the policy observes every row, and then tokens are evicted as for the next token
 * (planner/policy/policy.h, step 1). A block of one token is the stream; a block as long as the prompt is compressed
 * once.
 *
 * Within the block, keys and values are floats as computed. New tokens that stay are then put into the cache's format;
 * cached tokens are not coded again. Meanwhile the head holds all tokens as floats; sh_block_run reports the memory. */

struct sh_block {
    const struct sh_attend *what;       /* the layer's shapes, scale, window, slopes              */
    int sequence, layer, head;
    struct sh_kv_head *h;
    const struct sh_turn *turn;         /* positions inside the cache: rotary; else NULL          */
    int first, n;                       /* tokens [first, first + n)                              */
    const float *q, *k, *v;             /* first token's rows, as wide as in `what`               */
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

/* ---- device_cache.c ----
 * The KV cache of a batch of sequences on the device (kernels/slots.h), where the backend has one and the
 * policy needs no more than the device keeps. It does what cache.h does on the host, to the token: what the
 * device is told follows from the same policies, and what it does is tested against them. */

struct sh_device_cache;

/* Why the cache has to be on the host, though the memory of the device is not the host's; NULL: it need not,
 * or the memory is. `text` is room for the sentence. */
enum { SH_DEVICE_WHY = 160 };
const char *sh_device_cache_why_not(const struct sh_resident *r, const struct sh_session_setup *setup,
                                    char text[SH_DEVICE_WHY]);

/* The setup has been checked (sh_kv_setup_check). NULL: it does not fit; e says what would. */
struct sh_device_cache *sh_device_cache_new(struct sh_resident *r, const struct sh_session_setup *setup,
                                            struct sh_err *e);
void sh_device_cache_free(struct sh_device_cache *c);           /* NULL is fine */
void sh_device_cache_restart(struct sh_device_cache *c, int sequence);
/* `to`, of a cache with the same setup (but for n_seq), takes over what `from` holds. */
void sh_device_cache_copy(struct sh_device_cache *to, int sequence_to, const struct sh_device_cache *from,
                          int sequence_from);

/* Rows are going to be watched, which the setup did not say: before anything is read. */
void sh_device_cache_keep_rows(struct sh_device_cache *c);

/* hidden [rows, d_model] f32 on the device, through the cache's layers. Steps of no more than one row a sequence over
 * the resident's own hidden rows are the same work each time, and run as a graph from the third on, where the device
 * can record one. -1: nothing is queued; the device's own failures come out of its sync. */
int sh_device_cache_run(struct sh_device_cache *c, void *hidden, const struct sh_piece *p, struct sh_err *e);

struct sh_cache_bytes sh_device_cache_bytes(const struct sh_device_cache *c);
struct sh_kv_kept sh_device_cache_kept(const struct sh_device_cache *c);

/* Sequences that fit into what the device has left, up to `most`; 0: not one. */
int sh_device_cache_fit(const struct sh_resident *r, const struct sh_session_setup *setup, int most);

#endif
