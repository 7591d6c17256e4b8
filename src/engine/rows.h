/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache in memory: how numbers become codes (quant.c), and the rows of a head (rows.c, rows_f16.c). */
#ifndef SH_ENGINE_ROWS_H
#define SH_ENGINE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/num.h"
#include "src/base/stages.h"
#include "src/model/arch.h"

/* ---- quant.c ----
 * Group-wise asymmetric quantisation of the KV cache. n numbers share a scale and a minimum:
 *
 *     scale = (max - min) / (2^bits - 1),  code = clamp(round((x - min) / scale), 0, 2^bits - 1),
 *     x' = code * scale + min
 *
 * rounding to nearest, ties to even; scale 0: code 0. With meta SH_F16 scale and minimum are rounded to
 * f16 (what is too large for it becomes its largest number) before they are used for the codes. Codes
 * of 4 bits are two in a byte, the first one in the low half; a group begins with a byte. */

/* How keys or values are kept. */
struct sh_kv_format {
    int bits;                           /* 32: f32, 16: f16, 8 and 4: codes                       */
    int group;                          /* size of a group of codes: numbers that share a scale; a multiple of 8 */
    enum sh_type meta;                  /* type of scale and minimum: SH_F16, or SH_F32           */
    int by_channel;                     /* codes of keys share them along slots, not channels     */
    int residual;                       /* newest keys that are kept as f16, if by_channel        */
};

static inline size_t sh_quant_code_bytes(int n, int bits) { return ((size_t)n * (size_t)bits + 7) / 8; }
static inline size_t sh_quant_meta_bytes(enum sh_type meta) { return 2 * sh_type_bytes(meta); }

/* One group of n numbers x[0], x[stride], …; meta: scale, minimum. */
void sh_quant_write(const struct sh_kv_format *f, const float *x, size_t stride, int n, void *codes, void *meta);

/* The same piece by piece: scale and minimum for numbers in [low, high]; what they can tell apart; and the code of
 * number i. */
void sh_quant_set_range(const struct sh_kv_format *f, float low, float high, void *meta);
void sh_quant_range(const struct sh_kv_format *f, const void *meta, float *low, float *high);
void sh_quant_put(const struct sh_kv_format *f, float x, int i, void *codes, const void *meta);

/* Numbers [first, first + n) of a group; first is even. */
void sh_quant_read(const struct sh_kv_format *f, const void *codes, const void *meta, int first, int n, float *x);

/* The same of `width` groups, whose codes are `step` bytes apart and whose metas follow one another: number first + i
 * of group c is x[i * width + c]. */
void sh_quant_read_columns(const struct sh_kv_format *f, const void *codes, size_t step, const void *metas, int first,
                           int n, int width, float *x);

/* A row of `width` numbers in groups, the last one perhaps shorter: their codes and their metas one after another. */
size_t sh_quant_row_code_bytes(const struct sh_kv_format *f, int width);
size_t sh_quant_row_meta_bytes(const struct sh_kv_format *f, int width);
void sh_quant_row_write(const struct sh_kv_format *f, const float *x, int width, void *codes, void *meta);
void sh_quant_row_read(const struct sh_kv_format *f, const void *codes, const void *meta, int width, float *x);

/* ---- rows.c ----
 * The keys or the values of one KV head of one sequence, by slot, in the format that the cache asks for.
 * Allocated once.
 *
 * Codes share their scale along the channels of one token, or along `group` consecutive slots of one channel,
 * which suits keys better (their channels differ more than their tokens; Liu et al., "KIVI", 2024). Where slots
 * are filled in order and never again, the block of the newest tokens stays in f32 until it is whole. Where
 * tokens leave and slots are taken again, the newest `residual` tokens are f16 rows; when there is no room for
 * another one, those of the block of slots that has most of them become codes. A channel of a block has the
 * range of its first tokens, and the codes that are there are left alone as long as new ones are within it (or
 * half a step outside); else it grows, and its `group` codes are made again. So nothing is coded again without
 * need, a step never codes more than a block, and no byte is allocated after the first. */

enum { SH_ROWS_AT_ONCE = 64 };          /* rows that are read together at most                     */

enum sh_kv_layout { SH_KV_BY_TOKEN, SH_KV_IN_ORDER, SH_KV_BY_CHANNEL };  /* of codes; the last two: by channel */

struct sh_kv_rows {
    struct sh_kv_format format;
    enum sh_kv_layout by_channel;
    int capacity, width;                /* width: d_head                                           */
    void *at;                           /* [capacity, width] numbers, or codes                     */
    void *meta;                         /* scales and minima of the codes                          */
    float *open;                        /* unfinished block, in order: [group, width]              */
    int whole;                          /* finished blocks, in order                               */
    uint16_t *fresh;                    /* newest rows, by channel: [residual, width] f16          */
    int *held;                          /* their slots, by channel: [residual]; -1: none           */
    size_t at_bytes, meta_bytes, open_bytes;
    size_t all_bytes;                   /* size of the one allocation that holds these            */
};

