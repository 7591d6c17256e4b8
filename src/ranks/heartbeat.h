/* SPDX-License-Identifier: Apache-2.0 */
/* While rank 0 joins what others wrote, which may exceed any timeout, it sends a heartbeat every second, and whoever
 * waits for it (sh_ranks_await) restarts the timeout. */
#ifndef SH_RANKS_HEARTBEAT_H
#define SH_RANKS_HEARTBEAT_H

#include "src/ranks/ranks.h"

/* Sends one heartbeat to ranks 1 to n - 1; with `to` [n], only to those not 0 there. */
void sh_heartbeat_tell(const struct sh_ranks *r, int n, const unsigned char *to);

/* Sends heartbeats from a thread of its own until the end; meanwhile nobody else in this process may pass messages.
 * NULL if no thread can be created: the others then wait no longer than usual. The end takes NULL. */
struct sh_heartbeat *sh_heartbeat_begin(const struct sh_ranks *r, int n);
void sh_heartbeat_end(struct sh_heartbeat *p);

#endif
