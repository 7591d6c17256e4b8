/* SPDX-License-Identifier: Apache-2.0 */
/* See tok.h. Each pre-tokenizer becomes one to three of four primitive steps. */
#include "src/tokenizer/tok.h"

#include <string.h>

#include "src/tokenizer/tok_regex.h"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* The tokenizers library uses Rust's \w here, not Oniguruma's. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"

/* PREFIX: puts `text`, with only_start only before the piece that begins the text; REPLACE; CUT: by matches; BYTES: as
 * GPT-2's alphabet. */
enum { PREFIX, REPLACE, CUT, BYTES };
enum behaviour { ISOLATED, REMOVED, CONTIGUOUS, WITH_PREVIOUS, WITH_NEXT, NO_BEHAVIOUR };

static int add_cut(struct sh_steps *s, const char *regex, enum behaviour behaviour, struct sh_err *e)
{
    struct sh_step *cut = sh_steps_add(s, CUT);
    cut->behaviour = behaviour;
    cut->regex = sh_regex_new(regex, strlen(regex), 0, e);
    return cut->regex ? 0 : -1;
}

static int read_byte_level(struct sh_steps *s, const json_t *from, struct sh_err *e)
{
    int prefix, regex;
    if (sh_tok_flag(from, "add_prefix_space", 1, &prefix, e) || sh_tok_flag(from, "use_regex", 1, &regex, e))
        return -1;
    if (prefix)
        sh_text_add(&sh_steps_add(s, PREFIX)->text, " ", 1);
    if (regex && add_cut(s, GPT2, ISOLATED, e))
        return -1;
    sh_steps_add(s, BYTES);
    return 0;
}

static int read_behaviour(const json_t *from, enum behaviour absent, enum behaviour *to, struct sh_err *e)
{
    static const char *const names[] = {"Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"};
    size_t n;
    *to = absent;
    if (!json_object_get(from, "behavior") && absent != NO_BEHAVIOUR)
        return 0;
    const char *name = sh_tok_string(from, "behavior", &n, e);
    if (!name)
        return -1;
    for (int k = 0; k < 5; k++)
        if (!strcmp(name, names[k])) {
            *to = (enum behaviour)k;
            return 0;
        }
    return sh_fail(e, "behavior: %.80s is not supported", name);
}

static int read_split(struct sh_steps *s, const json_t *from, struct sh_err *e)
{
    enum behaviour behaviour;
    if (read_behaviour(from, NO_BEHAVIOUR, &behaviour, e))
        return -1;
    struct sh_step *cut = sh_steps_add(s, CUT);
    cut->behaviour = behaviour;
    cut->regex = sh_regex_read(json_object_get(from, "pattern"), e);
    return cut->regex ? sh_tok_flag(from, "invert", 0, &cut->invert, e) : -1;
}

static int read_punctuation(struct sh_steps *s, const json_t *from, struct sh_err *e)
{
    enum behaviour behaviour;
    return read_behaviour(from, ISOLATED, &behaviour, e) || add_cut(s, "[\\p{P}$+<=>^`|~]", behaviour, e) ? -1 : 0;
}

static int read_digits(struct sh_steps *s, const json_t *from, struct sh_err *e)
{
    int each;
    if (sh_tok_flag(from, "individual_digits", 0, &each, e))
        return -1;
    return add_cut(s, "\\p{N}", each ? ISOLATED : CONTIGUOUS, e);
}

/* Spaces become the replacement, one is put in front, and the text is cut before each. */
static int read_metaspace(struct sh_steps *s, const json_t *from, struct sh_err *e)
{
    const json_t *scheme = json_object_get(from, "prepend_scheme");
    const char *when = json_is_string(scheme) ? json_string_value(scheme) : "always";
    int old_flag, cut;
    size_t n;
    const char *mark = sh_tok_string(from, "replacement", &n, e);
    if (!mark || sh_tok_flag(from, "add_prefix_space", 1, &old_flag, e) || sh_tok_flag(from, "split", 1, &cut, e))
        return -1;
    if (n > SH_TOK_LONGEST_TEXT)
        return sh_fail(e, "replacement: found %zu bytes, expected at most %u", n, SH_TOK_LONGEST_TEXT);
    if (strcmp(when, "always") && strcmp(when, "first") && strcmp(when, "never"))
        return sh_fail(e, "prepend_scheme: %.80s is not supported", when);
    struct sh_step *step = sh_steps_add(s, REPLACE);
    sh_text_add(&step->text, mark, n);
    step->regex = sh_regex_new(" ", 1, 1, e);
    if (old_flag && strcmp(when, "never")) {
        step = sh_steps_add(s, PREFIX);
        step->only_start = !strcmp(when, "first");
        sh_text_add(&step->text, mark, n);
    }
    if (cut) {
        step = sh_steps_add(s, CUT);
        step->behaviour = WITH_NEXT;
        step->regex = sh_regex_new(mark, n, 1, e);
        return step->regex ? 0 : -1;
    }
    return 0;
}

