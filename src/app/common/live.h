/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that run a model with a live cache have in common: the settings, and the model opened
 * for them. */
#ifndef SH_APP_COMMON_LIVE_H
#define SH_APP_COMMON_LIVE_H

#include "planner/policy/budget.h"
#include "src/base/out.h"
#include "src/app/common/devices.h"
#include "src/engine/session.h"

struct sh_live_options {                /* as typed; a command's option table points at them      */
    const char *model, *dtype;
    const char *kv_keys;                                /* NULL: token                            */
    long long kv_residual;
    long long kv_bits, kv_group, weight_bits, prefill;  /* kv_bits 0: 32 with f32, else 16        */
    double weight_prune;                                /* of each matrix of the layers; 0: none  */
    size_t device_memory;
    const char *positions, *prefill_mode;               /* NULL: original, stream                 */
    long long prefill_block;                            /* 0: as sh_live_shape decides             */
};

enum sh_prefill_mode { SH_PREFILL_STREAM, SH_PREFILL_BLOCKS, SH_PREFILL_ONCE };

/* Says on stderr that a cache is on the host and its rows travel; the same reason once. A resident's `on_host`. */
struct sh_host_note {
    char why[160];                      /* the last one                                           */
    int quiet, said_eager;
};
void sh_live_say_host(void *note, const char *why);
/* That steps do not run as graphs; once. A resident's `on_eager`. */
void sh_live_say_eager(void *note, const char *why);

struct sh_live {
    const struct sh_live_options *options;
    enum sh_type dtype;
    struct sh_kv_format format;
    struct sh_devices devices;
    struct sh_model *model;
    struct sh_resident *resident;       /* NULL until sh_live_load                                */
    uint64_t seed;
    enum sh_positions positions;
    enum sh_prefill_mode prefill_mode;
    int prefill;                        /* --prefill                                              */
    struct sh_host_note note;
};

/* --kv-keys and --kv-residual into the format. */
int sh_live_read_keys(const char *keys, long long residual, struct sh_kv_format *f, struct sh_err *e);

void sh_live_preset(struct sh_live_options *o);

/* Reads the settings. -1 where one is impossible. */
int sh_live_read(struct sh_live *l, const struct sh_live_options *o, const struct sh_common *c, const char *command,
                 struct sh_err *e);

/* Opens devices and model; then, when it is known what will be read, loads the weights: for texts of so many
 * positions, so many rows at a time where the device likes that, and at least `block`. */
int sh_live_open(struct sh_live *l, const struct sh_common *c, struct sh_err *e);
int sh_live_load(struct sh_live *l, int positions, int rows, int block, struct sh_err *e);
void sh_live_close(struct sh_live *l);                  /* {0} is fine */

/* A policy as typed and one budget for every head. */
struct sh_live_cache {
    const struct sh_policy_spec *policy;
    const struct sh_budget *budget;     /* NULL: everything is kept, and a policy that does not do so by itself is */
                                        /* refused                                                */
    int watched;                        /* sh_session_setup's                                     */
};

/* What a session has to be for a text, or for the texts that share it. */
struct sh_live_shape {
    int n_prompt, n_token;              /* of the longest: read before it writes; in all          */
    int budget;                         /* tokens of a head; 0: all that come                     */
    int fits;                           /* bits: a text fits into the budget, into the window     */
    int length;                         /* in all, where the policy follows it; 0: it does not    */
    int angles;                         /* sh_rope_length of the prompt, where they follow it; 0  */
    int prefill, block;                 /* block 0: token after token                             */
    int block_asked;                    /* the same, however short the prompt is                  */
};

/* Does the policy keep all tokens in each of these layers, whatever the budget? */
int sh_live_keeps_all(const struct sh_policy_spec *p, int n_layer);

/* Between sh_live_open and sh_live_load. -1: it cannot be. */
int sh_live_shape(const struct sh_live *l, const struct sh_live_cache *c, int n_prompt, int n_token,
                  struct sh_live_shape *out, struct sh_err *e);

/* `other` joins a session of shape `s`, if each text is then read and written as it would be alone: its number of
 * tokens kept, its angles and how its codes lie are the same. 1: s is for both now; 0: it has not changed. */
int sh_live_shape_join(struct sh_live_shape *s, const struct sh_live_shape *other);

/* sh_session_check of it; before sh_live_load, too. */
int sh_live_check(const struct sh_live *l, const struct sh_live_cache *c, const struct sh_live_shape *shape,
                  struct sh_err *e);
struct sh_session *sh_live_session(const struct sh_live *l, const struct sh_live_cache *c,
                                   const struct sh_live_shape *shape, int n_seq, struct sh_err *e);
/* sh_session_fit of it. */
int sh_live_fit(const struct sh_live *l, const struct sh_live_cache *c, const struct sh_live_shape *shape, int most,
                int *on_host, struct sh_err *e);

/* "device_peak_bytes": the most that was allocated on the first device at once; "device_used_bytes": the most that the
 * device itself counted (sh_props). Nothing where there is no such count. */
void sh_live_put_peak(struct sh_out *o, const struct sh_devices *d);

#endif
