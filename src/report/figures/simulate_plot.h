/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of shears simulate: --plot-latency and --plot-occupancy. */
#ifndef SH_REPORT_FIGURES_SIMULATE_PLOT_H
#define SH_REPORT_FIGURES_SIMULATE_PLOT_H

#include "plots/gp.h"
#include "src/app/simulate/simulate_closed.h"
#include "src/app/simulate/simulate_run.h"

int sh_sim_plot_latency(const struct sh_sim_study *s, const char *path, const struct sh_gp_look *look,
                        struct sh_err *e);
int sh_closed_plot_latency(const struct sh_sim_study *s, const struct sh_closed *c, const char *path,
                           const struct sh_gp_look *look, struct sh_err *e);
int sh_sim_plot_occupancy(const struct sh_sim_study *s, const char *path, const struct sh_gp_look *look,
                          struct sh_err *e);

#endif
