/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of attention that another program computed, on their way to a recorder: packed as the recorder's tap wants them,
 * or as sets, which are those that a backend makes of the same numbers. For one head of one sequence at a time:
 *
 *     sh_packer_begin(p, q0, n, window);
 *     for each of the n rows: sh_packer_row(p, score);
 *     sh_packer_end(p, head);                          hands them to the tap
 */
#ifndef SH_TRACER_PACKER_H
#define SH_TRACER_PACKER_H

#include "kernels/backend.h"
#include "traces/trace.h"

enum { SH_PACKER_ROWS = 32 };           /* at most, from a begin to its end */

struct sh_packer;

/* The tap is that of a recorder with this codec; its `also` is not served. most_keys: of the longest row. */
struct sh_packer *sh_packer_new(const struct sh_tap *tap, int sequence, enum sh_codec codec, int most_keys);
void sh_packer_free(struct sh_packer *p);               /* NULL is fine */

/* Rows [q0, q0 + n), which see what sh_row_start and sh_row_keys say; not causal ones (window < 0) only as scores. */
void sh_packer_begin(struct sh_packer *p, int q0, int n, int window);
void sh_packer_row(struct sh_packer *p, const float *score);    /* scores of the keys that the next row sees, >= 0 */
void sh_packer_end(struct sh_packer *p, int head);

#endif
