/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder-only transformer as numbers: all parameters of the forward pass, for every family. Filled from config.json
 * (config.h). The facts for the capacity arithmetic (facts.h) are derived from it and, in families whose memory is only
 * counted, from further keys of their configs. */
#ifndef SH_MODEL_ARCH_H
#define SH_MODEL_ARCH_H

#include "kernels/backend.h"
#include "src/base/num.h"
#include "src/model/rope.h"

enum sh_norm_place {
    SH_NORM_PRE,                /* before each block                                              */
    SH_NORM_POST,               /* after each block's residual sum                                */
    SH_NORM_BOTH                /* before each block, and on its output before the residual sum   */
};
enum sh_pos_kind { SH_POS_LEARNED, SH_POS_ROTARY, SH_POS_ALIBI, SH_POS_NONE };

enum sh_arch_flag {
    SH_TIED_HEAD = 1,           /* the output head is the token embedding                         */
    SH_HAS_BIAS = 2,            /* the products that make q, k and v have biases                  */
    SH_HAS_NORM_AFFINE = 4,     /* norms have weights (and biases)                                */
    SH_HAS_FINAL_NORM = 8,      /* a norm after the last layer                                    */
    SH_HAS_PROJECTION = 16,     /* d_embed != d_model: projections before and after the layers    */
    SH_HAS_OUT_BIAS = 32,       /* so has the product after attention                             */
    SH_HAS_MLP_BIAS = 64,       /* so have those of the feed-forward block                        */
    SH_GATED = 128,             /* feed-forward: act(gate x) * (up x), in place of act(up x)      */
    SH_PARALLEL = 256,          /* both blocks of a layer read the layer's input                  */
    SH_NORM_PLUS_ONE = 512,     /* the weights of norms are stored less 1                         */
    SH_HAS_QK_NORM = 1024,      /* queries and keys are normed per head, before the rotation      */
    SH_SCALED_BY_LAYER = 2048   /* the scores of layer l are divided by l + 1, too                */
};

enum { SH_MOST_LAYERS = 10048 };            /* a multiple of 64                                   */

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
    float softcap, head_softcap;            /* of scores and of logits, see sh_attend; 0: none    */
    float embed_scale;                      /* of the token embedding                             */
    float init_std;                         /* deviation of fresh weights, for random models      */
    float rotary_share;                     /* of each head; n_rot = d_head * rotary_share        */
    int n_rot;                              /* rotary elements of a head                          */
    struct sh_rope rope, local_rope;        /* local_rope: of windowed layers, if its base is set */
    int window;                             /* 0: no layer has one                                */
    uint64_t whole[SH_MOST_LAYERS / 64];    /* bit of a layer: full attention despite the window  */
    unsigned flags;                         /* enum sh_arch_flag                                  */
};

/* The number of keys that a query of the layer sees, its own included; 0: all. */
int sh_arch_window(const struct sh_arch *a, int layer);
void sh_arch_see_all(struct sh_arch *a, int layer);

/* The factor of the layer's products of queries and keys. */
float sh_arch_scale(const struct sh_arch *a, int layer);

/* The rotary parameters of the layer. */
const struct sh_rope *sh_arch_rope(const struct sh_arch *a, int layer);
/* Do the angles of a rotary scaling depend on the length of the text (dynamic, longrope)? */
int sh_arch_follows_length(const struct sh_arch *a);

/* ALiBi: the slope of each head, for free(); NULL: the model has none. */
float *sh_arch_slopes(const struct sh_arch *a);

#endif
