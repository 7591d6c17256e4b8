# SPDX-License-Identifier: Apache-2.0
# The report and what its figures draw, read from stores.
noinst_LIBRARIES += libreport.a
libreport_a_SOURCES = \
	%D%/answer.c %D%/answer.h \
	%D%/answer_plan.c %D%/answer_plan.h \
	%D%/report.h \
	%D%/report_allocation.c \
	%D%/report_answer.c \
	%D%/report_capacity.c \
	%D%/report_drift.c \
	%D%/report_model.c %D%/report_model.h \
	%D%/report_models.c \
	%D%/report_orderless.c \
	%D%/report_page.c \
	%D%/report_paper.c \
	%D%/report_persistence.c \
	%D%/report_policies.c \
	%D%/report_quality.c \
	%D%/report_quantisation.c \
	%D%/report_repetition.c \
	%D%/report_results.c %D%/report_results.h \
	%D%/report_serving.c \
	%D%/report_style.h \
	%D%/report_theory.c \
	%D%/report_traced.c \
	%D%/report_weights.c \
	%D%/report_write.c \
	%D%/reproduce_show.c %D%/reproduce_show.h \
	%D%/figures/capacity_plot.c %D%/figures/capacity_plot.h \
	%D%/figures/figure_curves.c \
	%D%/figures/figure_data.c %D%/figures/figure_data.h \
	%D%/figures/figure_drift.c \
	%D%/figures/figure_dropped.c \
	%D%/figures/figure_evals.c \
	%D%/figures/figure_maps.c \
	%D%/figures/figure_persistence.c %D%/figures/figure_persistence.h \
	%D%/figures/figure_plan.c \
	%D%/figures/latency.c %D%/figures/latency.h \
	%D%/figures/simulate_plot.c %D%/figures/simulate_plot.h
libreport_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
