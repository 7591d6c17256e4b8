/* SPDX-License-Identifier: Apache-2.0 */
/* What the clock predicts for measured servers, and the fit of an engine's constants to them. */
#ifndef SH_APP_CALIBRATE_H
#define SH_APP_CALIBRATE_H

#include "src/app/calibrate/serving_runs.h"
#include "src/app/capacity/capacity_names.h"
#include "src/app/common/serving.h"
#include "src/base/common.h"

/* A run as the simulator takes it. */
struct sh_calibrate_run {
    const struct sh_serving_run *run;
    const struct sh_kv_shape *shape;
    struct sh_gpu board;
    enum sh_generation generation;
    int is_measured;                    /* was its generation measured?                           */
    double ttft_s, tpot_s;              /* predicted                                              */
};

struct sh_calibrate {
    struct sh_serving_runs runs;
    struct sh_capacity_names names;
    struct sh_calibrate_run *at;        /* [runs.n]                                               */
    struct sh_kv_shape *shape;          /* [n_shape], one for each model                          */
    const char **shape_of;              /* their names                                            */
    int n_shape;
    struct sh_engine engine[SH_N_SCHED];
    int has_engine[SH_N_SCHED];
};

/* Reads files of benchmarks (serving_runs.h), engines by name or file (at most one for each scheduler; none: the
 * built-in ones), and files with more GPUs and models, or NULL. Clear in any case. */
int sh_calibrate_open(struct sh_calibrate *c, const struct sh_list *files, const char *engines,
                      const struct sh_serving_run *server, const char *gpus, const char *models, struct sh_err *e);
void sh_calibrate_clear(struct sh_calibrate *c);

/* Simulates every run. -1: a run cannot be simulated, and e says why; with `skip`, its times are NaN instead. */
int sh_calibrate_predict(struct sh_calibrate *c, int skip, struct sh_err *e);

/* Mean absolute relative error of the predicted times. Runs without a time are left out; NaN if there are no others. */
struct sh_calibrate_error { int tpot_n, ttft_n; double tpot, ttft; };
struct sh_calibrate_error sh_calibrate_error(const struct sh_calibrate *c);

/* Groups of constants, each of which a fit multiplies by one factor (calibrate_fit.c). */
enum sh_calibrate_group {
    SH_GROUP_MEMORY, SH_GROUP_PRODUCTS, SH_GROUP_PROMPTS, SH_GROUP_LAYERS, SH_GROUP_SUMS, SH_GROUP_HOST,
    SH_GROUP_REQUESTS, SH_N_GROUP
};
extern const char *const sh_calibrate_group_names[SH_N_GROUP];

/* Fits a factor of the *time* of each group, such that the sum of the logarithmic errors, large ones counted less, and
 * of the factors' own distance from 1 is least: Gauss-Newton steps from 1, the same for the same runs. A factor about
 * which the runs say nothing stays near 1. All runs are of one engine and one generation. Afterwards c->engine is the
 * fitted engine, and the predictions are those of this engine. */
int sh_calibrate_fit(struct sh_calibrate *c, double factor[SH_N_GROUP], struct sh_err *e);

#endif
