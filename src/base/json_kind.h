/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a JSON value, for messages about foreign files. */
#ifndef SH_BASE_JSON_KIND_H
#define SH_BASE_JSON_KIND_H

#include <jansson.h>

/* "a string", "an object", "null"; "nothing" for NULL. */
const char *sh_json_kind(const json_t *value);

#endif
