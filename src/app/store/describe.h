/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a trace store that trace, import and info report. */
#ifndef SH_APP_STORE_DESCRIBE_H
#define SH_APP_STORE_DESCRIBE_H

#include "src/base/out.h"
#include "src/app/common/devices.h"
#include "traces/store.h"

/* The contract's keys for one run: model, layers, heads, kv_heads, sequences, tokens, scores, bytes,
 * bytes_per_score, seconds, tokens_per_s, backend, dtype; then record, codec, device and the rest. */
int sh_describe_run(struct sh_out *o, struct sh_store *s, const struct sh_stored_run *r, struct sh_err *e);
int sh_describe_run_of(struct sh_out *o, struct sh_store *s, int run, struct sh_err *e);     /* a run by its number */

/* The peak of host memory; of devices with their own memory also the estimate (0: no such device) and the peak. */
void sh_describe_memory(struct sh_out *o, const struct sh_devices *d, size_t needs_bytes);

#endif
