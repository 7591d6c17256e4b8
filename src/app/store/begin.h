/* SPDX-License-Identifier: Apache-2.0 */
/* What trace and import do before they write a run. */
#ifndef SH_APP_STORE_BEGIN_H
#define SH_APP_STORE_BEGIN_H

#include "traces/store.h"

/* Claims the store, so that one program at a time writes runs. Waits for another one, with a remark. */
int sh_begin_claim(struct sh_store *s, struct sh_err *e);

/* A remark if the run is new in a store that has others: what later commands take. Then they need --run, or --model. */
int sh_begin_tell(struct sh_store *s, int run, int quiet, struct sh_err *e);

/* "in use by another program; waiting"; said even with -q. */
void sh_begin_tell_waiting(const char *path);

#endif
