/* SPDX-License-Identifier: Apache-2.0 */
/* See tok.h: the steps of tokenizer.json's decoder. */
#include "src/tokenizer/tok.h"

#include <stdlib.h>
#include <string.h>

#include "src/tokenizer/tok_regex.h"

/* STRIP: takes off the character `text`, at most `start` and `stop` times. METASPACE: replaces the mark by `text`; with
 * `start` the first one is dropped. */
enum { BYTE_LEVEL, REPLACE, BYTE_FALLBACK, FUSE, STRIP, METASPACE };

static int read_strip(struct sh_step *s, const json_t *from, struct sh_err *e)
{
    size_t n;
    int bad;
    const char *content = sh_tok_string(from, "content", &n, e);
    const json_t *start = json_object_get(from, "start"), *stop = json_object_get(from, "stop");
    if (!content)
        return -1;
    if (!n || (size_t)sh_utf8_sequence(content, n, &bad) != n)
        return sh_fail(e, "content: found \"%.80s\", expected one character", content);
    if (!json_is_integer(start) || !json_is_integer(stop) || json_integer_value(start) < 0 ||
        json_integer_value(stop) < 0)
        return sh_fail(e, "start, stop: expected two whole numbers >= 0");
    sh_text_add(&s->text, content, n);
    s->start = json_integer_value(start);
    s->stop = json_integer_value(stop);
    return 0;
}

static int read_metaspace(struct sh_step *s, const json_t *from, struct sh_err *e)
{
    const json_t *scheme = json_object_get(from, "prepend_scheme");
    size_t n;
    int old_flag;
    const char *mark = sh_tok_string(from, "replacement", &n, e);
    if (!mark || sh_tok_flag(from, "add_prefix_space", 1, &old_flag, e))
        return -1;
    sh_text_add(&s->text, " ", 1);
    s->start = old_flag && !(json_is_string(scheme) && !strcmp(json_string_value(scheme), "never"));
    s->regex = sh_regex_new(mark, n, 1, e);
    return s->regex ? 0 : -1;
}

static const struct {
    const char *type;
    int kind;
    int (*read)(struct sh_step *s, const json_t *from, struct sh_err *e);
} readers[] = {{"ByteLevel", BYTE_LEVEL, NULL},       {"Replace", REPLACE, sh_tok_replace},
               {"ByteFallback", BYTE_FALLBACK, NULL}, {"Fuse", FUSE, NULL},
               {"Strip", STRIP, read_strip},          {"Metaspace", METASPACE, read_metaspace}};

int sh_decode_step(void *to, const char *type, const json_t *from, struct sh_err *e)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strcmp(type, readers[i].type)) {
            struct sh_step *new = sh_steps_add(to, readers[i].kind);
            return readers[i].read ? readers[i].read(new, from, e) : 0;
        }
    return SH_TOK_NO_STEP;
}

int sh_decode_is_byte_level(const struct sh_steps *s)
{
    int is = 0;
    for (int i = 0; i < s->n; i++)
        is |= s->at[i].kind == BYTE_LEVEL;
    return is;
}

/* ---- running: p -> out, both pieces ---- */

/* What was added to out->text since `begin` is a piece. */
static void end_piece(struct sh_pieces *out, size_t begin)
{
    sh_pieces_add(out, begin, out->text.n - begin);
}

static void byte_level(const struct sh_pieces *p, struct sh_pieces *out)
{
    struct sh_text bytes = {0};
    for (size_t i = 0; i < p->n; i++)
        if (sh_bytelevel_decode(&bytes, p->text.at + p->at[i].at, p->at[i].n))
            sh_text_add(&bytes, p->text.at + p->at[i].at, p->at[i].n);
    sh_utf8_repair(&out->text, bytes.n ? bytes.at : "", bytes.n);
    end_piece(out, 0);
    free(bytes.at);
}

