/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is asked to go on from: text given on the command line or in a file, or a line of ids. */
#ifndef SH_CLI_PROMPT_H
#define SH_CLI_PROMPT_H

#include "src/model/model.h"
#include "src/model/tokenizer.h"

struct sh_prompt {
    const char *text, *file, *tokens;   /* one of them; tokens: a file, its first line counts     */
    int is_bounded;                     /* it may not be longer than the model's positions        */
    struct sh_tokenizer *tokenizer;     /* NULL: the folder has none, and ids were given          */
    struct sh_ids ids;                  /* with the start token in front of a text; owned         */
    int end[8], n_end;                  /* tokens that end a text, from config.json               */
};

/* -1: nothing or too much was given, it is empty, or longer than it may be; the rest is freed
 * by sh_prompt_close. */
int sh_prompt_open(struct sh_prompt *p, const char *model_path, const struct sh_arch *a, struct sh_err *e);
void sh_prompt_close(struct sh_prompt *p);              /* {0} is fine */

int sh_prompt_is_end(const struct sh_prompt *p, int32_t token);

#endif
