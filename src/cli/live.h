/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that run a model with a live cache have in common: the settings, and the model opened
 * for them. */
#ifndef SH_CLI_LIVE_H
#define SH_CLI_LIVE_H

#include "planner/budget.h"
#include "src/cli/devices.h"
#include "src/engine/session.h"

struct sh_live_options {                /* as typed; a command's option table points at them      */
    const char *model, *dtype;
    long long kv_bits, kv_group, weight_bits, prefill;  /* kv_bits 0: 32 with f32, else 16        */
    size_t device_memory;
};

struct sh_live {
    const struct sh_live_options *options;
    enum sh_type dtype;
    struct sh_kv_format format;
    struct sh_devices devices;
    struct sh_model *model;
    struct sh_resident *resident;       /* NULL until sh_live_load                                */
    uint64_t seed;
};

void sh_live_preset(struct sh_live_options *o);

/* Reads the settings. -1 where one is impossible. */
int sh_live_read(struct sh_live *l, const struct sh_live_options *o, const struct sh_common *c, const char *command,
                 struct sh_err *e);

/* Opens devices and model; then, when it is known what will be read, loads the weights. */
int sh_live_open(struct sh_live *l, const struct sh_common *c, struct sh_err *e);
int sh_live_load(struct sh_live *l, int positions, int rows, struct sh_err *e);
void sh_live_close(struct sh_live *l);                  /* {0} is fine */

/* A policy as typed and one budget for every head. b NULL: everything is kept, and a policy that does
 * not do so by itself is refused. */
struct sh_session *sh_live_session(const struct sh_live *l, const struct sh_policy_spec *p, const struct sh_budget *b,
                                   int n_seq, int n_token, struct sh_err *e);

#endif
