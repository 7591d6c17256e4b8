/* SPDX-License-Identifier: Apache-2.0 */
/* See tokenizer.h. Five steps: added tokens are cut out, the rest is normalised, added tokens of normalised text are
 * cut out, the rest is cut into pieces, pieces become ids. */

#include <stdlib.h>

#include "src/base/file.h"
#include "src/base/utf8.h"
#include "src/tokenizer/tok.h"
#include "src/tokenizer/tok_regex.h"

void sh_tokenizer_free(struct sh_tokenizer *t)
{
    if (!t)
        return;
    sh_vocab_free(&t->vocab);
    sh_added_free(&t->added);
    sh_added_free(&t->added_normal);
    sh_steps_free(&t->normal);
    sh_steps_free(&t->split);
    sh_bpe_free(&t->bpe);
    sh_unigram_free(&t->unigram);
    sh_sp_decode_free(&t->sp);
    sh_steps_free(&t->decode);
    free(t->label.at);
    free(t->label_at);
    free(t);
}

/* ---- encoding ---- */

struct work {
    const struct sh_tokenizer *t;
    struct sh_bpe_work *bpe;            /* one of the two */
    struct sh_unigram_work *unigram;
    struct sh_text normal;
    struct sh_pieces pieces, spare;
    struct sh_watch watch;              /* over the whole text */
    struct sh_ids *out;
    struct sh_err *e;
};

/* Normalised text without added tokens. */
static int plain(struct work *w, const char *text, size_t n, int at_start)
{
    struct sh_pieces *p = &w->pieces;
    if (!n)
        return 0;
    sh_pieces_clear(p);
    sh_text_add(&p->text, text, n);
    sh_pieces_add(p, 0, n);
    if (sh_split_run(&w->t->split, p, &w->spare, at_start, &w->watch, w->e))
        return -1;
    for (size_t i = 0; i < p->n; i++) {
        const char *piece = p->text.at + p->at[i].at;
        if (w->unigram ? sh_unigram_encode(w->unigram, piece, p->at[i].n, w->out, w->e)
                       : sh_bpe_encode(w->bpe, piece, p->at[i].n, w->out, w->e))
            return -1;
    }
    return 0;
}

/* Text as it came, without the added tokens that are cut out first. */
static int normalised(struct work *w, const char *text, size_t n, int at_start)
{
    struct sh_added_match m;
    size_t done = 0;
    if (!n)
        return 0;
    if (w->t->normal.n) {
        w->normal.n = 0;
        if (sh_normal_run(&w->t->normal, text, n, at_start, &w->normal, &w->watch, w->e))
            return -1;
        text = w->normal.at;
        n = w->normal.n;
    }
    while (sh_added_next(&w->t->added_normal, text, n, done, &m)) {
        if (plain(w, text + done, m.at - done, at_start && !done))
            return -1;
        sh_ids_add(w->out, m.id);
        done = m.end;
    }
    return plain(w, text + done, n - done, at_start && !done);
}

static int all(struct work *w, const char *text, size_t n)
{
    struct sh_added_match m;
    size_t done = 0;
    while (sh_added_next(&w->t->added, text, n, done, &m)) {
        if (normalised(w, text + done, m.at - done, !done))
            return -1;
        sh_ids_add(w->out, m.id);
        done = m.end;
    }
    return normalised(w, text + done, n - done, !done);
}

int sh_tokenizer_encode(const struct sh_tokenizer *t, const char *text, size_t bytes,
                        int with_special, struct sh_ids *out, struct sh_err *e)
{
    size_t before = out->n, valid = sh_utf8_valid(text, bytes);
    const char *wide = sh_wide_text(text, bytes);
    if (wide)
        return sh_fail(e, "the text is %s, expected UTF-8", wide), sh_hint(e, SH_WIDE_HINT, wide);
    if (valid < bytes)
        return sh_fail(e, "the text is not UTF-8: byte 0x%02X at offset %zu does not begin a character",
                       (unsigned char)text[valid], valid);
    if (bytes > SH_MOST_TEXT)
        return sh_fail(e, "the text has %zu bytes, expected at most 1 GiB at a time", bytes);
    struct work w = {.t = t, .out = out, .e = e};
    sh_watch_begin(&w.watch, SH_TOK_SECONDS, bytes);
    if (t->is_unigram)
        w.unigram = sh_unigram_begin(&t->unigram);
    else
        w.bpe = sh_bpe_begin(&t->bpe);
    for (int i = 0; with_special && i < t->n_start; i++)
        sh_ids_add(out, t->start[i]);
    int bad = all(&w, text, bytes);
    if (!bad && with_special && t->eos >= 0)
        sh_ids_add(out, t->eos);
    if (bad)
        out->n = before;
    sh_bpe_end(w.bpe);
    sh_unigram_end(w.unigram);
    free(w.normal.at);
    sh_pieces_free(&w.pieces);
    sh_pieces_free(&w.spare);
    return bad;
}

/* ---- decoding ---- */

char *sh_tokenizer_decode(const struct sh_tokenizer *t, const int32_t *ids, size_t n, size_t *bytes)
{
    struct sh_pieces p = {0};
    struct sh_text out = {0};
    if (t->sp.type)
        sh_sp_decode_run(&t->sp, &t->vocab, ids, n, &out);
    for (size_t i = 0; i < n && !t->sp.type; i++) {
        if (!sh_vocab_has(&t->vocab, ids[i]))
            continue;
        const struct sh_span *s = &t->vocab.at[ids[i]];
        sh_pieces_add(&p, p.text.n, s->n);
        sh_text_add(&p.text, t->vocab.text.at + s->at, s->n);
    }
    if (!t->sp.type)
        sh_decode_run(&t->decode, &p, &out);
    sh_pieces_free(&p);
    *bytes = out.n;
    sh_text_add(&out, "", 1);
    return out.at;
}

int sh_tokenizer_start(const struct sh_tokenizer *t, const int32_t **ids)
{
    if (ids)
        *ids = t->start;
    return t->n_start;
}

int sh_tokenizer_eos(const struct sh_tokenizer *t)
{
    return t->eos;
}

int sh_tokenizer_size(const struct sh_tokenizer *t)
{
    return (int)t->vocab.n_id;
}

const char *sh_tokenizer_piece(const struct sh_tokenizer *t, int32_t id)
{
    return sh_vocab_has(&t->vocab, id) ? t->label.at + t->label_at[id] : NULL;
}
