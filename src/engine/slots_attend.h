/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one token's queries over the live slots of one KV head, on the host. The score before softmax is that of
 * sh_attend (kernels/backend.h): cap(scale * q k) + slope * (j - i), with i and j the original positions or places in
 * the cache (positions.h). Slots that are free, or whose token is before the window, get 0. */
#ifndef SH_ENGINE_SLOTS_ATTEND_H
#define SH_ENGINE_SLOTS_ATTEND_H

#include "src/base/stages.h"
#include "src/engine/positions.h"
#include "src/engine/rows.h"

struct sh_slots_attend {
    const struct sh_kv_rows *k, *v;
    const int *pos;                     /* [n_slot] position or place; -1: free                   */
    const struct sh_turn *turn;         /* keys turn for pos first; NULL: they have               */
    int n_slot;
    int group;                          /* query heads of the KV head                             */
    const float *q;                     /* [group, d_head]                                        */
    int position, window;               /* of the queries; window 0: none                         */
    float scale, softcap;               /* softcap 0: none                                        */
    const float *slopes;                /* [group] (ALiBi); NULL: none                            */
    float *out;                         /* [group, d_head]                                        */
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
