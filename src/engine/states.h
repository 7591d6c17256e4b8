/* SPDX-License-Identifier: Apache-2.0 */
/* What layers without attention keep of a text: a state of fixed size in each recurrent layer, in device
 * memory, for each sequence of a session. It has no budget. */
#ifndef SH_ENGINE_STATES_H
#define SH_ENGINE_STATES_H

#include "src/engine/cache.h"
#include "src/engine/resident.h"

struct sh_states;

/* For the setup's layers and sequences, empty. NULL: they do not fit. */
struct sh_states *sh_states_new(const struct sh_resident *r, const struct sh_session_setup *setup, struct sh_err *e);
void sh_states_free(struct sh_states *s);               /* NULL is fine */
void sh_states_restart(struct sh_states *s, int sequence);
/* `to`, of a session with the same layers, takes over what `from` holds. */
void sh_states_copy(struct sh_states *to, int sequence_to, const struct sh_states *from, int sequence_from);

/* Of all sequences in a layer of the model; NULL: it is not recurrent. */
float *sh_states_of(const struct sh_states *s, int layer);

/* Of one sequence in the setup's layers. */
size_t sh_states_bytes(const struct sh_session_setup *setup);

#endif
