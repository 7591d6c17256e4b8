/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in the order of their arrival, one at a time: a simulator never holds more of them than it works on. A
 * source is a struct whose first member is this one; its creator releases it. */
#ifndef SH_PLANNER_SIMULATE_WORKLOAD_H
#define SH_PLANNER_SIMULATE_WORKLOAD_H

#include <stdint.h>

#include "src/base/err.h"

enum { SH_REQUEST_TOKENS = 1 << 20 };   /* most tokens of a request, prompt and answer together   */

struct sh_request {
    double arrival_s;
    uint32_t prompt, output;            /* tokens, each at least 1; together at most SH_REQUEST_TOKENS */
};

struct sh_workload {
    /* 1: *out is the next request, which does not arrive before the last one; 0: there is no more; -1: error. */
    int (*next)(struct sh_workload *w, struct sh_request *out, struct sh_err *e);
    /* For a prefix cache (prefix_cache.h). The caller of next sets `block`, the tokens of a block; 0: keys are not
     * needed. Next then sets the keys of the request's full blocks, of prompt and answer as far as its text is known:
     * key[i] names the text up to the end of block i. They hold until it is called again. */
    uint32_t block, n_key;
    const uint64_t *key;
};

/* ---- the text of a request, by keys of its blocks (workload_keys.c) ---- */

/* Starts empty; free(at) at the end. */
struct sh_keys { uint64_t *at; uint32_t n, room; };

/* Adds the blocks that are still missing of the first `tokens` tokens, as those of the text `name`. */
void sh_keys_text(struct sh_keys *k, uint32_t block, uint64_t name, uint32_t tokens);

/* Adds the blocks of a prompt whose pieces of `piece` tokens, the last one possibly shorter, have these ids: equal ids
 * after equal ones are equal texts. `block` divides `piece` or is a multiple of it. */
void sh_keys_pieces(struct sh_keys *k, uint32_t block, uint32_t piece, const uint64_t *id, uint32_t n, uint32_t tokens);

/* ---- a generated workload (workload_random.c) ---- */

/* Poisson arrivals (independent exponential gaps), lengths fixed or sampled. The n-th request of a seed is the same
 * whatever the rate, so that a search for a rate compares like with like. */
enum sh_spread { SH_SPREAD_FIXED, SH_SPREAD_UNIFORM, SH_SPREAD_EXPONENTIAL, SH_SPREAD_LOGNORMAL };

struct sh_lengths {
    enum sh_spread spread;
    double low, high;                   /* FIXED, EXPONENTIAL: low is the mean; UNIFORM: both ends;
                                         * LOGNORMAL: the mean and the deviation of the logarithm  */
};

/* "512", "100-900", "exp:512", "lognormal:512:0.8". `option` is named in the error. */
int sh_lengths_parse(const char *option, const char *text, struct sh_lengths *out, struct sh_err *e);

struct sh_workload_random {
    struct sh_workload base;
    double rate;                        /* requests a second                                      */
    struct sh_lengths prompt, output;
    uint64_t seed, requests;
    uint64_t at;                        /* how many have been given                                */
    double now;
    uint32_t prefixes, prefix_tokens;   /* each prompt begins with that many tokens of one of them, chosen at random;
                                         * 0: with its own, as what follows is                     */
    struct sh_keys keys;
};

/* rate > 0. Sampled lengths are cut to 1 and to what a request may have. Fields that are not arguments stay. */
void sh_workload_random(struct sh_workload_random *w, double rate, uint64_t requests, uint64_t seed);

/* ---- a file (workload_csv.c) ---- */

/* The lines of a workload file, without the file: a header that names the columns, and a row as a request. Known
 * headers:
 *
 *     arrival_s, prompt_tokens, output_tokens           ours, in any order; others are ignored, but for `session`
 *     TIMESTAMP, ContextTokens, GeneratedTokens         the public Azure LLM inference traces
 *     Timestamp, Request tokens, Response tokens        BurstGPT
 *
 * A time is seconds, or a date as Azure writes it (2023-11-16 18:17:03.9799600, 2024-05-10 00:00:00.01+00:00). */
struct sh_workload_columns {
    int n;                              /* columns of the header                                  */
    int arrival, prompt, output;        /* numbers of these columns                               */
    int session;                        /* in our own files: a name; rows of the same name are turns of one
                                         * conversation, whose prompts begin with all before; below 0: none */
};

/* A line as it was read, with or without its end. -1: no known set of columns. */
int sh_workload_header(const char *line, struct sh_workload_columns *out, struct sh_err *e);

/* 1: a request; 0: nothing to simulate (an empty line, a request without a prompt or without an answer, of which
 * BurstGPT has many); -1: not a row of this header. *out is as the file has it: dates are seconds since 1970. *session:
 * a hash of its name; 0: none. */
int sh_workload_row(const struct sh_workload_columns *c, const char *line, struct sh_request *out, uint64_t *session,
                    struct sh_err *e);

#endif
