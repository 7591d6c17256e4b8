/* SPDX-License-Identifier: Apache-2.0 */
/* The least time that one step of a model's layers can take on one GPU, from what it must move and compute:
 *
 *     bytes   = weights read + the cache read
 *     flops   = 2 * parameters that a token uses * tokens + attention
 *     seconds = max(bytes / bandwidth, flops / peak) + link bytes / link bandwidth
 *
 * Of E experts, of which each token takes k, n tokens read E * (1 - (1 - k/E)^n) when all are equally likely. The token
 * embedding is not read (but for the few rows used), unless it is the output head as well. A step may be decoding, a
 * prompt or both at once; every figure is of one GPU of the group. */
#ifndef SH_PLANNER_CAPACITY_ROOFLINE_H
#define SH_PLANNER_CAPACITY_ROOFLINE_H

enum sh_bound { SH_BOUND_BANDWIDTH, SH_BOUND_COMPUTE, SH_BOUND_LINK };

extern const char *const sh_bound_names[];

struct sh_roofline {
    double plain_bytes, head_bytes, expert_bytes;       /* weights on this GPU; experts: all it holds */
    double expert_share;                /* k / E; 0 without experts                                */
    double token_flops, head_flops;     /* for each token; for each token whose logits are wanted  */
    double link_bytes;                  /* sent and received for each token; 0: not counted        */
    double bandwidth, peak, link;       /* bytes/s, FLOP/s, bytes/s one way                        */
    double ranks;                       /* groups whose tokens meet in the experts (EP), at least 1 */
};

/* What a step is asked to do. */
struct sh_step_work {
    double tokens;                      /* that pass the layers                                   */
    double logits;                      /* of these, those whose next token is needed              */
    double cache_bytes;                 /* read by attention on this GPU                          */
    double attention_flops;             /* of scores and their products with values, this GPU      */
};

struct sh_step_time {
    double weight_bytes, bytes, flops;
    double memory_s, compute_s, link_s, s;
    enum sh_bound bound;                /* the largest of the three times                          */
};

/* Allocates nothing and takes well under a microsecond. */
struct sh_step_time sh_roofline_step(const struct sh_roofline *r, const struct sh_step_work *w);

#endif
