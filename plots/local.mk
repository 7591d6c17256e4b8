# SPDX-License-Identifier: Apache-2.0
# Figures as gnuplot scripts. A new figure is fig_<name>.c, with the header of its data, and one line in figures.h.
noinst_LIBRARIES += libplots.a
libplots_a_SOURCES = \
	%D%/chart.c %D%/chart.h \
	%D%/curves.h \
	%D%/fig_allocation.c %D%/fig_allocation.h \
	%D%/fig_budget_curve.c \
	%D%/fig_capacity.c \
	%D%/fig_compression.c \
	%D%/fig_drift.c \
	%D%/fig_dropped_mass.c %D%/fig_dropped_mass.h \
	%D%/fig_frontier.c \
	%D%/fig_heads.c %D%/fig_heads.h \
	%D%/fig_heatmap.c %D%/fig_heatmap.h \
	%D%/fig_latency.c \
	%D%/fig_leaderboard.c \
	%D%/fig_occupancy.c \
	%D%/fig_persistence.c %D%/fig_persistence.h \
	%D%/fig_persistence_grid.c %D%/fig_persistence_grid.h \
	%D%/fig_quant.c \
	%D%/fig_score_change.c \
	%D%/figure.c %D%/figure.h %D%/figures.h \
	%D%/gnuplot.c %D%/gnuplot.h \
	%D%/gp.c %D%/gp.h %D%/gp_axis.c %D%/gp_write.c \
	%D%/measured.c %D%/measured.h \
	%D%/score_map.c %D%/score_map.h \
	%D%/svg.c %D%/svg.h
