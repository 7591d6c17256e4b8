/* SPDX-License-Identifier: Apache-2.0 */
/* How long a step of a server takes: a model on a group of GPUs, with the constants of an engine (engine.h). The time
 * of one GPU; all are alike. A step decodes one token of each of B sequences and reads P tokens of prompts. Each line
 * below is a sum over the layers; `a | b` is sqrt(a^2 + b^2), since moving and computing overlap in part; eff is the
 * engine's efficiency for this kind of work, a share:
 *
 *     dense     bytes / (eff bandwidth) | FLOP / (eff peak of the format); with adapters (planner/capacity/lora.h),
 *               those that the sequences have
 *     experts   bytes of those touched / (eff bandwidth) | FLOP / (eff peak of the format)
 *     attention cache read / (eff bandwidth) | FLOP / (eff 16-bit peak) of decoding; of prompts FLOP alone
 *     states    read and written / (eff bandwidth)
 *     vectors   what tokens move between products / bandwidth
 *     layers    launches and small kernels, by kind of layer; with prompts, which are launched one by one and not as
 *               a graph, so many times that, but for the index, | all above, less what is above
 *     sums      the less of: latency + (GPUs - 1) vectors / (eff link, one direction), as kernels that sum in one go;
 *               1.5 latencies + 2 (GPUs - 1) / GPUs vectors / (eff link), as a ring
 *     host      of a step + of each sequence
 *
 * n tokens touch 1 - (1 - k/E)^n of the experts. A pipeline of pp stages passes pp parts of the batch at once, so a
 * token of each sequence takes the time of all layers with a pp-th of the batch. */
#ifndef SH_PLANNER_CLOCK_STEP_TIME_H
#define SH_PLANNER_CLOCK_STEP_TIME_H

#include "planner/capacity/capacity.h"
#include "planner/catalog/catalog.h"
#include "planner/clock/engine.h"

/* Attention is cut tp ways and copied dp times; experts lie ep ways apart and are cut like the rest within; tp * dp *
 * pp GPUs. */
struct sh_clock_layout { int tp, ep, dp, pp; };

/* -1: a layout that servers refuse, and why. */
int sh_clock_layout_check(const struct sh_clock_layout *l, const struct sh_kv_shape *s, struct sh_err *e);

struct sh_clock {
    const struct sh_kv_shape *shape;    /* not owned                                              */
    struct sh_clock_layout layout;
    enum sh_generation generation;
    double constant[SH_N_CLOCK_CONSTANT];
    double bandwidth, peak, link;       /* bytes/s; 16-bit FLOP/s; bytes/s in one direction, 0: not known */
    /* of all layers, on one GPU */
    double dense_bytes, narrow_bytes;   /* narrow: of the dense ones, those in nvfp4               */
    double head_bytes, expert_bytes, weight_bytes;      /* the last: all that it holds             */
    double dense_s, head_s, expert_s;   /* seconds of the products of one token at the peak of their formats */
    double share;                       /* k / E                                                  */
    double vector_bytes, routed_bytes;  /* bytes of one 16-bit vector in each layer; for each expert of a token */
    double adapters;                    /* places for adapters                                    */
    double adapter_bytes, adapter_s;    /* bytes of one adapter; seconds of a token at the peak    */
    double launch_s, index_s;           /* all layers' own time: without the index, and of the index */
    double sum_s, sum_bytes;            /* latencies of the sums of a step; sent for each token    */
};

/* What a step does on the rank with the most work. */
struct sh_clock_work {
    double decoding;                    /* sequences that decode a token                           */
    double prompt_tokens, prompts;      /* tokens of prompts; prompts they belong to               */
    double logits;                      /* tokens whose successor is wanted                        */
    double all_tokens;                  /* tokens of all ranks                                     */
    double all_sequences;
    double cache_bytes, state_bytes;    /* bytes that decoding reads; a state once                 */
    double decode_flops, prompt_flops;  /* FLOPs of attention                                      */
};

/* Of the ask, only tp (that of the layout), formats, adapters and bandwidth count; its pp and ep are 1. -1: the layout
 * is refused, or the link of several GPUs is not known. */
int sh_clock(const struct sh_engine *g, const struct sh_gpu *b, const struct sh_capacity_ask *ask,
             const struct sh_clock_layout *l, struct sh_clock *out, struct sh_err *e);

/* Seconds of a step by terms, and their sum. */
enum sh_clock_term {
    SH_TERM_DENSE, SH_TERM_EXPERTS, SH_TERM_ATTENTION, SH_TERM_STATES, SH_TERM_VECTORS, SH_TERM_LAYERS, SH_TERM_SUMS,
    SH_TERM_HOST, SH_N_TERM
};
extern const char *const sh_clock_term_names[SH_N_TERM];
double sh_clock_step(const struct sh_clock *c, const struct sh_clock_work *w, double term[SH_N_TERM]);

/* What attention costs one sequence of n tokens on a rank: decoding its next token, and reading it as a prompt. */
struct sh_clock_sequence {
    double cache_bytes, state_bytes, decode_flops, prompt_flops, held_bytes;
};
struct sh_clock_sequence sh_clock_sequence_at(const struct sh_capacity_ask *ask, uint64_t n);

/* Attention's FLOPs of a prompt as engines read it, as a share of those that capacity.h counts: with the keys and
 * values of each head, and not on the latent, as decoding does and as prompts do whose tokens an index chooses. */
double sh_clock_prompt_share(const struct sh_kv_shape *s);

/* The tp whose share of the heads a prompt's attention computes. Attention to tokens chosen by an index computes at
 * least 64 heads: engines pad queries for FlashMLA's sparse kernels to 64 (Hopper) or 128 (Blackwell; the measured
 * servers there behave like 64). */
int sh_clock_prompt_tp(const struct sh_kv_shape *s, int tp);

/* "dense", "experts", "latent", "linear", "index": the kind of model that an error is known for. */
const char *sh_clock_kind(const struct sh_kv_shape *s);

/* Is this GPU of a generation that was measured? Other GPUs get the constants of the nearest generation. */
int sh_clock_generation(const struct sh_gpu *b, enum sh_generation *out);

#endif
