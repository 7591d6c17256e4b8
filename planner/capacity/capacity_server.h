/* SPDX-License-Identifier: Apache-2.0 */
/* What a serving runtime takes beside weights and cache. Nobody can compute it from a config, so each term is
 * a range with the measurement it comes from; none of it is in struct sh_capacity. Modelled on vLLM, whose
 * logs are the only ones posted with every term (doc/capacity.md). */
#ifndef SH_PLANNER_CAPACITY_SERVER_H
#define SH_PLANNER_CAPACITY_SERVER_H

#include "planner/capacity/capacity.h"

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

/* Of a stage. Returns how many terms there are. */
int sh_server_terms(const struct sh_capacity_ask *a, const struct sh_server *s, int stage,
                    struct sh_server_term out[SH_SERVER_TERMS]);

/* Activation peak of one forward pass: the widest layer's intermediate values or what sampling holds,
 * whichever is more, and the hidden states. Bytes of one GPU. */
double sh_server_activations(const struct sh_capacity_ask *a, double tokens, double sampled);

#endif
