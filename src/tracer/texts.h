/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace runs on: sequences of tokens cut from texts, documents or files of ids.
 *
 * A text is cut into consecutive sequences of `length` tokens, each beginning with the model's start
 * token if it has one; a rest shorter than that is left out, unless it is all there is. A document of
 * a jsonl file gives one sequence, its first `length` tokens, or all of it when it is shorter. A line
 * of ids gives one sequence: all of it, or its first `length` tokens if a length was asked for. */
#ifndef SH_TRACER_TEXTS_H
#define SH_TRACER_TEXTS_H

#include "src/tokenizer/tokenizer.h"
#include "traces/trace.h"

struct sh_texts {
    const struct sh_tokenizer *tokenizer;       /* NULL when only ids are read                    */
    int length;                                 /* 0: the model's positions                       */
    int max_pos, n_vocab;                       /* limits of the model                            */
    int most;                                   /* stop after so many sequences; 0: no limit      */
    int least;                                  /* texts and documents of fewer tokens are left out */
    struct sh_trace_sequence *sequence;         /* [n], owned: sh_sequences_free                  */
    int n;
};

/* Each adds sequences; -1 names the file and the place. The path "-" is standard input, called "stdin". */
int sh_texts_text(struct sh_texts *t, const char *path, struct sh_err *e);
/* A text that is one sequence, cut to `length`, as a document is. */
int sh_texts_add(struct sh_texts *t, const char *name, const char *text, size_t bytes, struct sh_err *e);
int sh_texts_jsonl(struct sh_texts *t, const char *path, const char *field, struct sh_err *e);
int sh_texts_tokens(struct sh_texts *t, const char *path, struct sh_err *e);

/* Does a document of so many ids become a sequence? Not when it is empty or shorter than asked for. */
int sh_texts_takes(const struct sh_texts *t, size_t n_ids);

#endif
