/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed number of clients, each of which sends its next request when its last one is answered, and a server that
 * schedules as its engine does. The clients start at once. The rules:
 *
 *  1. A request is the server's some time after it was sent (the constants request and token of clock/engine.h).
 *     SGLang looks for new ones only every `poll` decoding steps, and after a step that read prompts.
 *  2. A prompt is admitted, oldest first, while fewer than `sequences` run and the cache has room for all that run
 *     at the lengths that they will have in the end; so nothing is ever preempted.
 *  3. A step has at most `chunk` tokens on each rank. vllm: a token of each running sequence, then prompts, the last
 *     one cut. trtllm: the same, but whole prompts as long as one fits into a step. sglang: prompts alone, cut; a step
 *     without prompts decodes.
 *  4. A prompt's last token gives its first output token. A step lasts as long as clock/step_time.h says.
 *  5. With a prefix cache (prefix_cache.h), a prompt that is admitted takes the blocks that are there and is read from
 *     there on; the step that admits it lasts longer by the time to load those of host and disk. Blocks of a prompt are
 *     there when the step that reads them ends, those of an answer when it is over. With a budget, the prompt's blocks
 *     stay whole and the request leaves them once it has its copy of what it keeps, which is read and written in that
 *     step; its answer's tokens are not kept. All ranks share one cache.
 *  6. With speculation, a decoding step proposes `draft` tokens for each sequence, one after the other, and checks them
 *     together with the next one. Each is accepted with probability `accept`, if those before it are, so in the mean a
 *     step has (1 - accept^(draft + 1)) / (1 - accept) tokens (Leviathan et al., 2023, eq. 1); every step has the mean.
 *     A proposed token takes the time that one layer of the model takes to decode a token, as a layer for multi-token
 *     prediction does. With accept 0 nothing is proposed.
 *  7. With several replicas, a router gives each request, when it is sent, to one of them, as in simulate.h. Answers
 *     of a step go out one after the other; each client whose request is answered sends the next one before the next
 *     answer goes out. Each replica steps by itself, and its scheduler knows of its own requests only.
 *
 * Steps that only decode are the same but for the length of the contexts, so those up to the next event are taken
 * together: their time is that of the first, middle and last (Simpson's rule), with all sequences at their mean length.
 * A request that a replica gets meanwhile ends them at the first step that can look for it.
 * The cost is that of the events: some for each request, whatever its length. */
#ifndef SH_PLANNER_SIMULATE_CLOSED_LOOP_H
#define SH_PLANNER_SIMULATE_CLOSED_LOOP_H

#include "planner/clock/step_time.h"
#include "planner/simulate/prefix_cache.h"
#include "planner/simulate/simulate.h"

struct sh_loop_ask {
    const struct sh_clock *clock;
    const struct sh_capacity_ask *ask;  /* model, formats and rule of the cache; tp is the clock's, pp and ep are 1 */
    enum sh_scheduler scheduler;
    uint32_t chunk, sequences, poll;    /* each at least 1; sequences: of all ranks                */
    uint32_t concurrency;
    uint64_t requests, seed;
    struct sh_lengths prompt, output;
    double memory;                      /* bytes of a GPU that weights and caches may take         */
    int (*stopped)(void);               /* asked now and then; not 0: give up; NULL                */
    struct sh_workload *workload;       /* requests in this order, whenever they arrived, not more than `requests`;
                                         * NULL: generated from prompt, output, seed               */
    struct sh_prefix_ask prefix;        /* block 0: none                                          */
    double slo_ttft_s, slo_tpot_s;      /* 0: none                                                */
    uint32_t draft;                     /* tokens that are proposed in a step                      */
    double accept;                      /* probability, 0 to 1                                    */
    uint32_t replicas;                  /* servers that are all alike; 0 is 1                      */
    enum sh_router router;
};

struct sh_loop_result {
    uint64_t requests, steps, tokens_in, tokens_out, most_running;      /* most_running: on one replica */
    uint64_t good, tokens_reused;       /* good: requests within the limits                        */
    struct sh_prefix_count prefix;
    double seconds, busy_s;             /* time until the last answer; time in steps, mean of replicas */
    double pool;                        /* bytes of a GPU for caches                              */
    struct sh_quantile ttft, tpot;      /* tpot: of answers of two tokens and more                 */
};

/* The result is large: the caller has it on the heap. -1: the weights, or a request by itself, do not fit. */
int sh_closed_loop(const struct sh_loop_ask *a, struct sh_loop_result *out, struct sh_err *e);

/* Counts an answer of `output` tokens, the first after `ttft` seconds, all others `rest` seconds later. */
void sh_loop_answered(const struct sh_loop_ask *a, double ttft, double rest, uint32_t output, struct sh_loop_result *r);

/* The time of a step that decodes one token of each of `batch` sequences of `context` tokens, and that of reading one
 * prompt alone in steps of `chunk` tokens, of which a cache has the first `known` (fewer than all). */
double sh_loop_decode_s(const struct sh_clock *c, const struct sh_capacity_ask *ask, double batch, uint64_t context,
                        double term[SH_N_TERM]);
double sh_loop_prompt_s(const struct sh_clock *c, const struct sh_capacity_ask *ask, uint64_t known, uint64_t prompt,
                        uint32_t chunk);

#endif
