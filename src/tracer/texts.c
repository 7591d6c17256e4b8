/* SPDX-License-Identifier: Apache-2.0 */
#include "src/tracer/texts.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

static int full(const struct sh_texts *t)
{
    return t->most > 0 && t->n >= t->most;
}

static int length_of(const struct sh_texts *t)
{
    return t->length ? t->length : t->max_pos;
}

static void add(struct sh_texts *t, const char *path, int part, const int32_t *tokens, int n)
{
    const char *slash = strrchr(path, '/');
    t->sequence = xreallocarray(t->sequence, (size_t)t->n + 1, sizeof *t->sequence);
    struct sh_trace_sequence *q = &t->sequence[t->n++];
    q->source = xasprintf("%s:%d", slash ? slash + 1 : path, part);
    q->n_tokens = n;
    q->tokens = xmalloc((size_t)n * sizeof *tokens);
    memcpy(q->tokens, tokens, (size_t)n * sizeof *tokens);
}

/* Are these ids, with the start tokens first and cut to the length, too few? */
static int is_short(const struct sh_texts *t, size_t n_ids)
{
    size_t n = n_ids + (size_t)sh_tokenizer_start(t->tokenizer, NULL), length = (size_t)length_of(t);
    return (n < length ? n : length) < (size_t)t->least;
}

int sh_texts_takes(const struct sh_texts *t, size_t n_ids)
{
    return n_ids && !is_short(t, n_ids);
}

/* The start tokens and ids from ids[at] on, as many as fit into the length; gives how many ids were used. */
static size_t cut(struct sh_texts *t, const char *path, int part, const struct sh_ids *ids, size_t at)
{
    const int32_t *start;
    int n_start = sh_tokenizer_start(t->tokenizer, &start), n = 0;
    size_t rest = ids->n - at + (size_t)n_start, room = (size_t)length_of(t), from = at;
    int32_t *tokens = xmalloc((rest < room ? rest : room) * sizeof *tokens);
    for (; n < n_start && (size_t)n < room; n++)
        tokens[n] = start[n];
    while ((size_t)n < room && at < ids->n)
        tokens[n++] = ids->at[at++];
    add(t, path, part, tokens, n);
    free(tokens);
    return at - from;
}

/* Is there room for text after the start tokens? */
static int has_room(const struct sh_texts *t, const char *path, struct sh_err *e)
{
    int length = length_of(t), n = sh_tokenizer_start(t->tokenizer, NULL);
    if (length > n)
        return 1;
    sh_misused(e, "%s: a sequence length of %d token%s has no room for text after the start token%s", path, length,
               length > 1 ? "s" : "", n > 1 ? "s" : "");
    return 0;
}

/* "-" is standard input, here and below. */
static int is_input(const char *path)
{
    return !strcmp(path, "-");
}

static FILE *open_lines(const char *path)
{
    int fd = is_input(path) ? dup(STDIN_FILENO) : -1;
    return !is_input(path) ? sh_stream_open(path, NULL) : fd < 0 ? NULL : sh_stream_of(fd, "r");
}

int sh_texts_text(struct sh_texts *t, const char *path, struct sh_err *e)
{
    char *text;
    size_t bytes = 0, whole = (size_t)(length_of(t) - sh_tokenizer_start(t->tokenizer, NULL)), at = 0;
    struct sh_ids ids = {0};
    if (full(t))
        return 0;
    if (!has_room(t, path, e) || !(text = is_input(path) ? sh_input_read(SH_MOST_TEXT, &bytes, e)
                                                         : sh_file_read(path, SH_MOST_TEXT, &bytes, e)))
        return -1;
    path = is_input(path) ? "stdin" : path;
    size_t mark = sh_utf8_mark(text, bytes);
    int bad = sh_tokenizer_encode(t->tokenizer, text + mark, bytes - mark, 0, &ids, e) ? sh_err_prefix(e, "%s", path)
                                                                                       : 0;
    free(text);
    if (!bad && !ids.n)
        bad = sh_fail(e, "%s: found no text, expected at least one token", path);
    for (int part = 0; !bad && !full(t) && at < ids.n && !is_short(t, ids.n - at); part++) {
        if (part && ids.n - at < whole)
            break;
        at += cut(t, path, part, &ids, at);
    }
    free(ids.at);
    return bad;
}

