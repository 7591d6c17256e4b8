/* SPDX-License-Identifier: Apache-2.0 */
/* A few-shot task: how a record of its data becomes a question with possible answers, with the prompts of the
 * lm-evaluation-harness (Gao et al.). Records have either the fields of the public data set or the ready-made fields
 * "query", "choices" and "gold" ("context_options", "continuation" and "gold"; "context" and "continuation").
 *
 * The model reads context + " " + choice; the log-likelihood of the choice is that of its tokens. Records are
 * untrusted: every field is checked. */
#ifndef SH_ENGINE_TASK_H
#define SH_ENGINE_TASK_H

#include <jansson.h>

#include "src/base/err.h"
#include "src/tokenizer/tokenizer.h"

enum { SH_TASK_CHOICES = 26 };          /* the most that a record has                             */

struct sh_task_item {                   /* start with {0}; sh_task_item_free                      */
    int n, gold;                        /* gold: the right choice                                 */
    char *context[SH_TASK_CHOICES];     /* usually the same for all choices                       */
    char *choice[SH_TASK_CHOICES];
    int line;                           /* line of the file, from 1                               */
};

enum sh_task_flag {
    SH_TASK_NORM = 1,                   /* also accuracy by log-likelihood per character of the choice */
    SH_TASK_GREEDY = 2                  /* one choice, right when every token of it is the likeliest   */
};

struct sh_task {
    const char *name, *summary;
    unsigned flags;                     /* enum sh_task_flag                                      */
    const char *after_query;            /* text after the query of ready-made records; NULL: `read` knows their shape */
    int (*read)(const json_t *record, struct sh_task_item *out, struct sh_err *e);
};

/* NULL: there is no such task, and e names similar ones. */
const struct sh_task *sh_task_find(const char *name, struct sh_err *e);

/* -1: e names the field, what was found and what was expected; the caller frees `out`. */
int sh_task_read(const struct sh_task *t, const json_t *record, struct sh_task_item *out, struct sh_err *e);

/* Bytes of `text` without the white space at its end. */
int sh_task_trimmed(const char *text);

void sh_task_item_free(struct sh_task_item *item);

/* The records of a jsonl file as items, at most `most` (0: all). Errors name file and line. Free each and the array. */
int sh_task_load(const struct sh_task *t, const char *path, int most, struct sh_task_item **out, int *n,
                 struct sh_err *e);

/* ---- task_prompt.c ----
 * Items of a task as token ids: examples in front, then context and choice, cut where the choice begins.
 *
 * A prompt is the examples, each "context choice" (the right one), an empty line between, and the item's
 * own context. White space at the end of the context belongs to the choice; context + choice is encoded
 * as one text, and as many ids as the context has by itself are the context (so the harness does it). The
 * model's start token comes first, if it has one. A prompt that is too long loses its beginning. */

struct sh_task_choice {
    int32_t *ids;                       /* [n]                                                    */
    int n, n_context;                   /* ids [n_context, n) are scored; n_context is 1 at least */
    int characters;                     /* length of the choice's text                            */
    int is_cut;                         /* lost its beginning                                     */
};

struct sh_task_prompt {                 /* prompt of one item; start with {0}                     */
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
