/* SPDX-License-Identifier: Apache-2.0 */
/* shears eval --task: few-shot tasks read under a KV budget. */
#ifndef SH_APP_EVAL_TASKS_H
#define SH_APP_EVAL_TASKS_H

#include "src/base/common.h"
#include "src/app/common/live_session.h"

struct sh_task_request {
    struct sh_live_options live;
    const char *task, *data, *shots_data, *items;       /* items: a file for what was scored; NULL    */
    const struct sh_list *policy, *budget;
    long long shots, count;                             /* count 0: every record                      */
    const char *db;                                     /* NULL: nothing is kept                      */
    int force, timing;
};

/* Puts the answer into o. */
int sh_eval_tasks(const struct sh_task_request *q, const struct sh_common *common, struct sh_out *o, struct sh_err *e);

#endif
