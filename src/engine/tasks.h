/* SPDX-License-Identifier: Apache-2.0 */
/* The list of tasks, one line each; task_<name>.c exports sh_task_<name>. */
#ifndef SH_ENGINE_TASKS_H
#define SH_ENGINE_TASKS_H

#include "src/engine/task.h"

#define SH_TASKS(X) \
    X(hellaswag) \
    X(piqa) \
    X(winogrande) \
    X(mathqa) \
    X(openbookqa) \
    X(arc_easy) \
    X(copa) \
    X(lambada)

#define X(name) extern const struct sh_task sh_task_##name;
SH_TASKS(X)
#undef X

#endif
