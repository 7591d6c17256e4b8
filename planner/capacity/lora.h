/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters (LoRA, 2106.09685): next to a matrix W [rows, n] of a layer lie A [rank, n] and B [rows, rank], 16 bits
 * each. The matrices are those of queries, keys, values, output and of feed-forward blocks, shared experts included;
 * other experts have none. Servers give each adapter a place of the largest rank for all of these matrices, whatever it
 * has (vLLM: max_loras, max_lora_rank), and split a pair like its matrix over the GPUs that share a layer: if W is cut
 * by rows, B is cut and A is whole; if W is cut by columns, A is cut and B is whole. */
#ifndef SH_PLANNER_CAPACITY_LORA_H
#define SH_PLANNER_CAPACITY_LORA_H

#include "planner/capacity/kv_shape.h"

struct sh_lora { uint64_t adapters, rank; };    /* adapters that a GPU has places for; 0: none */

/* Parameters of one adapter in the layers [first, last), on one of tp GPUs. */
uint64_t sh_lora_parameters(const struct sh_kv_shape *s, int first, int last, const struct sh_lora *l, int tp);

/* How many adapters a step needs on average if each of its sequences has one at random. */
double sh_lora_touched(double adapters, double sequences);

/* Latent attention and recurrent states are cut in other ways: -1, with a message that names the model. */
int sh_lora_suits(const struct sh_kv_shape *s, struct sh_err *e);

#endif
