# SPDX-License-Identifier: Apache-2.0
# Figures as gnuplot scripts. A new figure is one fig_*.c here and one line in figures.h.
noinst_LIBRARIES += libplots.a
libplots_a_SOURCES = \
	%D%/fig_heads.c \
	%D%/fig_heatmap.c \
	%D%/fig_persistence.c \
	%D%/fig_persistence_grid.c \
	%D%/figure.c %D%/figure.h %D%/figures.h \
	%D%/gnuplot.c %D%/gnuplot.h \
	%D%/gp.c %D%/gp.h %D%/gp_write.c
