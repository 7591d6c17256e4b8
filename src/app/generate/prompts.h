/* SPDX-License-Identifier: Apache-2.0 */
/* The prompts of shears generate: a text from the command line or a file, documents of a jsonl file, or lines of
 * token ids. */
#ifndef SH_APP_GENERATE_PROMPTS_H
#define SH_APP_GENERATE_PROMPTS_H

#include "src/model/model.h"
#include "src/tokenizer/tokenizer.h"
#include "src/tracer/texts.h"

struct sh_prompts {
    const char *text, *file, *tokens, *jsonl;   /* one of them; a text "-": standard input         */
    const char *field;                  /* where a jsonl document's text is                       */
    int count;                          /* the most documents or lines; 0: all documents, the first line    */
    int is_bounded;                     /* none may be longer than the model's positions          */
    struct sh_tokenizer *tokenizer;     /* NULL: the folder has none, and ids were given          */
    struct sh_texts texts;              /* prompts, with the start token in front of a text; owned */
    int wants_ends;                     /* is_end is going to be asked                            */
    int *end, n_end;                    /* tokens that end a text, from config.json; owned        */
};

/* -1: no prompt or several kinds were given, a prompt is empty (an empty document among others is skipped), or too
 * long; sh_prompts_close frees the rest. */
int sh_prompts_open(struct sh_prompts *p, const char *model_path, const struct sh_arch *a, struct sh_err *e);
void sh_prompts_close(struct sh_prompts *p);            /* {0} is fine */

int sh_prompts_is_end(const struct sh_prompts *p, int32_t token);

#endif
