/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_rank_list.h. */
#include "src/tokenizer/tok_rank_list.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok.h"

enum { LONGEST = 8000 };                /* bytes of a token */

void sh_rank_list_begin(struct sh_rank_list *l)
{
    *l = (struct sh_rank_list){.vocab = json_object(), .taken = xcalloc(SH_TOK_MAX_ID + 1, 1), .largest = -1};
}

void sh_rank_list_free(struct sh_rank_list *l)
{
    json_decref(l->vocab);
    free(l->taken);
    free(l->bytes.at);
    free(l->text.at);
}

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

int sh_rank_list_bytes(struct sh_rank_list *l, const char *base64, size_t n)
{
    size_t used = n;
    unsigned bits = 0;
    int held = 0;
    l->bytes.n = 0;
    while (used && n - used < 2 && base64[used - 1] == '=')
        used--;
    if (!used || n % 4)
        return -1;
    for (size_t i = 0; i < used; i++) {
        int digit = digit_of(base64[i]);
        if (digit < 0)
            return -1;
        bits = bits << 6 | (unsigned)digit;
        if ((held += 6) >= 8) {
            char byte = (char)(bits >> (held -= 8));
            sh_text_add(&l->bytes, &byte, 1);
        }
    }
    return bits & ((1u << held) - 1) ? -1 : 0;
}

/* A token as a key of the vocabulary. */
static const char *as_key(struct sh_rank_list *l, const char *bytes, size_t n)
{
    l->text.n = 0;
    sh_bytelevel_encode(&l->text, bytes, n);
    sh_text_add(&l->text, "", 1);
    return l->text.at;
}

int sh_rank_list_add(struct sh_rank_list *l, long long id, struct sh_err *e)
{
    if (l->bytes.n > LONGEST)
        return sh_fail(e, "a token of %zu bytes, expected at most %d", l->bytes.n, LONGEST);
    const char *key = as_key(l, l->bytes.at, l->bytes.n);
    if (l->taken[id] || json_object_get(l->vocab, key))
        return sh_fail(e, "the %s is there already", l->taken[id] ? "rank" : "token");
    l->taken[id] = 1;
    l->largest = id > l->largest ? id : l->largest;
    json_object_set_new(l->vocab, key, json_integer(id));
    return 0;
}

int sh_rank_list_check(struct sh_rank_list *l, struct sh_err *e)
{
    for (int byte = 0; byte < 256; byte++)
        if (!json_object_get(l->vocab, as_key(l, &(char){(char)byte}, 1)))
            return sh_fail(e, "no token is the byte 0x%02X alone, expected one for each byte", byte);
    return 0;
}
