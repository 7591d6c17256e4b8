/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python writes it: with the words Infinity, -Infinity and NaN as numbers (time_step_limit of Mamba models,
 * request_rate of benchmarks), which JSON does not have. */
#ifndef SH_BASE_JSON_PYTHON_H
#define SH_BASE_JSON_PYTHON_H

#include <stddef.h>

/* A copy with these words as strings, so that every reader of a number refuses them by their key; for free(). Lines
 * stay where they are. */
char *sh_json_plain(const char *text, size_t bytes, size_t *out);

#endif
