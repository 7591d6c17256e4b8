/* SPDX-License-Identifier: Apache-2.0 */
/* How one attention score is kept in few bits. Everything that writes or reads packed scores
 * (backends, trace codecs, the SQL functions) takes the numbers from here.
 *
 * log8: one byte, linear in the logit. With p = exp(s - lse), code = round((lse - s) / STEP), so no
 * logarithm is needed where s and lse are at hand. Codes 0..ZERO-1 stand for exp(-code * STEP), that
 * is 1 down to 1e-8; code ZERO stands for exactly 0 and for everything smaller. STEP = ln(100) / 59.5:
 * the worst relative error is exp(STEP / 2) - 1 = 3.95 %, and the half makes "below 1 % of the row's
 * largest" fall between two codes, so that counting it from codes has no bias. The codes above ZERO
 * are unused. */
#ifndef SH_BASE_SCORE_H
#define SH_BASE_SCORE_H

#include <math.h>
#include <stdint.h>

#define SH_LOG8_STEP 0.07739782f
#define SH_LOG8_ZERO 239                /* below exp(-238.5 * STEP) = 0.96e-8; code 238 is 1e-8 */

/* x = s - lse <= 0 (rounding may put it slightly above). NaN gives ZERO. */
static inline uint8_t sh_log8_from_logit(float x)
{
    float code = rintf(x * (-1.0f / SH_LOG8_STEP));
    code = code < 0 ? 0 : code;
    return (uint8_t)(code < (float)SH_LOG8_ZERO ? code : (float)SH_LOG8_ZERO);
}

static inline uint8_t sh_log8_from_score(float p)
{
    return p > 0 ? sh_log8_from_logit(logf(p)) : SH_LOG8_ZERO;
}

static inline float sh_log8_to_score(uint8_t code)
{
    return code < SH_LOG8_ZERO ? expf(-SH_LOG8_STEP * (float)code) : 0.0f;
}

#endif
