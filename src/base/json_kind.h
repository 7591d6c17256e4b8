/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a JSON value, for messages about foreign files. */
#ifndef SH_BASE_JSON_KIND_H
#define SH_BASE_JSON_KIND_H

#include <jansson.h>

/* "a string", "an object", "null"; "nothing" for NULL. */
static inline const char *sh_json_kind(const json_t *value)
{
    if (!value)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a real number";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    default: return "null";
    }
}

#endif
