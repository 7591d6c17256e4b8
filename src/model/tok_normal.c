/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_normal.h. */
#include "src/model/tok_normal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/mem.h"
#include "src/model/tok_regex.h"

enum kind { FORM, PREPEND, REPLACE };

struct sh_normal_step {
    enum kind kind;
    utf8proc_option_t form;
    struct sh_regex *regex;             /* REPLACE */
    struct sh_text with;                /* PREPEND, REPLACE */
};

static const struct { const char *name; int form; } forms[] = {
    {"NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
    {"NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
    {"NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};

static int read_texts(struct sh_normal_step *to, const json_t *step, struct sh_err *e)
{
    size_t n;
    const char *with = sh_tok_string(step, to->kind == PREPEND ? "prepend" : "content", &n, e);
    if (!with)
        return -1;
    sh_text_add(&to->with, with, n);
    if (to->kind == REPLACE)
        to->regex = sh_regex_read(json_object_get(step, "pattern"), e);
    return to->kind == REPLACE && !to->regex ? -1 : 0;
}

static int read_step(struct sh_normal *s, const json_t *step, int depth, struct sh_err *e)
{
    const char *type = sh_tok_type(step, "normalizer", e);
    if (!type)
        return -1;
    if (!strcmp(type, "Sequence")) {
        const json_t *steps = json_object_get(step, "normalizers");
        if (!json_is_array(steps) || depth == SH_TOK_DEPTH)
            return sh_fail(
                e, "normalizer: Sequence: found %s at depth %d, expected an array of normalizers",
                sh_tok_kind(steps), depth);
        for (size_t i = 0; i < json_array_size(steps); i++)
            if (read_step(s, json_array_get(steps, i), depth + 1, e))
                return -1;
        return 0;
    }
    struct sh_normal_step new = {.kind = FORM};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(type, forms[i].name))
            new.form = (utf8proc_option_t)forms[i].form;
    if (!strcmp(type, "Prepend"))
        new.kind = PREPEND;
    else if (!strcmp(type, "Replace"))
        new.kind = REPLACE;
    else if (!new.form)
        return sh_fail(e, "normalizer: %.80s is not supported", type);
    s->step = xreallocarray(s->step, (size_t)s->n + 1, sizeof *s->step);
    s->step[s->n++] = new;
    if (new.kind != FORM && read_texts(&s->step[s->n - 1], step, e))
        return sh_err_prefix(e, "normalizer: %s", type);
    return 0;
}

int sh_normal_read(struct sh_normal *s, const json_t *normalizer, struct sh_err *e)
{
    return !normalizer || json_is_null(normalizer) ? 0 : read_step(s, normalizer, 0, e);
}

void sh_normal_free(struct sh_normal *s)
{
    for (int i = 0; i < s->n; i++) {
        sh_regex_free(s->step[i].regex);
        free(s->step[i].with.at);
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

static int run_step(const struct sh_normal_step *s, const char *text, size_t n, struct sh_text *out,
                    struct sh_err *e)
{
    if (s->kind == REPLACE)
        return sh_regex_replace(s->regex, text, n, &s->with, out, e);
    if (s->kind == PREPEND && n)
        sh_text_add(out, s->with.at, s->with.n);
    if (s->kind == PREPEND || is_ascii(text, n)) {      /* ASCII is the same in all four forms */
        sh_text_add(out, text, n);
        return 0;
    }
    utf8proc_uint8_t *mapped = NULL;
    utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &mapped, s->form);
    if (length < 0)
        return sh_fail(e, "normalising the text: %s", utf8proc_errmsg(length));
    sh_text_add(out, (const char *)mapped, (size_t)length);
    free(mapped);
    return 0;
}

int sh_normal_run(const struct sh_normal *s, const char *text, size_t n, struct sh_text *out,
                  struct sh_err *e)
{
    struct sh_text now = {0}, next = {0};
    int bad = 0;
    sh_text_add(&now, text, n);
    for (int i = 0; i < s->n && !bad; i++) {
        next.n = 0;
        bad = run_step(&s->step[i], now.at, now.n, &next, e);
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
