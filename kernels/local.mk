# SPDX-License-Identifier: Apache-2.0
# The backends. The loops in attend.c and rows.c are compiled once per instruction set. The user's
# CFLAGS come last and may say -O2, so what the loops need is asked for by name.
noinst_LIBRARIES += libkernels.a
libkernels_a_SOURCES = \
	%D%/backend.h %D%/find.c \
	%D%/cpu/cpu.c %D%/cpu/cpu.h \
	%D%/cpu/linear.c \
	%D%/cpu/variant.c %D%/cpu/variant.h

cpu_variant_sources = %D%/cpu/attend.c %D%/cpu/rows.c %D%/cpu/vector.h
cpu_variant_cflags  = $(AM_CFLAGS) -ftree-vectorize -fvect-cost-model=dynamic -fpeel-loops \
	-fno-math-errno -fno-trapping-math -ffp-contract=fast

noinst_LIBRARIES += libcpubase.a
libcpubase_a_SOURCES = $(cpu_variant_sources)
libcpubase_a_CFLAGS  = $(cpu_variant_cflags) -DCPU_VARIANT=base -DCPU_FLOATS=4
cpu_variant_libs = libcpubase.a

if X86_VARIANTS
AM_CPPFLAGS += -DSH_X86_VARIANTS
noinst_LIBRARIES += libcpuavx2.a libcpuavx512.a
libcpuavx2_a_SOURCES   = $(cpu_variant_sources)
libcpuavx2_a_CFLAGS    = $(cpu_variant_cflags) -DCPU_VARIANT=avx2 -DCPU_FLOATS=8 -mavx2 -mfma -mf16c
libcpuavx512_a_SOURCES = $(cpu_variant_sources)
libcpuavx512_a_CFLAGS  = $(cpu_variant_cflags) -DCPU_VARIANT=avx512 -DCPU_FLOATS=16 \
	-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprefer-vector-width=512
cpu_variant_libs += libcpuavx2.a libcpuavx512.a
endif

kernel_libs = libkernels.a $(cpu_variant_libs) libbase.a $(DNNL_LIBS) -lm
