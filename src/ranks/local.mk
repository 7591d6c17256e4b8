# SPDX-License-Identifier: Apache-2.0
# Several processes that share work. MPI is a module, as CUDA is: the program starts where there is none.
noinst_LIBRARIES += libranks.a
libranks_a_SOURCES = \
	%D%/heartbeat.c \
	%D%/ranks.c %D%/ranks.h \
	%D%/work_queue.c

EXTRA_PROGRAMS += %D%/mpi.so
CLEANFILES += %D%/mpi.so
if WITH_MPI
module_PROGRAMS += %D%/mpi.so
endif
src_ranks_mpi_so_SOURCES = %D%/mpi.c
src_ranks_mpi_so_CFLAGS  = $(AM_CFLAGS) $(MPI_CFLAGS) -fPIC -fvisibility=hidden
src_ranks_mpi_so_LINK    = $(CC) -shared $(SH_SAN_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@
src_ranks_mpi_so_LDADD   = $(MPI_LIBS)
