# SPDX-License-Identifier: Apache-2.0
# What follows from recorded attention; pure arithmetic, no I/O.
noinst_LIBRARIES += libplanner.a
libplanner_a_SOURCES = \
	%D%/persistence.c %D%/persistence.h
