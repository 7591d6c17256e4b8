/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that a model writes after prompts, in one batch under one policy and budget. When one ends, the next prompt
 * takes its slot in the session, so that the batch stays full (continuous batching: Yu et al., "Orca", OSDI 2022).
 * Each text is what it would be alone: texts whose sessions would differ (sh_live_shape_join) run in separate sessions,
 * one after another. Results are bit-identical if a row of a product does not depend on the other rows: on the CPU with
 * unquantised weights and f32 products (f32 and f16; bf16 unless native). Products with codes, native bf16 products and
 * those of a GPU agree up to rounding only, which can change the choice between two tokens. */
#ifndef SH_APP_GENERATE_BATCH_H
#define SH_APP_GENERATE_BATCH_H

#include "src/app/eval/eval_dump.h"
#include "src/app/common/live_session.h"
#include "src/engine/repetition.h"
#include "src/engine/sampler.h"

enum { SH_WRITING_SIDE = 256 };         /* texts side by side at most, if nobody asks for more     */

struct sh_written {                     /* one text */
    const char *name;                   /* name for messages; NULL: it has none                   */
    const int32_t *prompt;              /* [n_prompt], at least one                               */
    int n_prompt, most;                 /* tokens to write, 1 at least                            */
    struct sh_live_shape shape, again;  /* again: that of a second reading (sh_write); n_token 0: none */
    int32_t *made;                      /* [n_made]; owned: sh_written_free                       */
    int n_made, at_end;                 /* at_end: the last one ends a text                       */
    int n_again;                        /* its tokens that were read again; 0: none               */
    struct sh_row_likeness likeness;    /* over all heads, of the written tokens' rows            */
};

struct sh_writing {
    const struct sh_live *live;         /* loaded                                                 */
    struct sh_live_cache cache;         /* watched: as dump and wants_likeness say                */
    struct sh_sampler sampler;          /* every text draws as if it were the only one            */
    int batch;                          /* texts side by side, at most; 0: as many as there is memory */
                                        /* for, up to SH_WRITING_SIDE                             */
    int (*is_end)(const void *to, int32_t token);       /* does it end a text? NULL: none does    */
    const void *is_end_to;
    struct sh_eval_dump *dump;          /* kept sets go there; NULL: nowhere                      */
    int wants_likeness;
    void (*on_token)(void *to, int text);       /* the text has one token more; may be NULL       */
    void *to;
    int (*stops)(void *to);             /* 1: write no more; may be NULL                          */

    double prompt_s, made_s;            /* found: seconds of steps that read prompts, and wrote   */
    long long n_read;                   /* tokens of the former: of prompts, and of texts that were read anew */
    struct sh_cache_bytes bytes;           /* bytes of the largest session                           */
    size_t block_bytes;
    double budget, kept;                /* means over its heads, at its end                       */
    int peak, length, at_once;          /* slots, tokens of its first sequence, texts side by side */
};

/* Fills shape and again of a text; call it between sh_live_open and sh_live_load. -1: impossible settings, which no
 * session would report later. */
int sh_writing_shape(const struct sh_live *l, const struct sh_live_cache *c, struct sh_written *t, struct sh_err *e);

/* Writes the n texts and fills the figures. -1 also on Ctrl-C: what was written until then remains.
 *
 * A text that grows beyond the positions that a model with longrope was trained on is then read anew, as a prompt, with
 * the angles of long texts: a text has one set of angles, and transformers does the same. */
int sh_write(struct sh_writing *w, struct sh_written *text, int n, struct sh_err *e);
void sh_written_free(struct sh_written *t);             /* {0} is fine */

#endif
