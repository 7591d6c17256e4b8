# SPDX-License-Identifier: Apache-2.0
# A job in parts: shards, ranks of mpirun and srun, pipelines of layers.
noinst_LIBRARIES += libjobs.a
libjobs_a_SOURCES = \
	%D%/cluster.c %D%/cluster.h \
	%D%/part.c %D%/part.h \
	%D%/pipeline.c %D%/pipeline.h
