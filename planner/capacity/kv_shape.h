/* SPDX-License-Identifier: Apache-2.0 */
/* A model as layers: how each layer mixes tokens, which decides its cache, and what feed-forward block it has. Made
 * from flat facts (kv_facts.c) and checked as a whole, so that later code can multiply without overflow: the weights
 * stay below 2^62 bytes and a token's cache below 2^32. */
#ifndef SH_PLANNER_CAPACITY_KV_SHAPE_H
#define SH_PLANNER_CAPACITY_KV_SHAPE_H

#include <stdint.h>

#include "src/base/err.h"
#include "src/model/facts.h"

enum sh_mix {
    SH_MIX_NONE,                        /* feed-forward alone                                     */
    SH_MIX_FULL,                        /* keys and values of every token                         */
    SH_MIX_WINDOW,                      /* attention to the last `window` tokens                  */
    SH_MIX_CHUNK,                       /* attention to the current chunk of `window` tokens      */
    SH_MIX_LATENT,                      /* one latent and one rotary key a token, for all heads    */
    SH_MIX_INDEXED,                     /* the same, chosen by an index key of each token (DeepSeek-V3.2) */
    SH_MIX_BLOCKS,                      /* keys and values in blocks that such a key chooses (MiniMax-M3) */
    SH_MIX_STATE,                       /* a state of fixed size alone                            */
    SH_N_MIX
};

enum sh_feed { SH_FEED_NONE, SH_FEED_PLAIN, SH_FEED_EXPERTS, SH_N_FEED };

enum { SH_SHAPE_LAYERS = 10000 };

struct sh_kv_layer {
    uint8_t mix, feed;                  /* enum sh_mix, enum sh_feed                              */
    uint8_t borrows;                    /* it attends over another layer's keys and values        */
    uint8_t state;                      /* it keeps a state of fixed size: SH_MIX_STATE, or next to attention */
};

enum sh_kv_part {                          /* part of a model's weights                               */
    SH_PART_EMBED, SH_PART_POSITIONS, SH_PART_MIX, SH_PART_FEED, SH_PART_EXPERTS, SH_PART_SHARED, SH_PART_ROUTER,
    SH_PART_NORM, SH_PART_HEAD, SH_PART_VISION, SH_N_PART
};

struct sh_kv_shape {
    struct sh_kv_facts f;               /* completed: kv_heads, head_dim, embed_width are set      */
    struct sh_kv_layer *layer;          /* [f.layers]; owned                                      */
    int d_k, d_v;                       /* elements of a key and a value of one head; of layers that see all
                                         * tokens see sh_kv_shape_width                           */
    uint64_t state;                     /* elements of a state layer's fixed state                 */
    uint64_t (*stored)[SH_N_PART];      /* bytes that a file of the weights has: of each layer, then of what is
                                         * before them, then after: [layers + 2]; owned; NULL: no file was read */
};

/* The facts of a model from a row of a catalogue, "NAME key=value... | STATUS | SOURCE" (catalog/models.txt says what
 * each key means). `at` names the row in errors, e.g. "models.txt: line 7". -1: unknown key or value out of range. */
int sh_kv_facts_row(const char *row, const char *at, struct sh_kv_facts *out, struct sh_err *e);

/* The next word of a catalogue's row, at most bytes - 1 long. 1; 0: none before the bar; -1: it is longer. */
int sh_row_word(const char **at, char *to, size_t bytes, struct sh_err *e);

/* -1: facts that contradict each other, named by their keys; `out` then needs no release. */
int sh_kv_shape_build(const struct sh_kv_facts *f, struct sh_kv_shape *out, struct sh_err *e);
void sh_kv_shape_clear(struct sh_kv_shape *s);          /* NULL and zeros are fine */

/* Query heads of a kind of layers. KV heads, and the widths of a head's keys and values there: layers that see all
 * tokens may have their own. */
int sh_kv_shape_queries(const struct sh_kv_shape *s, enum sh_mix mix);
int sh_kv_shape_heads(const struct sh_kv_shape *s, enum sh_mix mix);
int sh_kv_shape_width(const struct sh_kv_shape *s, enum sh_mix mix);
int sh_kv_shape_values(const struct sh_kv_shape *s, enum sh_mix mix);

/* Layers of a kind; those that keep a state. */
int sh_kv_shape_count(const struct sh_kv_shape *s, enum sh_mix mix);
int sh_kv_shape_states(const struct sh_kv_shape *s);

/* Channels that pass the short convolution of a state layer. */
int sh_kv_shape_conv(const struct sh_kv_facts *f);

#endif
