/* SPDX-License-Identifier: Apache-2.0 */
/* Every combination of what capacity is asked: models, boards, formats, budgets, groups of GPUs, answered. */
#ifndef SH_APP_CAPACITY_STUDY_H
#define SH_APP_CAPACITY_STUDY_H

#include "src/app/capacity/capacity_ask.h"
#include "src/app/capacity/capacity_names.h"
#include "src/app/capacity/capacity_plan.h"
#include "src/app/capacity/capacity_quality.h"
#include "src/app/capacity/capacity_row.h"

extern const struct sh_capacity_args sh_capacity_defaults;

/* Everything that is asked: models x boards x tp x formats x budgets. */
struct sh_capacity_study {
    const struct sh_capacity_args *args;
    struct sh_capacity_settings settings;
    struct sh_capacity_names names;
    struct sh_kv_shape *model;
    struct sh_gpu *board;
    struct sh_kv_shape draft;
    int n_model, n_board;
    struct sh_capacity_row *row;
    int n_row;
    struct sh_capacity_answer answer;   /* the last one, whole                                     */
    struct sh_capacity_ask ask;         /* its question                                           */
    uint64_t *layers;                   /* and what its budget points at                           */
    struct sh_plan plan;
    struct sh_quality_point *point;     /* of the store                                           */
    int n_point;
    char **evidence;                    /* lines that rows point at                                */
    int n_evidence;
};

/* Reads and answers; rows are in the order asked. The arguments must outlive it. -1: sh_capacity_study_clear is
 * still due. */
int sh_capacity_study(struct sh_capacity_study *s, struct sh_capacity_args *a, struct sh_err *e);
void sh_capacity_study_sort(struct sh_capacity_study *s);
void sh_capacity_study_clear(struct sh_capacity_study *s);

#endif
