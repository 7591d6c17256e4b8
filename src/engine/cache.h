/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache of a batch of sequences: for each sequence, layer and KV head the set of kept tokens
 * (planner/policy/kept_slots.h, with the policy's own state), and their keys and values by slot. Everything is
 * allocated once at capacity; a token that comes takes the slot of one that left. Keys stay as they were
 * made, turned for their original position; with positions inside the cache (rows.h) not turned, which is
 * then also how a policy sees keys and queries.
 *
 * Codes: V shares scales along the channels of a token. K shares them along `group` tokens of a channel
 * when nothing can ever leave (the budget holds the whole text), since slots are then filled in order;
 * with a policy that evicts, along slots or along a token's channels as the format says (rows.h).
 *
 * The latent of a token is its key and its value, in the format of keys.
 *
 * A policy that looks at keys or values sees floats: where they are kept in fewer bits it gets a copy in
 * f32, which counts towards its memory. */
#ifndef SH_ENGINE_CACHE_H
#define SH_ENGINE_CACHE_H

#include "planner/policy/kept_slots.h"
#include "src/engine/rows.h"
#include "src/model/arch.h"

struct sh_session_setup {
    const struct sh_arch *arch;         /* filled in by sh_session_…                              */
    const struct sh_policy_spec *spec;  /* must outlive the session                               */
    const int *budget;                  /* [n_layer * n_kv_head] of the model: tokens, each more than the policy
                                         * protects; copied */
    int first_layer, n_layer;           /* the cache is of these layers; n_layer 0: of all        */
    int n_seq;
    int n_token;                        /* the longest sequence; with original positions at most the resident's */
    int length;  /* known to be reached, for rotary scalings that depend on it; or what was read */
    int prefill;                        /* the first tokens see everything                        */
    int whole;                          /* they come as one block of a prompt, and need no slots  */
    int block;  /* most tokens of a prompt's block, up to the resident's rows; 0: token by token */
    enum sh_positions positions;
    struct sh_kv_format format;
    uint64_t seed;
    int watched;  /* sh_session_set_watch will follow: a device reserves memory for rows, and fit counts it */
};

struct sh_kv_head {
    struct sh_kept *kept;               /* NULL: the layer has no such head                       */
    struct sh_kv_rows k, v;             /* v of width 0: keys are the values, too (latent attention) */
    struct sh_kv_rows seen_k, seen_v;   /* f32 copies for the policy; width 0: none               */
    int *place;                         /* [capacity] (rows.h); NULL: original positions        */
};

struct sh_kv_cache {
    struct sh_session_setup setup;
    int *budget;                        /* the cache's own copy                                   */
    struct sh_kv_head *head;            /* [n_seq, layers of the setup, n_kv_head]                */
    int most_slots;                     /* capacity of the largest head                           */
    int peak;                           /* slots that a head had in use before a restart, at most */
};

/* What a cache takes, in bytes. */
struct sh_cache_bytes {
    size_t rows;                        /* keys and values, the unfinished blocks of codes included */
    size_t meta;                        /* their scales and minima                                */
    size_t positions;                   /* one int a slot, two with positions inside the cache    */
    size_t state;                       /* bytes of layers that do not attend (states.h)          */
    size_t policy;                      /* what the policy keeps, copies in f32 included          */
    size_t scratch;                     /* not the cache's: of a step's attention; 0: on the host */
    size_t block;  /* not the cache's: the most blocks took at a time; on a device what is reserved */
};

/* -1: a budget is too small, the format is unknown, the policy needs what a live cache does not have, or positions
 * inside the cache exceed the model's. */
int sh_kv_setup_check(const struct sh_session_setup *setup, struct sh_err *e);
/* The most places, with positions inside the cache, of the cached tokens and the next block. */
int sh_kv_setup_places(const struct sh_session_setup *setup);

/* NULL: the setup is refused, or it does not fit. */
struct sh_kv_cache *sh_kv_cache_new(const struct sh_session_setup *setup, struct sh_err *e);
void sh_kv_cache_free(struct sh_kv_cache *c);           /* NULL is fine */
void sh_kv_cache_restart(struct sh_kv_cache *c, int sequence);      /* empty it for another text */

/* `to`, of a cache with the same setup (but for n_seq), takes over what `from` holds. */
void sh_kv_cache_copy(struct sh_kv_cache *to, int sequence_to, const struct sh_kv_cache *from, int sequence_from);

static inline int sh_kv_setup_layers(const struct sh_session_setup *s)
{
    return s->n_layer ? s->n_layer : s->arch->n_layer;
}

static inline struct sh_kv_head *sh_kv_cache_head(const struct sh_kv_cache *c, int sequence, int layer, int head)
{
    size_t at = (size_t)sequence * (size_t)sh_kv_setup_layers(&c->setup) + (size_t)(layer - c->setup.first_layer);
    return &c->head[at * (size_t)c->setup.arch->n_kv_head + (size_t)head];
}

static inline const struct sh_kv_rows *sh_kv_head_values(const struct sh_kv_head *h)
{
    return h->v.width ? &h->v : &h->k;
}

/* A token's key and value into its slot, and where the policy sees them. */
void sh_kv_head_put(struct sh_kv_head *h, int slot, const float *k, const float *v);

struct sh_kv_kept {                     /* figures of all heads and sequences                     */
    double budget, kept;                /* means: tokens of a head, those that are there now      */
    int peak;                           /* slots in use so far, by texts before a restart, too, at most */
};

struct sh_kv_kept sh_kv_cache_kept(const struct sh_kv_cache *c);
struct sh_cache_bytes sh_kv_cache_bytes(const struct sh_kv_cache *c);
size_t sh_cache_bytes_sum(const struct sh_cache_bytes *b);     /* bytes of the cache */

/* What the query of token t attends over, its own token included, with the group's mean row of attention
 * [n_slot]: called once for each sequence, layer and KV head (on a device row by row, then by sequence; for a block
 * some rows at a time, head by head). A device shows no keys and values. */
typedef void sh_watch(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row);

struct sh_qkv { const float *q, *k, *v; };      /* host: [rows, heads * d_head], as a layer's attention takes them */

struct sh_states;

struct sh_piece {                       /* tokens that go through the layers together             */
    const int *start, *first;  /* host: sequence i has rows [start[i], start[i + 1]), from position first[i] on */
    const int *end;                     /* host: its rows end there instead; NULL: at start[i + 1] */
    int by_block;                       /* those of each sequence are a block (block.c)           */
    const struct sh_states *states;     /* states.h                                               */
    sh_watch *watch;                    /* may be NULL                                           */
    void *watch_to;
};

static inline int sh_piece_end(const struct sh_piece *p, int sequence)
{
    return p->end ? p->end[sequence] : p->start[sequence + 1];
}

#endif
