/* SPDX-License-Identifier: Apache-2.0 */
/* See tok.h. */
#include "src/tokenizer/tok.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok_regex.h"

enum kind { FORM, PREPEND, REPLACE, LOWERCASE, STRIP, SENTENCEPIECE };

struct sh_normal_step {
    enum kind kind;
    utf8proc_option_t form;
    struct sh_regex *regex;             /* REPLACE */
    struct sh_text with;                /* PREPEND, REPLACE */
    int left, right;                    /* STRIP */
    struct sh_sp_normal *sp;            /* SENTENCEPIECE */
};

static const struct { const char *name; int form; } forms[] = {
    {"NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
    {"NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
    {"NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};

static int read_strip(struct sh_normal_step *to, const json_t *step, struct sh_err *e)
{
    return sh_tok_flag(step, "strip_left", 1, &to->left, e) ||
           sh_tok_flag(step, "strip_right", 1, &to->right, e) ? -1 : 0;
}

static struct sh_normal_step *add(struct sh_normal *s, enum kind kind)
{
    s->step = xreallocarray(s->step, (size_t)s->n + 1, sizeof *s->step);
    s->step[s->n] = (struct sh_normal_step){.kind = kind};
    return &s->step[s->n++];
}

void sh_normal_sentencepiece(struct sh_normal *s, struct sh_sp_normal *sp)
{
    add(s, SENTENCEPIECE)->sp = sp;
}

static int read_prepend(struct sh_normal_step *to, const json_t *step, struct sh_err *e)
{
    return sh_tok_text(step, "prepend", &to->with, e);
}

static int read_replace(struct sh_normal_step *to, const json_t *step, struct sh_err *e)
{
    return sh_tok_text(step, "content", &to->with, e) ||
           !(to->regex = sh_regex_read(json_object_get(step, "pattern"), e)) ? -1 : 0;
}

static const struct {
    const char *type;
    enum kind kind;
    int (*read)(struct sh_normal_step *to, const json_t *step, struct sh_err *e);
} readers[] = {{"Prepend", PREPEND, read_prepend}, {"Replace", REPLACE, read_replace}, {"Strip", STRIP, read_strip},
               {"Lowercase", LOWERCASE, NULL}};

static int read_step(void *to, const char *type, const json_t *step, struct sh_err *e)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(type, forms[i].name)) {
            add(to, FORM)->form = (utf8proc_option_t)forms[i].form;
            return 0;
        }
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strcmp(type, readers[i].type)) {
            struct sh_normal_step *new = add(to, readers[i].kind);
            return readers[i].read ? readers[i].read(new, step, e) : 0;
        }
    return SH_TOK_NO_STEP;
}

int sh_normal_read(struct sh_normal *s, const json_t *normalizer, struct sh_err *e)
{
    const struct sh_tok_steps steps = {"normalizer", "normalizers", read_step, s, &s->n};
    return sh_tok_read_steps(&steps, normalizer, e);
}

void sh_normal_free(struct sh_normal *s)
{
    for (int i = 0; i < s->n; i++) {
        sh_regex_free(s->step[i].regex);
        free(s->step[i].with.at);
        if (s->step[i].sp)
            sh_sp_normal_free(s->step[i].sp);
        free(s->step[i].sp);
    }
    free(s->step);
}

static int is_ascii(const char *text, size_t n)
{
    unsigned char all = 0;
    for (size_t i = 0; i < n; i++)
        all |= (unsigned char)text[i];
    return all < 0x80;
}

/* Each character by its full lower case; of those only U+0130 has more than one character. */
static void lowercase(const char *text, size_t n, struct sh_text *out)
{
    int length;
    for (size_t i = 0; i < n; i += (size_t)length) {
        char to[4];
        uint32_t code;
        length = sh_utf8_get(text + i, &code);
        utf8proc_int32_t lower = code == 0x130 ? 'i' : utf8proc_tolower((utf8proc_int32_t)code);
        sh_text_add(out, to, (size_t)sh_utf8_put(to, (uint32_t)lower));
        if (code == 0x130)
            sh_text_add(out, "\xcc\x87", 2);
    }
}

static int run_form(const struct sh_normal_step *s, const char *text, size_t n, struct sh_text *out, struct sh_err *e)
{
    if (is_ascii(text, n)) {            /* ASCII is the same in all four forms */
        sh_text_add(out, text, n);
        return 0;
    }
    utf8proc_uint8_t *mapped = NULL;
    utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &mapped, s->form);
    if (length < 0)
        return sh_fail(e, "normalising the text: %s", utf8proc_errmsg(length));
    sh_text_add(out, (const char *)mapped, (size_t)length);
    free(mapped);
    return 0;
}

static int run_step(const struct sh_normal_step *s, const char *text, size_t n, int at_start,
                    struct sh_text *out, struct sh_err *e)
{
    size_t begin, end;
    switch (s->kind) {
    case FORM: return run_form(s, text, n, out, e);
    case REPLACE: return sh_regex_replace(s->regex, text, n, &s->with, out, e);
    case SENTENCEPIECE: return sh_sp_normal_run(s->sp, text, n, at_start, out, e);
    case LOWERCASE: lowercase(text, n, out); return 0;
    case STRIP:
        begin = s->left ? sh_spaces_end(text, 0, n) : 0;
        end = s->right ? sh_spaces_begin(text, begin, n) : n;
        sh_text_add(out, text + begin, end - begin);
        return 0;
    case PREPEND: break;
    }
    if (n)
        sh_text_add(out, s->with.at, s->with.n);
    sh_text_add(out, text, n);
    return 0;
}

int sh_normal_run(const struct sh_normal *s, const char *text, size_t n, int at_start,
                  struct sh_text *out, struct sh_err *e)
{
    struct sh_text now = {.limit = SH_TOK_GROWTH(n)}, next = {.limit = SH_TOK_GROWTH(n)};
    int bad = 0;
    sh_text_add(&now, text, n);
    for (int i = 0; i < s->n && !bad; i++) {
        next.n = 0;
        bad = run_step(&s->step[i], now.at, now.n, at_start, &next, e);
        struct sh_text old = now;
        now = next;
        next = old;
    }
    if (!bad)
        sh_text_add(out, now.at, now.n);
    free(now.at);
    free(next.at);
    return bad;
}
