/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of a batch of sequences under a KV budget: tokens in, logits out.
 *
 *     struct sh_resident *r = sh_resident_open(&model, &e);       the weights, once
 *     struct sh_session *s = sh_session_new(r, &setup, &e);       the caches of n_seq sequences
 *     sh_session_prompt(s, prompt, (int[]){0, n}, NULL, NULL, &e);        sequence 0 reads n tokens
 *     for (;;) {
 *         token = choose(sh_session_logits(s, 0));                [n_vocab], of the last token read
 *         sh_session_step(s, &token, (int[]){0, 1}, NULL, NULL, &e);
 *     }
 *     sh_session_restart(s, 0);                                   the same memory for another text
 *
 * For every token, layer and KV head things happen in the order of planner/policy/policy.h: room is made, the token
 * takes a slot, its queries attend over what is kept, the policy observes the row. A step of n tokens does that token
 * after token inside each layer, so its result is that of n steps of one token up to rounding, whatever n is: what a
 * layer does with a token depends only on the layer below and on earlier tokens. (One exception is in the models:
 * angles of the rotary kind `dynamic` depend on how much of a text beyond the trained length has been read when a token
 * is.) A text longer than the budget is a stream through the cache in that sense; its first `prefill` tokens see
 * everything before anything leaves.
 *
 * A prompt may also come in blocks (block.c): the tokens of a block see all of it and what is cached, and the cache is
 * brought down to its budget after each. A block as long as the prompt is the one-shot compression of many papers.
 *
 * Positions are the original ones, or those inside the cache (rows.h), with which a text may become longer than
 * the model's positions. Learned positions are added to a token once, before the first layer: it gets the place after
 * the fullest head's tokens, and keeps it. */
#ifndef SH_ENGINE_SESSION_H
#define SH_ENGINE_SESSION_H

#include "src/engine/cache.h"
#include "src/engine/resident.h"

struct sh_session;

/* What a session refuses of the setup whatever memory there is, before there are weights. */
int sh_session_check(const struct sh_arch *a, const struct sh_session_setup *setup, struct sh_err *e);
struct sh_session *sh_session_new(struct sh_resident *r, const struct sh_session_setup *setup, struct sh_err *e);
void sh_session_free(struct sh_session *s);             /* NULL is fine */

/* Sequences of such a session that there is memory for, up to `most`, whatever its n_seq is: what the device has left,
 * or half of what the host has (on_host: 1). 0: not one. -1: the setup is refused. */
int sh_session_fit(const struct sh_resident *r, const struct sh_session_setup *setup, int most, int *on_host,
                   struct sh_err *e);

/* Logits [n, n_vocab] after the n tokens from this position on; valid during the call. */
typedef void sh_session_take(void *to, int sequence, int position, int n, const float *logits);

/* Sequence i reads tokens[start[i] .. start[i + 1]), which may be none; start[0] is 0. With `take` every
 * token's logits are computed and handed over, sequence by sequence in order of position, some at a time; without it
 * only those of each sequence's last token. -1: a token or position that the model does not have (nothing
 * has changed), or the device failed. */
int sh_session_step(struct sh_session *s, const int32_t *tokens, const int *start, sh_session_take *take, void *to,
                    struct sh_err *e);

/* The same for the beginning of a text, in the setup's blocks. */
int sh_session_prompt(struct sh_session *s, const int32_t *tokens, const int *start, sh_session_take *take, void *to,
                      struct sh_err *e);

/* A session of some of the layers (the setup's n_layer): the next n tokens of all texts through these. hidden
 * [n_seq * n, d_model] f32 in device memory, text after text, is the input of the first of them and becomes that of the
 * layer after the last. Tokens before position `prompt` come in the setup's blocks. -1: as for a step; on a device
 * errors of what was queued come later. */
int sh_session_layers(struct sh_session *s, void *hidden, int n, int prompt, struct sh_err *e);

/* A session of one layer, with the cache on the host: the first n tokens of all texts have these queries, keys and
 * values; text i's begin in row i * rows. The output of the layer is not needed. */
void sh_session_feed(struct sh_session *s, int layer, const struct sh_qkv *x, int rows, int n);

/* A sequence takes over another's text: cache, policy's state and position, of a session with the same
 * setup (but for n_seq) over the same resident. From there on both go their own ways. */
void sh_session_fork(struct sh_session *to, int sequence_to, const struct sh_session *from, int sequence_from);

/* Logits [n_vocab] after the last token that the sequence read; valid until the next step. */
const float *sh_session_logits(const struct sh_session *s, int sequence);

/* From now on logits are needed only with `take`, else only the likeliest token: if the device can find it, logits are
 * not copied to the host. Call it before anything is read, for both sides of a fork. */
void sh_session_only_best(struct sh_session *s);
/* The likeliest token after the last one that the sequence read, the first of equal ones. -1: a logit is NaN or
 * infinitely large, or all are infinitely small. */
int32_t sh_session_best(const struct sh_session *s, int sequence, struct sh_err *e);

int sh_session_length(const struct sh_session *s, int sequence);        /* tokens read so far     */
void sh_session_restart(struct sh_session *s, int sequence);

/* fn (cache.h) sees every row; set it before anything is read. */
void sh_session_set_watch(struct sh_session *s, sh_watch *fn, void *to);                /* NULL: none */

const struct sh_kv_cache *sh_session_cache(const struct sh_session *s);        /* NULL: on the device    */
/* Why the cache is on the host and its rows travel, though the device's memory is another; NULL: it is not. */
const char *sh_session_why_host(const struct sh_session *s);

struct sh_kv_kept sh_session_kept(const struct sh_session *s);
struct sh_cache_bytes sh_session_bytes(const struct sh_session *s);

#endif
