# SPDX-License-Identifier: Apache-2.0
# Figures as gnuplot scripts. A new figure is fig_<name>.c and one line in figure.h, its data a struct in fig_data.h.
noinst_LIBRARIES += libplots.a
libplots_a_SOURCES = \
	%D%/fig_allocation.c \
	%D%/fig_budget_curve.c \
	%D%/fig_capacity.c \
	%D%/fig_charts.c \
	%D%/fig_data.h \
	%D%/fig_dropped_mass.c \
	%D%/fig_heads.c \
	%D%/fig_heatmap.c \
	%D%/fig_leaderboard.c \
	%D%/fig_measured.c \
	%D%/fig_persistence.c \
	%D%/fig_persistence_grid.c \
	%D%/figure.c %D%/figure.h \
	%D%/gnuplot.c %D%/gnuplot.h \
	%D%/gp.c %D%/gp.h %D%/gp_axis.c %D%/gp_grid.c %D%/gp_write.c \
	%D%/score_map.c %D%/score_map.h \
	%D%/svg.c
