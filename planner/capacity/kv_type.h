/* SPDX-License-Identifier: Apache-2.0 */
/* Number formats that weights and caches are kept in, with the bytes of their scales. A vector of n values takes n *
 * bits / 8 bytes in a plain format; in one with scales it is cut into groups, the last of which is stored whole, each
 * with its scale and zero point:
 *
 *     bytes(n) = ceil(n / group) * (group * bits + scale + zero) / 8
 *
 * With residual=R keys are grouped along a head's n kept tokens, channel by channel, the last group as short as it is,
 * and the newest R of them are f16 with a 32-bit slot each, as src/engine/rows.h keeps them; values as above:
 *
 *     keys(n) = sum over channels and groups of g (ceil(g * bits / 8) + (scale + zero) / 8)
 *               + min(R, n) (2 channels + 4)
 *
 * Written name[:group=N][:scale=BITS][:zero=BITS][:block=N][:residual=R]. A scale for each whole vector is scale
 * without group; block=N adds one f32 scale for each N x N tile of a matrix. Sources: ggml's block layouts (q8_0,
 * q4_0), the OCP microscaling formats (mxfp4), and the runtimes' NVFP4 caches (16 values, one f8 scale). */
#ifndef SH_PLANNER_CAPACITY_KV_TYPE_H
#define SH_PLANNER_CAPACITY_KV_TYPE_H

#include <stdint.h>

#include "src/base/err.h"

enum { SH_KV_TYPE_NAME = 48 };

struct sh_kv_type {
    char name[SH_KV_TYPE_NAME];         /* name, with its settings                                */
    int bits;                           /* size of one value                                      */
    int group;                          /* values that share a scale; 0: the whole vector         */
    int scale, zero;                    /* bits for each group; 0: none                           */
    int residual;                       /* newest keys that stay whole; 0: keys are grouped along a token */
    int block;                          /* side of a matrix's tiles that have an f32 scale; 0: none */
    int whole_file;                     /* weights only: embeddings too, vectors as f32 (GGUF)    */
    int f8_math;                        /* products in it run at the f8 rate if the GPU has one   */
};

/* -1: unknown format or setting, named. */
int sh_kv_type_parse(const char *text, struct sh_kv_type *out, struct sh_err *e);

/* Bytes of a vector of n values; a plain vector of odd bits is rounded up to whole bytes. */
uint64_t sh_kv_type_bytes(const struct sh_kv_type *t, uint64_t n);

/* Bytes of n tokens' keys of one head, grouped along the tokens. */
uint64_t sh_kv_type_channels(const struct sh_kv_type *t, uint64_t n, uint64_t channels);

/* Bytes of `rows` vectors of n values, tiles' scales included. */
uint64_t sh_kv_type_matrix(const struct sh_kv_type *t, uint64_t rows, uint64_t n);

#endif
