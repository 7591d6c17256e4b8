/* SPDX-License-Identifier: Apache-2.0 */
#include "src/tokenizer/tok_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"

enum { DEEPEST = 16 };                  /* Sequence within Sequence */
#define MOST_BYTES ((off_t)512 << 20)   /* the largest published file has 35 MB */

int sh_tok_has(const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    int is_there = !access(path, F_OK);
    free(path);
    return is_there;
}

/* The object in an open file; path: for messages. */
static json_t *load(FILE *from, const char *path, int loose, struct sh_err *e)
{
    json_error_t error;
    size_t how = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | (loose ? JSON_DECODE_INT_AS_REAL : 0u);
    json_t *root = json_loadf(from, how, &error);
    if (ferror(from))
        sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
    else if (!root)
        sh_fail(e, "%s: not valid JSON: line %d, column %d: %s", path, error.line, error.column, error.text);
    else if (!json_is_object(root))
        sh_fail(e, "%s: found %s, expected an object", path, sh_json_kind(root));
    else
        return root;
    json_decref(root);
    return NULL;
}

json_t *sh_tok_load(const char *folder, const char *name, int loose, struct sh_err *e)
{
    char *path = xasprintf("%s/%s", folder, name);
    struct stat info;
    json_t *root = NULL;
    FILE *from = sh_stream_open(path, &info);
    if (!from)
        sh_fail(e, "%s: cannot be opened: %s", path, strerror(errno));
    else if (info.st_size > MOST_BYTES)
        sh_fail(e, "%s: found %lld bytes, expected at most %lld", path, (long long)info.st_size, (long long)MOST_BYTES);
    else
        root = load(from, path, loose, e);
    if (from)
        fclose(from);
    free(path);
    return root;
}

const char *sh_tok_string(const json_t *o, const char *key, size_t *n, struct sh_err *e)
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_string(value))
        return sh_fail_null(e, "%s: found %s, expected a string", key, sh_json_kind(value));
    *n = json_string_length(value);
    return json_string_value(value);
}

int sh_tok_text(const json_t *o, const char *key, struct sh_text *to, struct sh_err *e)
{
    size_t n;
    const char *text = sh_tok_string(o, key, &n, e);
    if (!text)
        return -1;
    if (n > SH_TOK_LONGEST_TEXT)
        return sh_fail(e, "%s: found %zu bytes, expected at most %u", key, n, SH_TOK_LONGEST_TEXT);
    sh_text_add(to, text, n);
    return 0;
}

int sh_tok_flag(const json_t *o, const char *key, int absent, int *out, struct sh_err *e)
{
    const json_t *value = json_object_get(o, key);
    if (value && !json_is_null(value) && !json_is_boolean(value))
        return sh_fail(e, "%s: found %s, expected true or false", key, sh_json_kind(value));
    *out = json_is_boolean(value) ? json_is_true(value) : absent;
    return 0;
}

static int read_steps(const struct sh_tok_steps *s, const json_t *step, int depth, struct sh_err *e)
{
    size_t n;
    if (!json_is_object(step))
        return sh_fail(e, "%s: found %s, expected an object", s->what, sh_json_kind(step));
    const char *type = sh_tok_string(step, "type", &n, e);
    if (!type)
        return sh_err_prefix(e, "%s", s->what);
    if (!strcmp(type, "Sequence")) {
        const json_t *steps = json_object_get(step, s->list);
        if (!json_is_array(steps) || depth == DEEPEST)
            return sh_fail(e, "%s: Sequence: found %s at depth %d, expected an array of %s", s->what,
                           sh_json_kind(steps), depth, s->list);
        for (size_t i = 0; i < json_array_size(steps); i++)
            if (read_steps(s, json_array_get(steps, i), depth + 1, e))
                return -1;
        return 0;
    }
    if (*s->n >= SH_TOK_STEPS)
        return sh_fail(e, "%s: found too many steps, expected at most %d", s->what, SH_TOK_STEPS);
    int end = s->read(s->to, type, step, e);
    if (end == SH_TOK_NO_STEP)
        return sh_fail(e, "%s: %.80s is not supported", s->what, type);
    return end ? sh_err_prefix(e, "%s: %s", s->what, type) : 0;
}

int sh_tok_read_steps(const struct sh_tok_steps *s, const json_t *part, struct sh_err *e)
{
    return !part || json_is_null(part) ? 0 : read_steps(s, part, 0, e);
}
