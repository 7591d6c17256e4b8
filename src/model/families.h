/* SPDX-License-Identifier: Apache-2.0 */
/* The model families, one line each: X(name) stands for sh_family_<name> in family_<name>.c. */
#ifndef SH_MODEL_FAMILIES_H
#define SH_MODEL_FAMILIES_H

#include "src/model/family.h"

#define SH_FAMILIES(X) \
    X(opt)

#define SH_FAMILY_DECLARE(name) extern const struct sh_family sh_family_##name;
SH_FAMILIES(SH_FAMILY_DECLARE)
#undef SH_FAMILY_DECLARE

#endif
