/* SPDX-License-Identifier: Apache-2.0 */
/* shears eval --answers FIELD: which tokens of jsonl documents are answers. In each document the field is a
 * list of objects, in the order of the text:
 *
 *     {"at": 1234, "answer": " Rome", "said_at": 96}
 *
 * "answer" stands at byte "at" of the text, and its tokens are scored; "said_at", which may be left out, is
 * the byte at which the same was said before. All of it is checked against the text. */
#ifndef SH_APP_EVAL_ANSWERS_H
#define SH_APP_EVAL_ANSWERS_H

#include "src/app/common/text_source.h"
#include "src/engine/eval.h"

struct sh_eval_answers {                /* start with {0} */
    struct sh_eval_answer **of;         /* [texts] */
    int *n;                             /* [texts] */
    int texts, all, cut;                /* cut: answers beyond the tokens that are read           */
};

/* For the opened source's texts, which come from its jsonl file alone. Errors name file, line and number. */
int sh_eval_answers_read(struct sh_eval_answers *a, const struct sh_text_source *s, const char *field,
                         struct sh_err *e);
void sh_eval_answers_free(struct sh_eval_answers *a);
uint64_t sh_eval_answers_hash(const struct sh_eval_answers *a);         /* never 0 */

#endif
