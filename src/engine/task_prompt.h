/* SPDX-License-Identifier: Apache-2.0 */
/* Items of a task as token ids: examples in front, then context and choice, cut where the choice begins.
 *
 * A prompt is the examples, each "context choice" (the right one), an empty line between, and the item's
 * own context. White space at the end of the context belongs to the choice; context + choice is encoded
 * as one text, and as many ids as the context has by itself are the context (so the harness does it). The
 * model's start token comes first, if it has one. A prompt that is too long loses its beginning. */
#ifndef SH_ENGINE_TASK_PROMPT_H
#define SH_ENGINE_TASK_PROMPT_H

#include "src/engine/task.h"
#include "src/tokenizer/tokenizer.h"

struct sh_task_choice {
    int32_t *ids;                       /* [n]                                                    */
    int n, n_context;                   /* ids [n_context, n) are scored; n_context is 1 at least */
    int characters;                     /* of the choice's text                                   */
    int is_cut;                         /* lost its beginning                                     */
};

struct sh_task_prompt {                 /* of one item; start with {0}                            */
    struct sh_task_choice choice[SH_TASK_CHOICES];
    int n, gold, line;
    int longest;                        /* tokens that are read of a choice: n - 1, at most       */
};

/* shots [n_shot]: examples. max_pos: positions of the model. -1: a text is not UTF-8, or a choice alone is
 * longer than the model's positions; e names the choice. */
int sh_task_prompt_make(struct sh_task_prompt *p, const struct sh_task_item *item, const struct sh_task_item *shots,
                        int n_shot, const struct sh_tokenizer *t, int max_pos, struct sh_err *e);
void sh_task_prompt_free(struct sh_task_prompt *p);

#endif
