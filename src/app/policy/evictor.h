/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens a cache outside this program keeps: its owner has the keys and values and computes attention, this
 * object has the policies (planner/policy/kept_slots.h) of all layers and KV heads of one sequence, and says which slot
 * a token takes. For each layer, in any order of layers:
 *
 *     sh_evictor_next(x, layer, n, &next, e);         room is made; next.n tokens can be read before others leave
 *     … their keys and values go to next.slot; their queries attend over the slots with 0 <= pos <= own position …
 *     sh_evictor_read(x, layer, &rows, e);            the policy sees their rows
 *     sh_evictor_settle(x, layer, &moved, e);         after a call's tokens: a prompt that is over is compressed
 *
 * What is kept is what the engine keeps with the same policy, budgets, prefill and seed (engine/session.h). */
#ifndef SH_APP_POLICY_EVICTOR_H
#define SH_APP_POLICY_EVICTOR_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

enum { SH_EVICTOR_MOST = 1 << 22 };     /* tokens of a sequence                                   */

struct sh_evictor_setup {
    const char *policy, *budget;        /* "h2o:recent=25"; one budget, "0.2" or "64"             */
    const char *plan;                   /* a plan's file in place of both; NULL: none             */
    const char *model;                  /* name that an error of the plan shows; NULL: "the model"  */
    int n_layer, n_kv_head;             /* layers and KV heads of the model; a layer may have fewer heads */
    int length;                         /* tokens of the text that a share or a plan refers to; also the most that
                                         * come if the policy depends on the length               */
    int prefill;                        /* the first tokens see everything; -1: as the plan says, or 0 */
    uint64_t seed;
};

struct sh_evictor;

/* NULL: the setup makes no sense, or the plan cannot be read or is another model's. */
struct sh_evictor *sh_evictor_new(const struct sh_evictor_setup *setup, struct sh_err *e);
struct sh_evictor *sh_evictor_copy(const struct sh_evictor *x);
void sh_evictor_free(struct sh_evictor *x);             /* NULL is fine */
void sh_evictor_restart(struct sh_evictor *x);          /* starts another sequence of the same setup */

unsigned sh_evictor_needs(const struct sh_evictor *x);  /* enum sh_needs: scores, keys, values, queries */
int sh_evictor_prefill(const struct sh_evictor *x);

/* What a layer is, before its first token: KV heads, numbers of a key and of a value, window (0: none). */
int sh_evictor_layer(struct sh_evictor *x, int layer, int n_kv_head, int d_head, int window, struct sh_err *e);

struct sh_evictor_next {                /* valid until the next call for the same sequence        */
    int n;                              /* tokens, at least 1                                     */
    int n_kv_head, n_slot;              /* n_slot: the fullest head's slots, these tokens' included */
    const int *slot;                    /* [n_kv_head, n]: where they go                          */
    const int *pos;                     /* [n_kv_head, n_slot]: the token in a slot, these included; -1: none */
};

/* Up to n tokens. -1: the layer has not been described, or the sequence is too long. */
int sh_evictor_next(struct sh_evictor *x, int layer, int n, struct sh_evictor_next *out, struct sh_err *e);

struct sh_evictor_rows {                /* rows of tokens that sh_evictor_next named, from the first one on */
    int n, n_slot, n_query;             /* tokens; slots as named; query heads of a KV head       */
    const float *row;                   /* [n_kv_head, n, n_slot]: means over the query heads; 0 where nothing is
                                         * seen. NULL unless scores are needed                     */
    const int *seen;                    /* [n_kv_head, n]: slots that the softmax ran over; NULL likewise */
    const float *q;                     /* [n_kv_head, n, n_query, d_head]; NULL unless needed    */
    const float *k, *v;                 /* [n_kv_head, n, d_head]; NULL unless needed             */
};

int sh_evictor_read(struct sh_evictor *x, int layer, const struct sh_evictor_rows *r, struct sh_err *e);

struct sh_evictor_moved {
    int n_kv_head, n_slot;              /* n_slot 0: nothing has moved                            */
    const int *from;                    /* [n_kv_head, n_slot]: the slot that a slot's token was in; -1: free */
};

/* When exactly the prefill has been read, makes room as for the next token. Heads with more slots than their budget
 * then give up the extra slots. */
int sh_evictor_settle(struct sh_evictor *x, int layer, struct sh_evictor_moved *out, struct sh_err *e);

/* Tokens that the head may keep, at most SH_EVICTOR_MOST; how many it keeps, and their positions in order (to: room for
 * `room`; NULL: not wanted). -1: there is no such head. */
int sh_evictor_budget(struct sh_evictor *x, int layer, int head, struct sh_err *e);
int sh_evictor_kept(struct sh_evictor *x, int layer, int head, int *to, int room, struct sh_err *e);

/* Bytes that the policies keep for their decisions, copies of keys and values included. */
size_t sh_evictor_bytes(const struct sh_evictor *x);

#endif
