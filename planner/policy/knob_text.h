/* SPDX-License-Identifier: Apache-2.0 */
/* Knobs as people write them: ":beta=20,window=32" behind the name of what has them. */
#ifndef SH_PLANNER_POLICY_KNOB_TEXT_H
#define SH_PLANNER_POLICY_KNOB_TEXT_H

#include "planner/policy/policy.h"

/* Values in the order of `knobs` (NULL: none), those not named at their start. `text` is what stands
 * behind the owner's name, from the ':' on, or empty. Unknown knobs are errors that name the nearest. */
int sh_knobs_parse(const char *owner, const struct sh_knob *knobs, const char *text, double value[SH_MAX_KNOBS],
                   struct sh_err *e);

/* "name=value,…", every knob. */
const char *sh_knobs_text(const struct sh_knob *knobs, const double *value, char text[SH_POLICY_TEXT]);

#endif
