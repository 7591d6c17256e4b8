/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 joins what others wrote, which may take longer than anybody waits for a rank that is silent. So it says once
 * a second that it lives, and whoever waits for it (sh_ranks_await) begins to count anew. */
#ifndef SH_RANKS_PATIENCE_H
#define SH_RANKS_PATIENCE_H

#include "src/ranks/ranks.h"

/* Says so once, to ranks 1 to n - 1; with `to`, [n], to those that are not 0 there. */
void sh_patience_tell(const struct sh_ranks *r, int n, const unsigned char *to);

/* Says so from a thread of its own, until the end: nobody else in this process may pass messages meanwhile. NULL, and
 * others wait no longer than they would, where no thread can be had. The end takes NULL. */
struct sh_patience *sh_patience_begin(const struct sh_ranks *r, int n);
void sh_patience_end(struct sh_patience *p);

#endif
