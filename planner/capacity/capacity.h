/* SPDX-License-Identifier: Apache-2.0 */
/* What fits into the memory of a group of GPUs, and how fast it could run. Pure arithmetic: a model as layers
 * (kv_shape.h), formats of its weights, a rule for its cache (kv_rule.h), numbers of a board.
 *
 *     limit     = floor(memory * util)
 *     weights   = ceil((all but experts + experts * ceil(E / ep) / E) / tp) of a pipeline's stage, and its adapters
 *     room      = limit - weights - overhead
 *     max batch = ep * min over stages of floor((room - shared prefix) / bytes of a sequence)
 *
 * A group has tp * pp * ep GPUs: tp share each layer, pp have a run of layers each (stage i: from layer
 * floor(i L / pp) on; the embedding is in the first, head and final norm in the last, which copies a tied embedding),
 * and each of the ep ranks has its own sequences and a part of the experts. */
#ifndef SH_PLANNER_CAPACITY_H
#define SH_PLANNER_CAPACITY_H

#include <stdint.h>

#include "planner/capacity/kv_rule.h"
#include "planner/capacity/kv_weights.h"
#include "planner/capacity/lora.h"

/* ---- the least time of a step (capacity_time.c) ---- */

/* The least time that one step of a model's layers can take on one GPU, from what it must move and compute:
 *
 *     bytes   = weights read + the cache read
 *     flops   = 2 * parameters that a token uses * tokens + attention
 *     seconds = max(bytes / bandwidth, flops / peak) + link bytes / link bandwidth
 *
 * Of E experts, of which each token takes k, n tokens read E * (1 - (1 - k/E)^n) when all are equally likely; so do n
 * sequences of the adapters, of which each has one. The token
 * embedding is not read (but for the few rows used), unless it is the output head as well. A step may be decoding, a
 * prompt or both at once; every figure is of one GPU of the group. */
enum sh_bound { SH_BOUND_BANDWIDTH, SH_BOUND_COMPUTE, SH_BOUND_LINK };

extern const char *const sh_bound_names[];

struct sh_roofline {
    double plain_bytes, head_bytes, expert_bytes;       /* weights on this GPU; experts: all it holds */
    double expert_share;                /* k / E; 0 without experts                                */
    double token_flops, head_flops;     /* FLOPs for each token; FLOPs for each token whose logits are wanted */
    double link_bytes;                  /* sent and received for each token; 0: not counted        */
    double bandwidth, peak, link;       /* bytes/s, FLOP/s, bytes/s one way                        */
    double ranks;                       /* groups whose tokens meet in the experts (EP), at least 1 */
    double adapters, adapter_bytes;     /* places for adapters; bytes of one; token_flops has those of a token's own */
};

/* The work of a step. */
struct sh_step_work {
    double tokens;                      /* tokens that pass the layers                            */
    double logits;                      /* the number of these whose next token is needed          */
    double cache_bytes;                 /* read by attention on this GPU                          */
    double attention_flops;             /* FLOPs of scores and their products with values, this GPU */
    double prompt_tokens, prompt_flops; /* tokens of prompts among `tokens`, and their part of attention_flops */
    double prompts;                     /* prompts that these tokens belong to                    */
};

struct sh_step_time {
    double weight_bytes, bytes, flops;
    double memory_s, compute_s, link_s, s;
    enum sh_bound bound;                /* the largest of the three times                          */
};

/* Allocates nothing and takes well under a microsecond. */
struct sh_step_time sh_roofline_step(const struct sh_roofline *r, const struct sh_step_work *w);

/* ---- a group of GPUs ---- */

enum { SH_CAPACITY_STAGES = 64 };       /* most stages of a pipeline */

struct sh_capacity_ask {
    const struct sh_kv_shape *shape;
    struct sh_weight_types weights;
    struct sh_kv_rule rule;
    const struct sh_kv_shape *draft;    /* a speculative draft model, in the last stage; NULL: none */
    struct sh_weight_types draft_weights;
    struct sh_lora lora;
    int tp, pp, ep;
    uint64_t memory, overhead;          /* bytes of one GPU                                       */
    double util;                        /* share of the memory that may be used                    */
    double bandwidth, peak, link;       /* bytes/s, FLOP/s, bytes/s one way of one GPU; link 0: not counted  */
    uint64_t length, batch;             /* tokens of a sequence; batch 0: find the largest        */
    uint64_t chunk;                     /* tokens of a prompt that a step reads; 0: all           */
};

