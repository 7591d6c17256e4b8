/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the loops with a fixed number of clients (closed_loop.c, split_loop.c): the time of a server's decoding
 * steps, and heaps. */
#ifndef SH_PLANNER_SIMULATE_LOOP_PARTS_H
#define SH_PLANNER_SIMULATE_LOOP_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "planner/clock/step_time.h"

/* ---- places with a key each, the least on top ---- */

struct sh_loop_heap {
    struct sh_loop_item { double key; uint32_t place; } *at;    /* [n]; free(at) at the end        */
    uint32_t n, room;
};
void sh_loop_push(struct sh_loop_heap *h, double key, uint32_t place);
uint32_t sh_loop_pop(struct sh_loop_heap *h);

/* ---- time ---- */

/* How fast a server decodes. */
struct sh_loop_pace {
    const struct sh_clock *clock;
    const struct sh_capacity_ask *ask;
    uint32_t checked;                   /* tokens of a sequence that a decoding step checks        */
    double gained;                      /* how many of these it gains on average                  */
    struct sh_clock_sequence *grid;     /* [n_grid] at lengths in steps; free it at the end        */
    size_t n_grid;
};

/* draft, accept: as in struct sh_loop_ask. */
struct sh_loop_pace sh_loop_pace(const struct sh_clock *c, const struct sh_capacity_ask *ask, uint32_t draft,
                                 double accept);

/* What attention costs a sequence of this length, linear between computed ones. */
struct sh_clock_sequence sh_loop_at(struct sh_loop_pace *p, double length);

/* Adds the work of decoding `batch` sequences of all ranks, `checked` tokens of each. */
void sh_loop_decode_work(const struct sh_clock *c, const struct sh_clock_sequence *q, double batch, uint32_t checked,
                         struct sh_clock_work *w);

/* A pipeline processes parts of the batch at the same time, none smaller than a sequence: the work of one part. */
void sh_loop_pipeline(const struct sh_clock *c, double batch, struct sh_clock_work *w);

/* The time of a step's work for `batch` sequences. */
double sh_loop_step_s(const struct sh_clock *c, struct sh_clock_work w, double batch);

/* The time in which tokens are proposed for `batch` sequences; a step that decodes and proposes, at a mean length. */
double sh_loop_propose_s(const struct sh_loop_pace *p, const struct sh_clock_sequence *q, double batch);
double sh_loop_batch_s(struct sh_loop_pace *p, double batch, double length);

/* The time of n such steps, the first of which takes `first`: Simpson's rule. */
double sh_loop_stretch_s(struct sh_loop_pace *p, double batch, double length, double n, double first);

/* Decoding steps for the tokens of an answer after the first one. */
double sh_loop_steps(const struct sh_loop_pace *p, uint32_t output);

#endif
