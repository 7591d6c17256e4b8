/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder-only transformer as numbers: everything that the forward pass and the capacity
 * arithmetic need to know of a model, whatever its family. Filled from config.json (config.h). */
#ifndef SH_MODEL_ARCH_H
#define SH_MODEL_ARCH_H

#include "kernels/backend.h"
#include "src/base/num.h"

enum sh_norm_kind { SH_NORM_LAYER, SH_NORM_RMS };
enum sh_norm_place { SH_NORM_PRE, SH_NORM_POST };   /* before each block, or after its sum        */
enum sh_pos_kind { SH_POS_LEARNED, SH_POS_ROTARY, SH_POS_ALIBI, SH_POS_NONE };

enum sh_arch_flag {
    SH_TIED_HEAD = 1,           /* the output head is the token embedding                         */
    SH_HAS_BIAS = 2,            /* linear layers have biases                                      */
    SH_HAS_NORM_AFFINE = 4,     /* norms have weights (and biases)                                */
    SH_HAS_FINAL_NORM = 8,      /* a norm after the last layer                                    */
    SH_HAS_PROJECTION = 16      /* d_embed != d_model: projections before and after the layers    */
};

struct sh_arch {
    int n_layer, n_head, n_kv_head;         /* query head h uses KV head h / (n_head / n_kv_head) */
    int d_head, d_model, d_embed, d_ff;     /* d_embed: width of the token embedding              */
    int n_vocab;
    int max_pos, pos_offset;                /* position p is row p + pos_offset of the table      */
    enum sh_norm_kind norm;
    enum sh_norm_place norm_place;
    enum sh_act act;
    enum sh_pos_kind pos;
    enum sh_type type;                      /* as declared; each tensor has its own               */
    float norm_eps, scale;                  /* attention scores = scale * q k                     */
    float init_std;                         /* deviation of fresh weights, for random models      */
    unsigned flags;                         /* enum sh_arch_flag                                  */
};

#endif