/* A run of bytes is text if all of it is; otherwise each byte becomes U+FFFD. */
static void flush_bytes(struct sh_text *bytes, struct sh_pieces *out)
{
    size_t begin = out->text.n;
    if (!bytes->n)
        return;
    int fine = sh_utf8_valid(bytes->at, bytes->n) == bytes->n;
    if (fine)
        sh_text_add(&out->text, bytes->at, bytes->n);
    for (size_t i = 0; i < bytes->n && !fine; i++)
        sh_text_add(&out->text, "\xef\xbf\xbd", 3);
    end_piece(out, begin);
    bytes->n = 0;
}

static void byte_fallback(const struct sh_pieces *p, struct sh_pieces *out)
{
    struct sh_text bytes = {0};
    for (size_t i = 0; i < p->n; i++) {
        const char *s = p->text.at + p->at[i].at;
        int byte = sh_byte_of(s, p->at[i].n);
        if (byte >= 0) {
            char c = (char)byte;
            sh_text_add(&bytes, &c, 1);
            continue;
        }
        flush_bytes(&bytes, out);
        size_t begin = out->text.n;
        sh_text_add(&out->text, s, p->at[i].n);
        end_piece(out, begin);
    }
    flush_bytes(&bytes, out);
    free(bytes.at);
}

static void strip(const struct sh_step *s, const char *text, size_t n, struct sh_text *out)
{
    size_t c = s->text.n;
    for (json_int_t i = 0; i < s->start && sh_starts_with(text, n, s->text.at, c); i++) {
        text += c;
        n -= c;
    }
    for (json_int_t i = 0; i < s->stop && n >= c && !memcmp(text + n - c, s->text.at, c); i++)
        n -= c;
    sh_text_add(out, text, n);
}

static void each(const struct sh_step *s, const struct sh_pieces *p, struct sh_pieces *out, struct sh_watch *watch)
{
    static const struct sh_text nothing;
    struct sh_err ignored; /* a pattern that gives up leaves the rest of its token as it is */
    for (size_t i = 0; i < p->n; i++) {
        const char *text = p->text.at + p->at[i].at;
        size_t begin = out->text.n;
        if (s->kind == STRIP)
            strip(s, text, p->at[i].n, &out->text);
        else
            sh_regex_replace(s->regex, text, p->at[i].n, s->kind == METASPACE && s->start && !i ? &nothing : &s->text,
                             &out->text, watch, &ignored);
        end_piece(out, begin);
    }
}

static void run_step(const struct sh_step *s, const struct sh_pieces *p, struct sh_pieces *out, struct sh_watch *watch)
{
    if (s->kind == BYTE_LEVEL) {
        byte_level(p, out);
    } else if (s->kind == BYTE_FALLBACK) {
        byte_fallback(p, out);
    } else if (s->kind == FUSE) {
        for (size_t i = 0; i < p->n; i++)
            sh_text_add(&out->text, p->text.at + p->at[i].at, p->at[i].n);
        end_piece(out, 0);
    } else {
        each(s, p, out, watch);
    }
}

void sh_decode_run(const struct sh_steps *s, struct sh_pieces *p, struct sh_text *out)
{
    struct sh_pieces next = {0};
    struct sh_watch watch;
    sh_watch_begin(&watch, 1, p->text.n);
    p->text.limit = next.text.limit = SH_TOK_GROWTH(p->text.n);
    for (int i = 0; i < s->n; i++) {
        sh_pieces_clear(&next);
        sh_text_add(&next.text, "", 0);
        run_step(&s->at[i], p, &next, &watch);
        struct sh_pieces old = *p;
        *p = next;
        next = old;
    }
    for (size_t i = 0; i < p->n; i++) {
        if (i && !s->n)                                 /* without a decoder tokens are words */
            sh_text_add(out, " ", 1);
        sh_text_add(out, p->text.at + p->at[i].at, p->at[i].n);
    }
    sh_pieces_free(&next);
}
