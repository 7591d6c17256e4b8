/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_regex.h. A pattern comes from a file that may be hostile: the work and the memory of one
 * match are limited, and running into a limit is an error, never a quiet miss. */
#include "src/tokenizer/tok_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/mem.h"

#define MATCH_LIMIT 10000000u           /* steps of one match                  */
#define QUICK_LIMIT 100000u             /* after so many the time is looked at */
#define HEAP_LIMIT_KIB 65536u           /* memory of one match                 */
#define SHORT 8u                        /* bytes */
#define PATTERN_LIMIT 65536u            /* bytes; published patterns have 300  */

struct sh_regex {
    pcre2_code *code;
    pcre2_match_context *quick, *limits;    /* tried first; what no match may exceed */
    struct sh_text literal;             /* a short string needs no engine; n 0: use the code */
};

/* What a code of PCRE2 means. */
static const char *reason(int code, char text[160])
{
    text[0] = '\0';
    pcre2_get_error_message(code, (PCRE2_UCHAR *)text, 160);
    return text;
}

static pcre2_match_context *limited(uint32_t steps)
{
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(limits, steps);
    pcre2_set_heap_limit(limits, HEAP_LIMIT_KIB);
    return limits;
}

struct sh_regex *sh_regex_new(const char *pattern, size_t n, int literal, struct sh_err *e)
{
    struct sh_text text = {0};
    char why[160];
    if (n > PATTERN_LIMIT)
        return sh_fail_null(e, "regular expression: found %zu bytes, expected at most %u", n, PATTERN_LIMIT);
    if (literal && !n)
        return sh_fail_null(e, "the pattern is empty");
    if (literal)
        sh_text_add(&text, pattern, n);
    if (literal && n <= SHORT) {
        struct sh_regex *r = xcalloc(1, sizeof *r);
        r->literal = text;
        return r;
    }
    if (!literal && sh_ruby_rewrite(pattern, n, &text, e)) {
        free(text.at);
        return NULL;
    }
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    uint32_t how = PCRE2_UTF | PCRE2_NO_UTF_CHECK;
    how |= literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    int code = 0;
    PCRE2_SIZE where;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)(text.n ? text.at : ""), text.n, how, &code, &where, context);
    pcre2_compile_context_free(context);
    free(text.at);
    if (!compiled)
        return sh_fail_null(e, "regular expression \"%.*s\": %s", n > 200 ? 200 : (int)n, pattern, reason(code, why));
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);    /* without it matching is only slower */
    struct sh_regex *r = xcalloc(1, sizeof *r);
    r->code = compiled;
    r->quick = limited(QUICK_LIMIT);
    r->limits = limited(MATCH_LIMIT);
    return r;
}

struct sh_regex *sh_regex_read(const json_t *pattern, struct sh_err *e)
{
    const json_t *regex = json_object_get(pattern, "Regex"),
                 *string = json_object_get(pattern, "String");
    const json_t *given = json_is_string(regex) ? regex : string;
    if (!json_is_string(given))
        return sh_fail_null(e, "pattern: found %s, expected {\"Regex\": \"…\"} or {\"String\": \"…\"}",
                            sh_json_kind(pattern));
    return sh_regex_new(json_string_value(given), json_string_length(given), given == string, e);
}

void sh_regex_free(struct sh_regex *r)
{
    if (!r)
        return;
    free(r->literal.at);
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->quick);
    pcre2_match_context_free(r->limits);
    free(r);
}

static int match_within(struct sh_scan *s, pcre2_match_context *limits)
{
    PCRE2_SPTR text = (PCRE2_SPTR)s->text;
    pcre2_code *code = s->regex->code;
    int found = pcre2_match(code, text, s->n, s->from, PCRE2_NO_UTF_CHECK, s->match, limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter takes its stack from the heap */
        found = pcre2_match(code, text, s->n, s->from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->match, limits);
    return found;
}

static int next_literal(struct sh_scan *s, struct sh_span *found)
{
    const struct sh_text *literal = &s->regex->literal;
    const char *at = s->text + s->from, *end = s->text + s->n;
    while ((at = memchr(at, literal->at[0], (size_t)(end - at)))) {
        if (sh_starts_with(at, (size_t)(end - at), literal->at, literal->n)) {
            *found = (struct sh_span){(size_t)(at - s->text), literal->n};
            s->from = found->at + found->n;
            return 1;
        }
        at++;
    }
    return 0;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sh_watch_begin(struct sh_watch *w, double more, size_t bytes)
{
    *w = (struct sh_watch){.end = seconds() + more + 20e-6 * (double)bytes};
}

/* Is the time up? Quick matches look only now and then. */
static int is_late(struct sh_watch *w, int quick)
{
    if (!w->is_over && (!quick || ++w->calls % 64 == 0))
        w->is_over = seconds() > w->end;
    return w->is_over;
}

/* What pcre2_match says; *late: the time was up before. */
static int match_at(struct sh_scan *s, int *late)
{
    int found = 0;
    if ((*late = is_late(s->watch, 1)))
        return 0;
    found = match_within(s, s->regex->quick);
    if (found == PCRE2_ERROR_MATCHLIMIT && !(*late = is_late(s->watch, 0)))
        found = match_within(s, s->regex->limits);
    return found;
}

/* An empty match right after the last match does not count: on from the next character. */
int sh_scan_next(struct sh_scan *s, struct sh_span *found, struct sh_err *e)
{
    if (s->regex->literal.n)
        return s->n > s->from ? next_literal(s, found) : 0;
    char why[160];
    int late;
    if (!s->match)
        s->match = pcre2_match_data_create(1, NULL);
    while (s->from <= s->n) {
        int code = match_at(s, &late);
        if (late)
            return sh_fail(e, "a regular expression takes too long: stopped at byte %zu of %zu", s->from, s->n);
        if (code == PCRE2_ERROR_NOMATCH)
            return 0;
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(s->match);
        if (code >= 0 && (at[0] < s->from || at[1] < at[0]))
            return sh_fail(e, "a regular expression matched before its start position");
        if (code < 0)
            return sh_fail(e, "a regular expression failed at byte %zu of %zu: %s", s->from, s->n, reason(code, why));
        if (at[0] < at[1] || s->last != at[1] + 1) {
            *found = (struct sh_span){at[0], at[1] - at[0]};
            s->from = at[1];
            s->last = at[1] + 1;
            return 1;
        }
        uint32_t ignored;
        s->from += s->from < s->n ? (size_t)sh_utf8_get(s->text + s->from, &ignored) : 1;
    }
    return 0;
}

void sh_scan_end(struct sh_scan *s)
{
    pcre2_match_data_free(s->match);
    s->match = NULL;
}

int sh_regex_replace(const struct sh_regex *r, const char *text, size_t n, const struct sh_text *with,
                     struct sh_text *out, struct sh_watch *watch, struct sh_err *e)
{
    struct sh_scan s = {.regex = r, .text = text, .n = n, .watch = watch};
    struct sh_span m;
    size_t done = 0;
    int more;
    while ((more = sh_scan_next(&s, &m, e)) == 1) {
        sh_text_add(out, text + done, m.at - done);
        sh_text_add(out, with->at, with->n);
        done = m.at + m.n;
        if (out->limit && out->n > out->limit) {
            more = sh_fail(e, "the text after replacement exceeds %zu bytes", out->limit);
            break;
        }
    }
    sh_scan_end(&s);
    sh_text_add(out, text + done, n - done);
    return more;
}
