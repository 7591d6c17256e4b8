/* SPDX-License-Identifier: Apache-2.0 */
/* See tok.h: ids to text, as SentencePiece does it. */
#include "src/tokenizer/tok.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define SPACE "\xe2\x96\x81"

int sh_byte_of(const char *token, size_t n)
{
    static const char digits[] = "0123456789ABCDEFabcdef";
    if (n != 6 || memcmp(token, "<0x", 3) || token[5] != '>')
        return -1;
    const char *high = token[3] ? strchr(digits, token[3]) : NULL,
               *low = token[4] ? strchr(digits, token[4]) : NULL;
    if (!high || !low)
        return -1;
    int h = (int)(high - digits), l = (int)(low - digits);
    return (h > 15 ? h - 6 : h) * 16 + (l > 15 ? l - 6 : l);
}

void sh_sp_decode_read(struct sh_sp_decode *d, const struct sh_tok_arrays *a)
{
    d->n_type = a->n;
    d->type = xmalloc(a->n);
    for (size_t i = 0; i < a->n; i++)
        d->type[i] = (unsigned char)(a->type ? a->type[i] : SH_TOK_NORMAL);
    sh_text_add(&d->unknown, a->unknown_text.at, a->unknown_text.n);
    d->strip = a->add_prefix || a->squeeze;
    d->squeeze = a->squeeze;
}

void sh_sp_decode_free(struct sh_sp_decode *d)
{
    free(d->type);
    free(d->unknown.at);
}

/* What is no character becomes U+FFFD, byte by byte. */
static void flush(struct sh_text *bytes, struct sh_text *out)
{
    for (size_t i = 0; i < bytes->n;) {
        int bad, length = sh_utf8_sequence(bytes->at + i, bytes->n - i, &bad);
        if (length)
            sh_text_add(out, bytes->at + i, (size_t)length);
        else
            sh_text_add(out, "\xef\xbf\xbd", 3);
        i += (size_t)(length ? length : 1);
    }
    bytes->n = 0;
}

void sh_sp_put_spaced(const char *text, size_t n, struct sh_text *out)
{
    for (size_t i = 0, done = 0; i <= n; i++) {
        if (i < n && !sh_starts_with(text + i, n - i, SPACE, 3))
            continue;
        sh_text_add(out, text + done, i - done);
        if (i < n)
            sh_text_add(out, " ", 1);
        done = i + 3;
        i += 2;
    }
}

void sh_sp_decode_run(const struct sh_sp_decode *d, const struct sh_vocab *v, const int32_t *ids,
                      size_t n, struct sh_text *out)
{
    struct sh_text bytes = {0};
    size_t begin = out->n;
    int at_start = d->strip, taken = 0;
    for (size_t i = 0; i < n; i++) {
        if (!sh_vocab_has(v, ids[i]))
            continue;
        const char *text = v->text.at + v->at[ids[i]].at;
        size_t length = v->at[ids[i]].n;
        int type = (size_t)ids[i] < d->n_type ? d->type[ids[i]] : SH_TOK_USER;
        if (type == SH_TOK_BYTE) {
            char byte = (char)sh_byte_of(text, length);
            sh_text_add(&bytes, &byte, 1);
            continue;
        }
        flush(&bytes, out);
        if (taken || out->n > begin)
            at_start = 0;
        taken = 0;
        if (type == SH_TOK_CONTROL)
            continue;
        if (type == SH_TOK_UNKNOWN) {
            sh_text_add(out, d->unknown.at, d->unknown.n);
            continue;
        }
        if (at_start && sh_starts_with(text, length, SPACE, 3)) {
            taken = !d->squeeze;
            text += 3;
            length -= 3;
        }
        sh_sp_put_spaced(text, length, out);
    }
    flush(&bytes, out);
    free(bytes.at);
}
