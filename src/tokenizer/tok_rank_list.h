/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens whose ids are also the order in which they merge, as tiktoken's lists and tekken.json have them: bytes in
 * base64, each with its id. */
#ifndef SH_TOKENIZER_TOK_RANK_LIST_H
#define SH_TOKENIZER_TOK_RANK_LIST_H

#include <jansson.h>

#include "src/tokenizer/tok_text.h"

struct sh_rank_list {
    json_t *vocab;                      /* token, in GPT-2's alphabet, to id */
    unsigned char *taken;               /* by id                             */
    long long largest;                  /* id; -1: none yet                  */
    struct sh_text bytes;               /* of the token to be added          */
    struct sh_text text;                /* scratch                           */
};

void sh_rank_list_begin(struct sh_rank_list *l);
void sh_rank_list_free(struct sh_rank_list *l);         /* and not l itself  */

/* Makes the n characters of base64 the bytes of the token to be added; -1: they are no base64. */
int sh_rank_list_bytes(struct sh_rank_list *l, const char *base64, size_t n);

/* Adds this token; id: 0 to SH_TOK_MAX_ID. Refused where the id or the token is there already. */
int sh_rank_list_add(struct sh_rank_list *l, long long id, struct sh_err *e);

/* Refuses a list in which not every byte is a token. */
int sh_rank_list_check(struct sh_rank_list *l, struct sh_err *e);

#endif
