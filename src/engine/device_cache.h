/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache of a batch of sequences on the device (kernels/slots.h), where the backend has one and the
 * policy needs no more than the device keeps. It does what cache.h does on the host, to the token: what the
 * device is told follows from the same policies, and what it does is tested against them. */
#ifndef SH_ENGINE_DEVICE_CACHE_H
#define SH_ENGINE_DEVICE_CACHE_H

#include "src/engine/cache.h"
#include "src/engine/resident.h"

struct sh_device_cache;

/* Why the cache has to be on the host, though the memory of the device is not the host's; NULL: it need not,
 * or the memory is. `text` is room for the sentence. */
enum { SH_DEVICE_WHY = 160 };
const char *sh_device_cache_why_not(const struct sh_resident *r, const struct sh_session_setup *setup,
                                    char text[SH_DEVICE_WHY]);

/* The setup has been checked (sh_kv_setup_check). NULL: it does not fit; e says what would. */
struct sh_device_cache *sh_device_cache_new(struct sh_resident *r, const struct sh_session_setup *setup,
                                            struct sh_err *e);
void sh_device_cache_free(struct sh_device_cache *c);           /* NULL is fine */
void sh_device_cache_restart(struct sh_device_cache *c, int sequence);
/* `to`, of a cache with the same setup (but for n_seq), takes over what `from` holds. */
void sh_device_cache_copy(struct sh_device_cache *to, int sequence_to, const struct sh_device_cache *from,
                          int sequence_from);

/* Rows are going to be watched, which the setup did not say: before anything is read. */
void sh_device_cache_keep_rows(struct sh_device_cache *c);

/* The resident's hidden rows through all layers. Steps of no more than one row a sequence are the same work each
 * time, and run as a graph from the third on, where the device can record one. -1: nothing is queued; the
 * device's own failures come out of its sync. */
int sh_device_cache_run(struct sh_device_cache *c, const struct sh_piece *p, struct sh_err *e);

struct sh_kv_bytes sh_device_cache_bytes(const struct sh_device_cache *c);
struct sh_kv_kept sh_device_cache_kept(const struct sh_device_cache *c);

/* Sequences that fit into what the device has left, up to `most`; 0: not one. */
int sh_device_cache_fit(const struct sh_resident *r, const struct sh_session_setup *setup, int most);

#endif
