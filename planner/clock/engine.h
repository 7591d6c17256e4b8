/* SPDX-License-Identifier: Apache-2.0 */
/* A serving engine as numbers: how fast it does each kind of work, by GPU generation, and how it schedules. Read from
 * the catalogue (planner/catalog/engines) or from a profile that was fitted to a user's own server; both are the same
 * text, fields separated by tabs:
 *
 *     engine   NAME                          the scheduler: vllm, sglang or trtllm
 *     release  TEXT                          what was measured
 *     fitted   TEXT                          on what, and when
 *     rule     KEY  NUMBER...                a number for each generation that has constants
 *     constant KEY  NUMBER...  UNIT  TEXT
 *     error    GENERATION KIND RUNS TPOT TTFT     mean absolute error, in per cent, of models that were left out;
 *                                                 TTFT is - where it was not measured
 *     # a remark
 *
 * The numbers of a row belong to the generations hopper and blackwell, in this order. */
#ifndef SH_PLANNER_CLOCK_ENGINE_H
#define SH_PLANNER_CLOCK_ENGINE_H

#include <stdio.h>

#include "src/base/err.h"

enum sh_generation { SH_GEN_HOPPER, SH_GEN_BLACKWELL, SH_N_GEN };
extern const char *const sh_generation_names[SH_N_GEN];

enum sh_scheduler { SH_SCHED_VLLM, SH_SCHED_SGLANG, SH_SCHED_TRTLLM, SH_N_SCHED };
extern const char *const sh_scheduler_names[SH_N_SCHED];

/* name, unit, least, most, meaning. Shares are of what the catalogue says of the GPU. */
#define SH_CLOCK_CONSTANTS(X) \
    X(dense_memory, "1", 0.05, 1, "share of the bandwidth at which dense weights are read") \
    X(narrow_memory, "1", 0.05, 1, "the same for dense weights in nvfp4, which has many scales") \
    X(expert_memory, "1", 0.05, 1, "share of the bandwidth at which experts are read") \
    X(cache_memory, "1", 0.02, 1, "share of the bandwidth at which attention reads the cache") \
    X(state_memory, "1", 0.02, 1, "share of the bandwidth at which recurrent states are read and written") \
    X(decode_products, "1", 0.01, 1, "share of the peak of dense products while decoding") \
    X(decode_experts, "1", 0.01, 1, "share of the peak of grouped expert products while decoding") \
    X(decode_attention, "1", 0.01, 1, "share of the 16-bit peak of attention while decoding") \
    X(prompt_products, "1", 0.02, 1, "share of the peak of dense products of prompts") \
    X(prompt_experts, "1", 0.01, 1, "share of the peak of grouped expert products of prompts") \
    X(prompt_attention, "1", 0.01, 1, "share of the 16-bit peak of attention of prompts") \
    X(vectors, "vectors", 0.1, 1000, "16-bit hidden vectors that a token moves in a layer between products") \
    X(routed, "vectors", 0.01, 1000, "16-bit hidden vectors that a token moves for each expert it is sent to") \
    X(layer, "s", 1e-8, 1e-3, "fixed time of a layer: launches, small kernels") \
    X(experts, "s", 1e-9, 1e-3, "added for a layer with experts") \
    X(latent, "s", 1e-9, 1e-3, "added for a layer with latent attention") \
    X(linear, "s", 1e-9, 1e-3, "added for a layer with a recurrent state") \
    X(indexed, "s", 1e-9, 1e-3, "added for a layer that chooses tokens by an index") \
    X(quantised, "s", 1e-9, 1e-3, "added for a layer whose attention has operands of 8 or 4 bits") \
    X(blocks, "s", 1e-9, 1e-3, "added for a layer of f8 weights scaled in blocks") \
    X(launch, "times", 0.1, 1000, "factor on the fixed times of layers in a step with prompts") \
    X(sum, "s", 1e-8, 1e-3, "latency of a sum over two GPUs") \
    X(sum_more, "s", 1e-9, 1e-3, "added for each further GPU") \
    X(link, "1", 0.02, 1, "share of the link's bandwidth in one direction") \
    X(step, "s", 1e-7, 1e-1, "time of the host for a step") \
    X(sequence, "s", 1e-9, 1e-3, "time of the host for each sequence of a step") \
    X(request, "s", 1e-6, 10, "time of a request outside the model: network, tokenizer, queues") \
    X(token, "s", 1e-10, 1e-3, "the same for each token of its prompt")

enum sh_clock_constant {
#define X(name, unit, low, high, text) SH_CLOCK_##name,
    SH_CLOCK_CONSTANTS(X)
#undef X
    SH_N_CLOCK_CONSTANT
};

struct sh_clock_key { const char *name, *unit, *meaning; double low, high; };
extern const struct sh_clock_key sh_clock_keys[SH_N_CLOCK_CONSTANT];

enum sh_engine_rule {
    SH_RULE_CHUNK,                      /* tokens of a step at most                               */
    SH_RULE_SEQUENCES,                  /* the most sequences that run at once                     */
    SH_RULE_MEMORY,                     /* share of the GPU's memory that it takes                 */
    SH_RULE_POLL,                       /* it looks for new requests every so many decoding steps  */
    SH_RULE_POLL_BUSY,                  /* SH_RULE_POLL with 16 clients and more                  */
    SH_N_RULE
};
extern const struct sh_clock_key sh_engine_rules[SH_N_RULE];

enum { SH_ENGINE_ERRORS = 32, SH_ENGINE_TEXT = 320 };

struct sh_engine_error {                /* mean absolute relative error of predictions            */
    enum sh_generation generation;
    char kind[32];                      /* sh_clock_kind of the model                             */
    int runs;
    double tpot, ttft;                  /* shares; ttft NaN: not measured                         */
};

struct sh_engine {
    enum sh_scheduler scheduler;
    char release[SH_ENGINE_TEXT], fitted[SH_ENGINE_TEXT];
    double constant[SH_N_GEN][SH_N_CLOCK_CONSTANT];
    double rule[SH_N_GEN][SH_N_RULE];
    int n_error;
    struct sh_engine_error error[SH_ENGINE_ERRORS];
};

/* Rows end with NULL; `path` names them in errors. Everything must be there, once. */
int sh_engine_read(const char *const *rows, const char *path, struct sh_engine *out, struct sh_err *e);

/* The built-in engine of that name; -1: none, or its rows are wrong. */
int sh_engine_built_in(const char *name, struct sh_engine *out, struct sh_err *e);

/* The engine as this text, with `remark` as its first line. */
void sh_engine_write(const struct sh_engine *g, const char *remark, FILE *to);

/* The error where a kind of model was measured on a generation; NULL: it was not. */
const struct sh_engine_error *sh_engine_error(const struct sh_engine *g, enum sh_generation gen, const char *kind);

#endif