/* -1: it does not fit into memory. */
int sh_kv_rows_new(struct sh_kv_rows *r, const struct sh_kv_format *f, enum sh_kv_layout by_channel, int capacity,
                   int width, struct sh_err *e);
void sh_kv_rows_clear(struct sh_kv_rows *r);            /* no token of before is there; {0} is fine */
void sh_kv_rows_free(struct sh_kv_rows *r);             /* {0} is fine */

/* to, of the same shape, becomes from. */
void sh_kv_rows_copy(struct sh_kv_rows *to, const struct sh_kv_rows *from);

void sh_kv_rows_put(struct sh_kv_rows *r, int slot, const float *row);

/* Rows [first, first + n), first a multiple of SH_ROWS_AT_ONCE and n at most that: in place if
 * they are f32, else in scratch [n, width]. */
const float *sh_kv_rows_get(const struct sh_kv_rows *r, int first, int n, float *scratch);

/* rows_f16.c: products with rows of f16 numbers without a copy in f32. Only with AVX-512 and rows of some widths;
 * the results are bit by bit those of slots_attend.c's loops over a copy. */
int sh_rows_f16_fit(int d);                             /* rows of d numbers, on this machine     */
/* score[j] = scale * q k_j: k [n, d]. */
void sh_rows_f16_products(const float *q, const uint16_t *k, float scale, int n, int d, float *score);
/* out += p v: v [n, d]. */
void sh_rows_f16_mix(const float *p, const uint16_t *v, int n, int d, float *out);

/* ---- positions.c ----
 * Positions inside the cache, as StreamingLLM has them (Xiao et al. 2023): a kept token's place is how many
 * kept tokens are older, so a query is at place n - 1 whatever has been read before, and a model never
 * sees a distance that it was not trained on. Rotary keys are kept as they were before they turn, and turn
 * for their place whenever they are looked at; with ALiBi places take the positions' part. */

enum sh_positions { SH_POSITIONS_ORIGINAL, SH_POSITIONS_CACHE };

/* place [n_slot], -1: free. The tokens of `slot` [n] leave; scratch: [n_slot + 1]. */
void sh_positions_leave(int *place, int n_slot, const int *slot, int n, int *scratch);

/* The angles of places 0 to n - 1, for layers that turn alike; on the host. */
struct sh_turn {
    float *cosine, *sine;               /* [n, n_rot / 2]; NULL: nothing turns                    */
    int n_rot, n;
};

int sh_turn_new(struct sh_turn *t, const struct sh_rope *rope, int n_rot, int n, struct sh_err *e);
void sh_turn_free(struct sh_turn *t);                   /* {0} is fine */

/* to [n, d] = the rows of `from` turned for their places; place -1: left as they are. to may be from. */
void sh_turn_rows(const struct sh_turn *t, const float *from, const int *place, int n, int d, float *to);

/* ---- slots_attend.c ----
 * Attention of one token's queries over the live slots of one KV head, on the host. The score before softmax is that of
 * sh_attend (kernels/backend.h): cap(scale * q k) + slope * (j - i), with i and j the original positions or places in
 * the cache. Slots that are free, or whose token is before the window, get 0. */

struct sh_slots_attend {
    const struct sh_kv_rows *k, *v;
    const int *pos;                     /* [n_slot] position or place; -1: free                   */
    const struct sh_turn *turn;         /* keys turn for pos first; NULL: they have               */
    int n_slot;
    int group;                          /* query heads of the KV head                             */
    const float *q;                     /* [group, d_head]                                        */
    int position, window;               /* position and window of the queries; window 0: none     */
    float scale, softcap;               /* softcap 0: none                                        */
    const float *slopes;                /* [group] (ALiBi); NULL: none                            */
    const float *sinks;                 /* [group]; this, and these two: as in struct sh_attend   */
    int rounds_slopes, span;            /* span: its chunk                                        */
    float *out;                         /* [group, d_head]; NULL: not wanted                      */
    float *probs;                       /* [group, n_slot], out: the probabilities by slot        */
    float *chunk;                       /* scratch: [SH_ROWS_AT_ONCE, d_head]                     */
    struct sh_stages *stages;           /* NULL: time is not measured                             */
    int sharers;                        /* threads of the time                                    */
};

/* How many slots the softmax ran over. */
int sh_slots_attend(const struct sh_slots_attend *a);

/* row [n_slot] = the mean of the group's rows. */
void sh_slots_mean(const float *probs, int group, int n_slot, float *row);

#endif
