/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by commands that run a model with a live cache: the settings, and the opened model. */
#ifndef SH_APP_COMMON_LIVE_SESSION_H
#define SH_APP_COMMON_LIVE_SESSION_H

#include "planner/policy/budget.h"
#include "src/base/out.h"
#include "src/app/common/devices.h"
#include "src/app/plan/plan_file.h"
#include "src/engine/session.h"

struct sh_live_options {                /* options as typed; a command's option table points at them */
    const char *model, *dtype;
    const char *kv_keys;                                /* NULL: token                            */
    long long kv_residual;
    long long kv_bits, kv_group, weight_bits, prefill;  /* kv_bits 0: 32 with f32, else 16        */
    long long activation_bits;                          /* 0: 16                                  */
    double weight_prune;                                /* pruned share of each matrix of the layers; 0: none */
    size_t device_memory;
    const char *positions, *prefill_mode;               /* NULL: original, stream                 */
    long long prefill_block;                            /* 0: as sh_live_shape decides             */
};

enum sh_prefill_mode { SH_PREFILL_STREAM, SH_PREFILL_BLOCKS, SH_PREFILL_ONCE };

/* Says on stderr that a cache is in host memory; each reason once. A resident's `on_host`. */
struct sh_host_note {
    char why[160];                      /* the last one                                           */
    int quiet, said_eager;
};
void sh_live_say_host(void *note, const char *why);
/* Says, once, that steps do not run as graphs. A resident's `on_eager`. */
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

/* Stores --kv-keys and --kv-residual in the format. */
int sh_live_read_keys(const char *keys, long long residual, struct sh_kv_format *f, struct sh_err *e);

/* --weight-bits; --activation-bits, 0: not given; --weight-prune. -1 if one is invalid, or two do not fit together. */
int sh_live_read_bits(long long weights, long long activations, double prune, struct sh_err *e);
/* Refuses 8-bit activations for a model none of whose weights is in integers. */
int sh_live_check_activations(const struct sh_model *m, long long bits, struct sh_err *e);

/* Reads the settings. -1 if one is invalid. */
int sh_live_read(struct sh_live *l, const struct sh_live_options *o, const struct sh_common *c, const char *command,
                 struct sh_err *e);

/* Opens devices and model. load, once the texts are known, loads the weights for texts of `positions` tokens, with
 * `rows` rows at a time if that suits the device, but at least `block`. */
int sh_live_open(struct sh_live *l, const struct sh_common *c, struct sh_err *e);
int sh_live_load(struct sh_live *l, int positions, int rows, int block, struct sh_err *e);
/* As sh_live_load, for whole texts that go through one layer after another (engine/eval.h): texts of at most `longest`
 * tokens, `all` tokens together. Weights that do not fit stay on disk, except those of one layer. */
int sh_live_load_texts(struct sh_live *l, int longest, long long all, struct sh_err *e);
void sh_live_close(struct sh_live *l);                  /* {0} is fine */

/* A policy as typed, and one budget for all heads or a plan. */
struct sh_live_cache {
    const struct sh_policy_spec *policy;
    const struct sh_budget *budget;     /* NULL: everything is kept, so a policy that evicts is refused */
    int watched;                        /* sh_session_setup's                                     */
    const struct sh_plan *plan;         /* a budget for each head, `budget` does not count; NULL: none */
};

/* The properties of a session for a text, or for the texts that share it. */
struct sh_live_shape {
    int n_prompt, n_token;              /* tokens of the longest text: of its prompt; in all      */
    int budget;                         /* tokens per head, of a plan the most; 0: all            */
    int plan_token;                     /* tokens in all that a plan divides; 0: no plan          */
    int fits;                           /* bits: a text fits into the budget, into the window     */
    int length;                         /* tokens in all, if the policy depends on them; else 0   */
    int angles;                         /* sh_rope_length of the prompt, if they depend on it; 0  */
    int prefill, block;                 /* block 0: token after token                             */
    int block_asked;                    /* block, if the prompt did not limit it                  */
};

/* Does the policy keep all tokens in each of these layers, whatever the budget? */
int sh_live_keeps_all(const struct sh_policy_spec *p, int n_layer);

/* [n_layer]: KV heads of each layer, 0 where it does not attend; for free(). */
int *sh_live_heads(const struct sh_arch *a);

/* Between sh_live_open and sh_live_load. -1: impossible. */
int sh_live_shape(const struct sh_live *l, const struct sh_live_cache *c, int n_prompt, int n_token,
                  struct sh_live_shape *out, struct sh_err *e);

/* Joins `other` to a session of shape `s`, if each text is then read and written as it would be alone: with the same
 * number of tokens kept, rotary angles and code layout. 1: s is now for both; 0: s is unchanged. */
int sh_live_shape_join(struct sh_live_shape *s, const struct sh_live_shape *other);

/* sh_session_check for a session of this shape; also valid before sh_live_load. */
int sh_live_check(const struct sh_live *l, const struct sh_live_cache *c, const struct sh_live_shape *shape,
                  struct sh_err *e);
struct sh_session *sh_live_session(const struct sh_live *l, const struct sh_live_cache *c,
                                   const struct sh_live_shape *shape, int n_seq, struct sh_err *e);
/* sh_session_fit for a session of this shape. */
int sh_live_fit(const struct sh_live *l, const struct sh_live_cache *c, const struct sh_live_shape *shape, int most,
                int *on_host, struct sh_err *e);

/* Adds "device_peak_bytes", the largest allocation on the first device, and "device_used_bytes", the largest use that
 * the device itself counted (sh_props). Nothing if there is no such count. */
void sh_live_put_peak(struct sh_out *o, const struct sh_devices *d);

#endif
