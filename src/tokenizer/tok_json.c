/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_json.h. */
#include "src/tokenizer/tok_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/file.h"

#define MOST_BYTES ((off_t)512 << 20)   /* the largest published file has 35 MB */

json_t *sh_tok_load(const char *path, int loose, struct sh_err *e)
{
    struct stat info;
    FILE *from = sh_stream_open(path, &info);
    if (!from) {
        sh_fail(e, "%s: cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    if (info.st_size > MOST_BYTES) {
        sh_fail(e, "%s: found %lld bytes, expected at most %lld", path, (long long)info.st_size,
                (long long)MOST_BYTES);
        fclose(from);
        return NULL;
    }
    json_error_t error;
    size_t how = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | (loose ? JSON_DECODE_INT_AS_REAL : 0u);
    json_t *root = json_loadf(from, how, &error);
    int failed = ferror(from), why = errno;
    fclose(from);
    if (failed) {
        json_decref(root);
        root = NULL;
        sh_fail(e, "%s: cannot be read: %s", path, strerror(why));
    } else if (!root) {
        sh_fail(e, "%s: not valid JSON: line %d, column %d: %s", path, error.line, error.column,
                error.text);
    } else if (!json_is_object(root)) {
        sh_fail(e, "%s: found %s, expected an object", path, sh_json_kind(root));
        json_decref(root);
        root = NULL;
    }
    return root;
}

const char *sh_tok_string(const json_t *o, const char *key, size_t *n, struct sh_err *e)
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_string(value)) {
        sh_fail(e, "%s: found %s, expected a string", key, sh_json_kind(value));
        return NULL;
    }
    *n = json_string_length(value);
    return json_string_value(value);
}

int sh_tok_flag(const json_t *o, const char *key, int absent, int *out, struct sh_err *e)
{
    const json_t *value = json_object_get(o, key);
    if (value && !json_is_null(value) && !json_is_boolean(value))
        return sh_fail(e, "%s: found %s, expected true or false", key, sh_json_kind(value));
    *out = json_is_boolean(value) ? json_is_true(value) : absent;
    return 0;
}

const char *sh_tok_type(const json_t *step, const char *what, struct sh_err *e)
{
    size_t n;
    if (!json_is_object(step)) {
        sh_fail(e, "%s: found %s, expected an object", what, sh_json_kind(step));
        return NULL;
    }
    const char *type = sh_tok_string(step, "type", &n, e);
    if (!type)
        sh_err_prefix(e, "%s", what);
    return type;
}
