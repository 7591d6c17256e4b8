/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/iq_points.h"

#define COORDINATE(p, bits, i) ((p) >> (bits) * (i) & ((1 << (bits)) - 1))

#define IQ1_AT(p, i) ((uint64_t)(121 + 8 * COORDINATE(p, 2, i)) << 8 * (i))
#define IQ2_AT(p, i) ((uint64_t)(128 + (COORDINATE(p, 2, i) ? 7 + 18 * COORDINATE(p, 2, i) : 8)) << 8 * (i))
#define EIGHT(at, p) at(p, 0) | at(p, 1) | at(p, 2) | at(p, 3) | at(p, 4) | at(p, 5) | at(p, 6) | at(p, 7),

#define IQ3_XXS_AT(p, i) ((uint32_t)(132 + 8 * COORDINATE(p, 3, i) + (COORDINATE(p, 3, i) == 7 ? 2 : 0)) << 8 * (i))
#define IQ3_S_AT(p, i) ((uint32_t)(129 + 2 * COORDINATE(p, 3, i)) << 8 * (i))
#define FOUR(at, p) at(p, 0) | at(p, 1) | at(p, 2) | at(p, 3),

#define IQ1(p) EIGHT(IQ1_AT, p)
#define IQ2(p) EIGHT(IQ2_AT, p)
#define IQ3_XXS(p) FOUR(IQ3_XXS_AT, p)
#define IQ3_S(p) FOUR(IQ3_S_AT, p)

const uint64_t sh_iq1[SH_N_IQ1] = {SH_IQ1_POINTS(IQ1)};
const uint64_t sh_iq2_xxs[SH_N_IQ2_XXS] = {SH_IQ2_XXS_POINTS(IQ2)};
const uint64_t sh_iq2_xs[SH_N_IQ2_XS] = {SH_IQ2_XS_POINTS(IQ2)};
const uint64_t sh_iq2_s[SH_N_IQ2_S] = {SH_IQ2_S_POINTS(IQ2)};
const uint32_t sh_iq3_xxs[SH_N_IQ3_XXS] = {SH_IQ3_XXS_POINTS(IQ3_XXS)};
const uint32_t sh_iq3_s[SH_N_IQ3_S] = {SH_IQ3_S_POINTS(IQ3_S)};
