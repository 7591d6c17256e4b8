# SPDX-License-Identifier: Apache-2.0
# A job in parts: shards, ranks of mpirun and srun, pipelines of layers.
noinst_LIBRARIES += libjobs.a
libjobs_a_SOURCES = \
	%D%/mpi_job.c %D%/mpi_job.h \
	%D%/shard_option.c %D%/shard_option.h \
	%D%/pipeline.c %D%/pipeline.h
