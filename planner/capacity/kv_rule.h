/* SPDX-License-Identifier: Apache-2.0 */
/* How a sequence's cache is kept: number formats, pages, what is charged for windows, and a budget. And the bytes that
 * follow, layer by layer:
 *
 *     kept    = min(length, window as charged, budget + headroom)
 *     pages   = ceil(kept / page), for each layer
 *     bytes   = pages * page * bytes of a token of that layer on this rank
 *     a token = heads here * (bytes(d_k) + bytes(d_v) + state), heads here = max(1, ceil(kv_heads / tp));
 *               of a latent layer bytes(latent) + bytes(rope_dim) on every rank;
 *               of a layer with entries for `pool` tokens bytes(d_k) / pool on every rank, and a window besides
 *
 * A shared prefix is kept once for all sequences in layers that see all tokens, whole pages of it; a budget then counts
 * what comes after it. Windows and states stay with their sequence. */
#ifndef SH_PLANNER_CAPACITY_KV_RULE_H
#define SH_PLANNER_CAPACITY_KV_RULE_H

#include <stdint.h>

#include "planner/capacity/kv_shape.h"
#include "planner/capacity/kv_type.h"

enum sh_windows {
    SH_WINDOWS_MODEL,                   /* the window caps the layer                              */
    SH_WINDOWS_IGNORE,                  /* charged in full, as runtimes without a hybrid allocator */
    SH_WINDOWS_VLLM,                    /* pages for window - 1 + tokens in flight, and one more   */
    SH_WINDOWS_LLAMA                    /* cells for window + tokens in flight, in multiples of 256 */
};

enum sh_kv_limit { SH_BUDGET_NONE, SH_BUDGET_SHARE, SH_BUDGET_TOKENS, SH_BUDGET_LAYERS, SH_BUDGET_PLAN };

/* Tokens of a layer at a length, the mean over the KV heads of the fullest of tp ranks; they never fall as the length
 * grows. */
struct sh_kv_planned {
    uint64_t (*tokens)(const struct sh_kv_planned *p, int layer, uint64_t length);
    const void *plan;                   /* not owned                                               */
    int rank, tp;
};

struct sh_kv_rule {
    struct sh_kv_type k, v;
    uint64_t page, in_flight, prefix, headroom;     /* tokens; page at least 1                     */
    enum sh_windows windows;
    enum sh_kv_limit budget;
    double share;                       /* SHARE: of the length, rounded up                        */
    uint64_t tokens;                    /* TOKENS: for each layer and KV head                      */
    const uint64_t *layers;             /* LAYERS: [shape's layers], tokens; not owned             */
    struct sh_kv_planned planned;       /* PLAN: tokens that depend on layer and length            */
    uint64_t state;                     /* policy state, bytes per kept token, layer and KV head   */
};

enum { SH_KV_MOST_TOKENS = 1 << 30 };   /* the largest length that may be asked for                */

/* Sizes add up and multiply to UINT64_MAX at most, which fits nowhere. */
uint64_t sh_kv_mul(uint64_t a, uint64_t b);
uint64_t sh_kv_add(uint64_t a, uint64_t b);

/* The budget of a layer at a length, headroom not included; UINT64_MAX without one. */
uint64_t sh_kv_budget(const struct sh_kv_rule *r, int layer, uint64_t length);

/* Tokens that a layer holds at its peak, before and after rounding to pages; 0 where it has no cache. */
uint64_t sh_kv_kept(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t length);
uint64_t sh_kv_held(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t length);

/* The tokens of a layer that all sequences share: whole pages of the prefix. */
uint64_t sh_kv_shared(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t length);

/* Bytes of a layer's window next to entries for several tokens (SH_MIX_POOLED); 0 in other layers. */
uint64_t sh_kv_window(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, uint64_t length);

/* Bytes that one token adds to a layer's cache on a rank of tp, policy state included; 0 without a cache. An entry for
 * several tokens adds its part to each. */
/* The part of these bytes that is the key of the index, in layers that have one: f8 and an f32 scale for each 128
 * numbers, whatever the format of the cache (inference/model.py of DeepSeek-V3.2-Exp; vLLM and SGLang keep the same 132
 * bytes for 128 numbers). */
uint64_t sh_kv_index_cell(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer);
uint64_t sh_kv_cell(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int layer, int tp);

/* Bytes of the layers [first, last) on one rank. token: of a token that every layer keeps. sequence: of one sequence,
 * with its states, without the shared prefix. prefix: of the shared prefix, once. */
struct sh_kv_bytes { uint64_t token, states, sequence, prefix; };
struct sh_kv_bytes sh_kv_bytes(const struct sh_kv_shape *s, const struct sh_kv_rule *r, int first, int last, int tp,
                               uint64_t length);

#endif