static const struct {
    const char *type;
    int (*read)(struct sh_steps *s, const json_t *from, struct sh_err *e);
    const char *removed, *kept;         /* without `read`: what is removed, or all that is kept */
} readers[] = {{"ByteLevel", read_byte_level, NULL, NULL}, {"Split", read_split, NULL, NULL},
               {"Digits", read_digits, NULL, NULL}, {"Metaspace", read_metaspace, NULL, NULL},
               {"Punctuation", read_punctuation, NULL, NULL}, {"WhitespaceSplit", NULL, "\\s+", NULL},
               {"Whitespace", NULL, NULL, "[" WORD "]+|[^" WORD "\\s]+"}};

int sh_split_step(void *to, const char *type, const json_t *from, struct sh_err *e)
{
    struct sh_steps *s = to;
    size_t i = 0, n = sizeof readers / sizeof *readers;
    while (i < n && strcmp(type, readers[i].type))
        i++;
    if (i == n)
        return SH_TOK_NO_STEP;
    if (readers[i].read)
        return readers[i].read(s, from, e);
    if (add_cut(s, readers[i].kept ? readers[i].kept : readers[i].removed, REMOVED, e))
        return -1;
    s->at[s->n - 1].invert = readers[i].kept != NULL;
    return 0;
}

/* ---- running ---- */

/* How the stretches of one piece (matches, and what lies between) become pieces again. */
struct joiner {
    enum behaviour behaviour;
    struct sh_pieces *out;
    size_t first;                       /* the out->n at which this piece began */
    int last_was_match;
};

static void stretch(struct joiner *j, size_t at, size_t n, int is_match)
{
    struct sh_pieces *out = j->out;
    struct sh_span *last = out->n > j->first ? &out->at[out->n - 1] : NULL;
    int join = 0;
    if (j->behaviour == REMOVED && is_match)
        return;
    if (j->behaviour == CONTIGUOUS)
        join = is_match == j->last_was_match;
    if (j->behaviour == WITH_PREVIOUS)
        join = is_match && !j->last_was_match;
    if (j->behaviour == WITH_NEXT) /* only the last of a run of matches joins */
        join = j->last_was_match && !is_match;
    if (join && last)
        last->n += n;
    else
        sh_pieces_add(out, at, n);
    j->last_was_match = is_match;
}

static int cut(const struct sh_step *s, struct sh_scan *scan, const char *text,
               struct sh_span piece, struct sh_pieces *out, struct sh_err *e)
{
    struct sh_span m;
    struct joiner j = {(enum behaviour)s->behaviour, out, out->n, 0};
    *scan = (struct sh_scan){
        .regex = s->regex, .text = text + piece.at, .n = piece.n, .watch = scan->watch,
        .match = scan->match};
    size_t done = 0;
    int more;
    while ((more = sh_scan_next(scan, &m, e)) == 1) {
        if (m.at > done)
            stretch(&j, piece.at + done, m.at - done, s->invert);
        stretch(&j, piece.at + m.at, m.n, !s->invert);
        done = m.at + m.n;
    }
    if (piece.n > done)
        stretch(&j, piece.at + done, piece.n - done, s->invert);
    size_t kept = j.first;
    for (size_t k = j.first; k < out->n; k++)
        if (out->at[k].n)
            out->at[kept++] = out->at[k];
    out->n = kept;
    return more;
}

static int rewrite(const struct sh_step *s, const struct sh_pieces *p, size_t i, int at_start,
                   struct sh_pieces *out, struct sh_watch *watch, struct sh_err *e)
{
    const char *text = p->text.at + p->at[i].at;
    size_t n = p->at[i].n, begin = out->text.n;
    int bad = 0;
    if (s->kind == REPLACE) {
        bad = sh_regex_replace(s->regex, text, n, &s->text, &out->text, watch, e);
    } else if (s->kind == BYTES) {
        sh_bytelevel_encode(&out->text, text, n);
    } else {
        if (!sh_starts_with(text, n, s->text.at, s->text.n) && (!s->only_start || (at_start && i == 0)))
            sh_text_add(&out->text, s->text.at, s->text.n);
        sh_text_add(&out->text, text, n);
    }
    if (out->text.n > begin)
        sh_pieces_add(out, begin, out->text.n - begin);
    if (!bad && out->text.n > out->text.limit)
        return sh_fail(e, "the text after the pre_tokenizer exceeds %zu bytes", out->text.limit);
    return bad;
}

int sh_split_run(const struct sh_steps *s, struct sh_pieces *p, struct sh_pieces *spare, int at_start,
                 struct sh_watch *watch, struct sh_err *e)
{
    struct sh_scan scan = {.watch = watch};
    int bad = 0;
    p->text.limit = spare->text.limit = SH_TOK_GROWTH(p->text.n);
    for (int k = 0; k < s->n && !bad; k++) {
        const struct sh_step *step = &s->at[k];
        sh_pieces_clear(spare);
        for (size_t i = 0; i < p->n && !bad; i++)
            bad = step->kind == CUT ? cut(step, &scan, p->text.at, p->at[i], spare, e)
                                    : rewrite(step, p, i, at_start, spare, watch, e);
        if (step->kind == CUT) {                        /* the same text, other pieces */
            struct sh_text text = spare->text;
            spare->text = p->text;
            p->text = text;
        }
        struct sh_pieces old = *p;
        *p = *spare;
        *spare = old;
    }
    sh_scan_end(&scan);
    return bad;
}
