/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of cache that requests leave for later ones whose prompt begins with the same text, as vLLM keeps them:
 *
 *  - A text is cut into blocks of a fixed number of tokens; only full blocks are kept. A block's key names the text
 *    from the beginning to its end, so equal keys are equal blocks (struct sh_workload gives them).
 *  - A request takes the leading run of its blocks that is there, at most so many that one token of its prompt is left
 *    to read. It holds these and the blocks that it computes until it ends. A block that several compute counts once.
 *  - Blocks that nobody holds are forgotten when room is needed, the least recently held first, and of one request the
 *    last block first. So a block is never kept without those before it.
 *  - What the GPU forgets goes to the host's memory, what that forgets to the disk, each as large as it is told to be
 *    and with the same rule. A block that is taken from there is the GPU's again, and no longer theirs.
 *
 * All operations take constant time for each block, and nothing is allocated once the tables are large enough. */
#ifndef SH_PLANNER_SIMULATE_PREFIX_CACHE_H
#define SH_PLANNER_SIMULATE_PREFIX_CACHE_H

#include <stddef.h>
#include <stdint.h>

enum sh_tier { SH_TIER_GPU, SH_TIER_HOST, SH_TIER_DISK, SH_N_TIER };

/* What is asked for; block 0: no prefix cache. */
struct sh_prefix_ask {
    uint32_t block;                     /* tokens, at least 1                                     */
    double share;                       /* part of a GPU's memory for caches, that blocks may take which nobody holds */
    double bytes[SH_N_TIER];            /* the same in bytes, infinite: no limit; of host and disk: for each GPU */
    double bandwidth[SH_N_TIER];        /* bytes/s from host and disk to one GPU                   */
};

struct sh_prefix_count {
    uint64_t hit[SH_N_TIER], asked;     /* blocks that requests took; full blocks of all prompts    */
    uint64_t room;                      /* blocks that nobody holds, at most, of the GPU           */
};

/* Adds the counts of another prefix cache. */
void sh_prefix_add(struct sh_prefix_count *to, const struct sh_prefix_count *from);

struct sh_prefix_list { uint32_t first, last, n; };     /* first: held most recently */

struct sh_prefix_cache {
    uint32_t block;
    double block_bytes, load_s[SH_N_TIER];      /* seconds for a block                             */
    uint32_t most[SH_N_TIER];           /* blocks that nobody holds                                */
    uint32_t n_held;                    /* blocks that somebody holds                              */
    struct sh_prefix_list tier[SH_N_TIER];
    struct sh_prefix_node *node;        /* [room], the first n_node in use at some time             */
    uint32_t *table;                    /* [n_table], a power of two                                */
    uint32_t n_node, room, n_table, unused;     /* unused: first of a list of nodes                */
    struct sh_prefix_count count;
};

/* block_bytes: of one block on one GPU, above 0; pool: bytes that it has for caches. Release with sh_prefix_clear. */
void sh_prefix_open(struct sh_prefix_cache *c, const struct sh_prefix_ask *a, double block_bytes, double pool);
void sh_prefix_clear(struct sh_prefix_cache *c);

/* A request's part in the cache. Zeros: none. Its arrays serve the next request, too; free them with sh_prefix_drop. */
struct sh_prefix_use {
    uint64_t *key;                      /* [n]                                                    */
    uint32_t *node;                     /* [held]: the first blocks, which it holds                */
    uint32_t n, held, room;
};
void sh_prefix_name(struct sh_prefix_use *u, const uint64_t *key, uint32_t n);
void sh_prefix_drop(struct sh_prefix_use *u);

/* The blocks that a request could take. */
struct sh_prefix_match {
    uint32_t n, fresh;                  /* blocks; of them, those that nobody holds                */
    uint32_t at[SH_N_TIER];
};
struct sh_prefix_match sh_prefix_match(const struct sh_prefix_cache *c, const struct sh_prefix_use *u, uint32_t prompt);

/* Takes the blocks, for a request that holds none yet. Returns the seconds to load those from host and disk. */
double sh_prefix_take(struct sh_prefix_cache *c, struct sh_prefix_use *u, uint32_t prompt,
                      const struct sh_prefix_match *m);

/* The first `tokens` of its text are computed: it holds their full blocks. */
void sh_prefix_reach(struct sh_prefix_cache *c, struct sh_prefix_use *u, uint32_t tokens);

/* The request lets go of all its blocks. */
void sh_prefix_release(struct sh_prefix_cache *c, struct sh_prefix_use *u);

/* Forgets blocks until those that nobody holds are within the limits, and all take at most `bytes`, less those held. */
void sh_prefix_fit(struct sh_prefix_cache *c, double bytes);

#endif
