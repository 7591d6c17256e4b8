/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters and bytes of a model's weights, part by part: mixed files are common, and what a step reads is not what a
 * file holds. Matrices of the layers have the format asked for; token embedding, output head, routers, norms, biases,
 * convolutions and states' own parameters stay at 16 bits (f32 when all are f32), as quantised checkpoints keep them -
 * except in formats of whole files (q8_0, q4_0), where embedding and head are quantised, too, and vectors are f32.
 * Counts agree with the published ones (tests/unit/test_catalog.c). */
#ifndef SH_PLANNER_CAPACITY_KV_WEIGHTS_H
#define SH_PLANNER_CAPACITY_KV_WEIGHTS_H

#include <stdint.h>

#include "planner/capacity/kv_shape.h"
#include "planner/capacity/kv_type.h"

extern const char *const sh_kv_part_names[SH_N_PART];

struct sh_kv_parts { uint64_t parameters[SH_N_PART], bytes[SH_N_PART]; };

struct sh_weight_types {
    struct sh_kv_type matrices, experts;
    struct sh_kv_type attention;        /* type of attention and states; bits 0: that of the matrices */
    /* [n_own]: formats that matrices have one by one, as the facts say. The types above are then those of the last
     * layers; what is said of speed goes by them. */
    struct sh_kv_type own[SH_FACTS_FORMATS];
    int n_own;
    int stored;                         /* bytes are those of the shape's file, where it has one  */
};

/* The format of the published files: f16 unless the facts say otherwise. */
int sh_weight_types_published(const struct sh_kv_facts *f, struct sh_weight_types *out, struct sh_err *e);

/* Each adds to `p`. A tied head has no bytes of its own unless it is `copied`: then it is in another stage than the
 * embedding (the last stage of a pipeline). */
void sh_kv_weights_layers(const struct sh_kv_shape *s, int first, int last, const struct sh_weight_types *t,
                          struct sh_kv_parts *p);
/* The weights of layers that have those of an earlier layer: a step reads them again, but they take no memory. */
void sh_kv_weights_again(const struct sh_kv_shape *s, int first, int last, const struct sh_weight_types *t,
                         struct sh_kv_parts *p);
void sh_kv_weights_first(const struct sh_kv_shape *s, const struct sh_weight_types *t, struct sh_kv_parts *p);
void sh_kv_weights_last(const struct sh_kv_shape *s, const struct sh_weight_types *t, int copied,
                        struct sh_kv_parts *p);

/* All weights, on one device. */
struct sh_kv_parts sh_kv_weights_all(const struct sh_kv_shape *s, const struct sh_weight_types *t);

uint64_t sh_kv_parts_sum(const uint64_t part[SH_N_PART]);

#endif