struct sh_capacity_stage {
    int first, last;                    /* layers [first, last)                                   */
    struct sh_kv_parts parts;           /* weights of the whole stage, before tp and ep            */
    uint64_t weights, draft_weights, lora;      /* bytes on one GPU; weights includes the draft's and the adapters' */
    struct sh_kv_bytes kv, draft_kv;    /* on one GPU, at the length; kv.sequence includes the draft's */
};

struct sh_capacity {
    int n_stage, fullest;               /* the stage that sets the batch                           */
    struct sh_capacity_stage stage[SH_CAPACITY_STAGES];
    uint64_t limit, room, shortfall;    /* bytes of the fullest stage's GPUs; shortfall: 0 unless some do not fit  */
    const char *unfit;                  /* the term that does not fit; NULL: everything does        */
    uint64_t max_batch, max_length;     /* max_length at the batch, or of one sequence              */
    uint64_t batch;                     /* the batch of the times below: as asked, or max_batch     */
    uint64_t max_budget;                /* tokens for each layer and KV head with which the batch that was asked for
                                         * fits; the length: no budget is needed; 0: none does, or no batch */
    uint64_t with_prompt;             /* sequences within their budget while one more is still a whole prompt */
    uint64_t fixed, further;            /* bytes of a sequence that do not depend on its length; of one further token */
    uint64_t uniform;                   /* bytes of a sequence if every layer is given the largest budget */
    uint64_t scattered;                 /* bytes of a sequence if nothing compacts pages that hold evicted tokens */
    double decode_s, decode_rate;       /* time for one token of each sequence; tokens/s of the group */
    double prefill_s, prefill_rate;     /* time to the first token of one prompt alone; tokens/s    */
    struct sh_step_time step;           /* times of decoding, in the slowest stage                 */
    struct sh_step_time prompt;         /* times of one prompt, in the slowest stage               */
    double cache_share;                 /* the cache's part of the bytes that a decoding step reads */
};

/* -1: the request makes no sense (tp, pp or ep out of range). A model that does not fit is an answer, not an error. */
int sh_capacity(const struct sh_capacity_ask *a, struct sh_capacity *out, struct sh_err *e);

/* The roofline of a stage, and the work of a token there that sees `length` others. For simulators. */
struct sh_roofline sh_capacity_roofline(const struct sh_capacity_ask *a, int stage);
struct sh_step_work sh_capacity_decode_work(const struct sh_capacity_ask *a, int stage, uint64_t length);
struct sh_step_work sh_capacity_prompt_work(const struct sh_capacity_ask *a, int stage, uint64_t length);

/* ---- what each GPU of a group holds (capacity_split.c) ---- */

/* First layer of stage i of pp; i = pp: one past the last. */
int sh_split_first(int n_layer, int pp, int i);

/* Everything that a stage's GPUs hold at a length. */
void sh_split_stage(const struct sh_capacity_ask *a, int i, uint64_t length, struct sh_capacity_stage *out);

/* The cache alone, for searches over lengths: what one sequence takes, the draft's included. */
struct sh_kv_bytes sh_split_cache(const struct sh_capacity_ask *a, int i, uint64_t length);

/* ---- what a serving runtime takes in addition (capacity_server.c) ---- */

/* What a serving runtime needs in addition to weights and cache. It cannot be computed from a config, so each term is a
 * range with the measurement it comes from; none of it is in struct sh_capacity. Modelled on vLLM, whose logs are the
 * only ones posted with every term (doc/capacity.md). */
struct sh_server {
    uint64_t sampled;                   /* sequences that the warm-up samples for; 0: 1024 on boards from 70 GiB
                                         * on other than A100, else 256                            */
    uint64_t at_once;                   /* tokens in flight; 0: 8192 on those boards, else 2048     */
    double visible;                     /* bytes that a program is shown of the memory; 0: not known */
    int is_a100;
};

struct sh_server_term {
    const char *name, *source;
    double low, high;                   /* bytes of one GPU                                       */
};

enum { SH_SERVER_TERMS = 8 };

/* The terms of a stage. Returns their number. */
int sh_server_terms(const struct sh_capacity_ask *a, const struct sh_server *s, int stage,
                    struct sh_server_term out[SH_SERVER_TERMS]);

#endif
