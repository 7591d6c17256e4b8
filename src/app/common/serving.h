/* SPDX-License-Identifier: Apache-2.0 */
/* A server as options describe it, with the clock of its engine: what simulate's closed loop, capacity's expected speed
 * and calibrate have in common. */
#ifndef SH_APP_COMMON_SERVING_H
#define SH_APP_COMMON_SERVING_H

#include "planner/simulate/closed_loop.h"
#include "src/app/capacity/capacity_ask.h"

/* "vllm", "sglang", "trtllm", or a file that calibrate wrote. */
int sh_engine_open(const char *name, struct sh_engine *out, struct sh_err *e);

/* The engine's error on such a server in words; `text` has room for SH_ENGINE_TEXT. */
const char *sh_engine_says(const struct sh_engine *g, const struct sh_gpu *b, const struct sh_kv_shape *s, char *text);

struct sh_serving {
    struct sh_capacity_ask ask;
    struct sh_clock clock;
    uint64_t *layers;                   /* numbers of layers that `ask` points to; owned          */
    double memory;                      /* bytes of a GPU that weights and caches may take         */
    uint32_t chunk, sequences;          /* limits of a step, as asked for or the engine's         */
    uint32_t poll, poll_busy;
    enum sh_scheduler scheduler;
};

/* `a`: formats, memory, chunk and the largest number of sequences; `q`: model, board, format of the cache. sequences
 * and poll 0: the engine's. Clear the server after success. */
int sh_serving_open(const struct sh_capacity_args *a, const struct sh_capacity_settings *t,
                    const struct sh_capacity_question *q, const struct sh_engine *g, const struct sh_clock_layout *l,
                    struct sh_serving *out, struct sh_err *e);
void sh_serving_clear(struct sh_serving *s);

/* The closed loop of clients on this server; requests 0: ten for each client. */
struct sh_loop_ask sh_serving_loop(const struct sh_serving *s, uint32_t concurrency, uint64_t requests);

#endif
