/* SPDX-License-Identifier: Apache-2.0 */
/* Positions inside the cache, as StreamingLLM has them (Xiao et al. 2023): a kept token's place is how many
 * kept tokens are older, so a query is at place n - 1 whatever has been read before, and a model never
 * sees a distance that it was not trained on. Rotary keys are kept as they were before they turn, and turn
 * for their place whenever they are looked at; with ALiBi places take the positions' part. */
#ifndef SH_ENGINE_POSITIONS_H
#define SH_ENGINE_POSITIONS_H

#include "src/base/err.h"
#include "src/model/arch.h"

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

#endif
