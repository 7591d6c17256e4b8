/* SPDX-License-Identifier: Apache-2.0 */
/* A model and the texts that a command reads with it: --model and --text, --jsonl with --field, or
 * --tokens, cut to --length, at most --count of them. */
#ifndef SH_APP_COMMON_TEXT_SOURCE_H
#define SH_APP_COMMON_TEXT_SOURCE_H

#include "src/base/common.h"
#include "src/app/store/measured.h"
#include "src/model/model.h"
#include "src/tracer/texts.h"

struct sh_text_source {
    const char *path;                   /* folder or file of the model                            */
    const struct sh_list *text;
    const char *jsonl, *field, *tokens;
    int length, count;                  /* 0: the model's positions; all                          */
    int least;                          /* texts with fewer tokens are left out                   */
    double prune;                       /* share of each matrix of the layers; 0: none            */
    struct sh_model *model;             /* this and the next fields are filled by opening         */
    struct sh_tokenizer *tokenizer;     /* NULL: only ids are read                                */
    struct sh_texts texts;
};

/* Opens the model, the tokenizer and the texts. sh_text_source_close is due even after -1. */
int sh_text_source_open(struct sh_text_source *s, struct sh_err *e);
void sh_text_source_close(struct sh_text_source *s);    /* {0} is fine */

/* Some tokens are read and never predicted (sh_arch_predicts): those without a row of the output head, and parts of
 * pictures. Texts that have one are refused, except at the beginning. */
int sh_texts_check_predicted(const struct sh_texts *s, const struct sh_arch *a, struct sh_err *e);

/* Opens the tokenizer of a model. NULL: it cannot be opened, or has more tokens than the model's vocabulary. */
struct sh_tokenizer *sh_text_tokenizer(const char *path, int n_vocab, struct sh_err *e);

int sh_text_source_longest(const struct sh_text_source *s);
long long sh_text_source_tokens(const struct sh_text_source *s);        /* tokens of all texts    */
struct sh_measured sh_text_source_measured(const struct sh_text_source *s);

#endif