int sh_texts_add(struct sh_texts *t, const char *name, const char *text, size_t bytes, struct sh_err *e)
{
    struct sh_ids ids = {0};
    int bad = sh_tokenizer_encode(t->tokenizer, text, bytes, 0, &ids, e);
    if (!bad && !ids.n)
        bad = sh_fail(e, "found no text, expected at least one token");
    if (!bad)
        cut(t, name, 0, &ids, 0);
    free(ids.at);
    return bad;
}

static int one_document(struct sh_texts *t, const char *path, const char *field, int line, const json_t *item,
                        struct sh_err *e)
{
    const json_t *text = json_object_get(item, field);
    struct sh_ids ids = {0};
    if (!json_is_string(text))
        return sh_fail(e, "%s: line %d: no text in field \"%s\", expected a string", path, line, field);
    int bad = sh_tokenizer_encode(t->tokenizer, json_string_value(text), json_string_length(text), 0, &ids, e);
    if (bad)
        sh_err_prefix(e, "%s: line %d", path, line);
    else if (sh_texts_takes(t, ids.n))          /* an empty document among many is not an error */
        cut(t, path, line - 1, &ids, 0);
    free(ids.at);
    return bad;
}

static int one_line_of_ids(struct sh_texts *t, const char *path, int line, const json_t *item, struct sh_err *e)
{
    const json_t *list = item;
    if (json_is_object(item) && !(list = json_object_get(item, "tokens")))
        list = json_object_get(item, "ids");
    size_t n = json_array_size(list);
    if (!json_is_array(list) || !n)
        return sh_fail(e, "%s: line %d: expected a JSON array of token ids (or an object with it as \"tokens\")",
                       path, line);
    if (t->length && n > (size_t)t->length)
        n = (size_t)t->length;
    if (n < (size_t)t->least)
        return 0;
    if (n > (size_t)t->max_pos)
        return sh_fail(e, "%s: line %d: found %zu tokens, expected at most %d, the model's number of positions",
                       path, line, n, t->max_pos);
    int32_t *tokens = xmalloc(n * sizeof *tokens);
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= t->n_vocab)
            bad = sh_fail(e, "%s: line %d: element %zu is not a token id, expected a whole number from 0 to %d", path,
                          line, i, t->n_vocab - 1);
        else
            tokens[i] = (int32_t)json_integer_value(id);
    }
    if (!bad)
        add(t, path, line - 1, tokens, (int)n);
    free(tokens);
    return bad;
}

/* Walk over the JSON values of a file, one a line; field NULL: lines of ids. */
static int each_line(struct sh_texts *t, const char *path, const char *field, struct sh_err *e)
{
    FILE *f = open_lines(path);
    path = is_input(path) ? "stdin" : path;
    if (!f)
        return sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
    char *line = NULL;
    const char *wide;
    size_t cap = 0;
    ssize_t got;
    int number = 0, bad = 0, before = t->n;
    while (!bad && !full(t) && (got = xgetline(&line, &cap, SH_MOST_TEXT, f)) >= 0) {
        json_error_t problem;
        number++;
        if (strspn(line, " \t\r\n") == (size_t)got)
            continue;
        if ((size_t)got > SH_MOST_TEXT) {
            bad = sh_fail(e, "%s: line %d: too long, expected at most %zu bytes", path, number, SH_MOST_TEXT);
            break;
        }
        size_t mark = number == 1 ? sh_utf8_mark(line, (size_t)got) : 0;
        json_t *item = json_loadb(line + mark, (size_t)got - mark, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &problem);
        if (!item) {
            bad = sh_fail(e, "%s: line %d is not JSON: %s", path, number, problem.text);
            if ((wide = sh_wide_text(line, (size_t)got)))
                sh_hint(e, "the file is %s: " SH_WIDE_HINT, wide, wide);
        }
        else
            bad = field ? one_document(t, path, field, number, item, e) : one_line_of_ids(t, path, number, item, e);
        json_decref(item);
    }
    if (!bad && ferror(f))
        bad = sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
    if (!bad && t->n == before && !full(t) && t->least < 2)    /* else all were too short, as the caller says */
        bad = sh_fail(e, "%s: found no text, expected one JSON value per line", path);
    free(line);
    fclose(f);
    return bad;
}

int sh_texts_jsonl(struct sh_texts *t, const char *path, const char *field, struct sh_err *e)
{
    return has_room(t, path, e) ? each_line(t, path, field, e) : -1;
}

int sh_texts_tokens(struct sh_texts *t, const char *path, struct sh_err *e)
{
    return each_line(t, path, NULL, e);
}
