/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of tests/golden/coded, for tests. */
#ifndef SHEARS_TESTS_CODED_FOLDER_H
#define SHEARS_TESTS_CODED_FOLDER_H

#include "src/model/coded.h"

/* The path of a file; valid until the next call. */
const char *coded_golden(const char *folder, const char *file);

/* The weights of a file, coded matrices made by the settings of the config.json `config`; NULL: e says why not. */
struct sh_weights *coded_joined(const char *config, const char *file, struct sh_err *e);

#endif
