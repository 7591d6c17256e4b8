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
    SH_MIX_INDEXED,                     /* latent attention to tokens that an index key chooses (DeepSeek-V3.2) */
    SH_MIX_BLOCKS,                      /* attention to blocks of tokens that an index key chooses (MiniMax-M3) */
    SH_MIX_POOLED,                      /* a window, and entries that stand for several tokens each (DeepSeek-V4) */
    SH_MIX_STATE,                       /* a state of fixed size alone                            */
    SH_N_MIX
};

enum sh_feed { SH_FEED_NONE, SH_FEED_PLAIN, SH_FEED_EXPERTS, SH_N_FEED };

enum { SH_SHAPE_LAYERS = 10000 };

struct sh_kv_layer {
    int heads, kv_heads, width, values; /* if it attends; widths of a head's keys and of its values */
    int ffn;                            /* SH_FEED_PLAIN: its width                               */
    int rope;                           /* of a latent layer: width of its rotary key             */
    int pool;                           /* SH_MIX_POOLED: tokens that an entry stands for         */
    int products, state_more;           /* facts.h                                                */
    uint8_t format[SH_N_MATRIX_KIND];   /* facts.h, if the facts have formats                     */
    uint8_t mix, feed;                  /* enum sh_mix, enum sh_feed                              */
    uint8_t again;                      /* it has the weights of the layer f.loop before it       */
    uint8_t borrows;                    /* it attends over another layer's keys and values        */
    uint8_t indexed;                    /* SH_MIX_POOLED: an index chooses among the entries      */
    uint8_t state;                      /* it keeps a state of fixed size: SH_MIX_STATE, or next to attention */
};

enum sh_kv_part {                          /* part of a model's weights                               */
    SH_PART_EMBED, SH_PART_POSITIONS, SH_PART_MIX, SH_PART_FEED, SH_PART_EXPERTS, SH_PART_SHARED, SH_PART_ROUTER,
    SH_PART_NORM, SH_PART_HEAD, SH_PART_VISION, SH_N_PART
};

struct sh_kv_shape {
    struct sh_kv_facts f;               /* completed: kv_heads, head_dim, embed_width are set      */
    struct sh_kv_layer *layer;          /* [f.layers]; owned                                      */
    int d_k, d_v;                       /* elements of a key and a value of one head, unless a layer says otherwise */
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

/* Groups of layers from *first on, before `last`, that are equal: one of each, and how many. At most SH_MOST_ALIKE
 * groups; *first becomes the layer after all of them. Returns their number. */
enum { SH_MOST_ALIKE = 32 };
struct sh_kv_alike { int layer, n; };
int sh_kv_shape_alike(const struct sh_kv_shape *s, int *first, int last, struct sh_kv_alike out[SH_MOST_ALIKE]);

/* The largest of each count and width over the layers; 0 if no layer has one. */
struct sh_kv_layer sh_kv_shape_most(const struct sh_kv_shape *s);

/* The number of layers of a kind; of layers that keep a state. */
int sh_kv_shape_count(const struct sh_kv_shape *s, enum sh_mix mix);
int sh_kv_shape_states(const struct sh_kv_shape *s);

/* Channels that pass the short convolution of a state layer. */
int sh_kv_shape_conv(const struct sh_kv_facts *f);

#endif
