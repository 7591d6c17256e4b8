# SPDX-License-Identifier: Apache-2.0
# The backends. The CPU's loops are compiled once per instruction set (cpu/variant.c asks for what is
# compiled with here). AVX-VNNI uses AVX2's loops and AMX uses AVX-512's, except the few listed below. The
# user's CFLAGS come last and may say -O2, so what the loops need is asked for by name.
noinst_LIBRARIES += libkernels.a
libkernels_a_SOURCES = \
	%D%/backend.h %D%/load.c %D%/load.h %D%/slots.h \
	%D%/cpu/cpu.c %D%/cpu/cpu.h %D%/cpu/halves.c \
	%D%/cpu/linear.c %D%/cpu/onednn.h \
	%D%/cpu/variant.c %D%/cpu/variant.h \
	%D%/cpu/weight.c %D%/cpu/weight_codes.c \
	%D%/packed.h %D%/round_x.h %D%/weight_bits.h
libkernels_a_CFLAGS   = $(AM_CFLAGS) $(VECTORIZE_CFLAGS)

cpu_variant_sources = \
	%D%/cpu/attend.c %D%/cpu/attend.h %D%/cpu/attend_lanes.c \
	%D%/cpu/conv.c \
	%D%/cpu/delta.c \
	%D%/cpu/scan.c \
	%D%/cpu/lru.c \
	%D%/cpu/gemm_few_rows.c %D%/cpu/gemm_few_rows.h %D%/cpu/gemm_few_rows_out.h \
	%D%/cpu/gemm_many_rows.c \
	%D%/cpu/gemm_packed.c %D%/cpu/gemm_packed_lanes.c %D%/cpu/gemm_packed_lanes_row.c \
	%D%/cpu/gemm_packed_row.c %D%/cpu/packed_dots.h %D%/cpu/packed_lanes.h %D%/cpu/lane_run.h %D%/cpu/lane_dot.h \
	%D%/cpu/lanes.h %D%/cpu/packed_bytes.h %D%/cpu/points_lanes.h %D%/cpu/row_words.h %D%/cpu/unpack.h %D%/cpu/unpack_points.h \
	%D%/cpu/group_codes.h %D%/cpu/packed_group.c %D%/cpu/packed_group.h \
	%D%/cpu/gemm_few_rows_bf16.c \
	%D%/cpu/gemm_few_rows_codes.c \
	%D%/cpu/floats.h \
	%D%/cpu/ops.c \
	%D%/cpu/record.c \
	%D%/cpu/vector.h
cpu_variant_cflags  = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) $(PEEL_CFLAGS) $(UNTRACKED_CFLAGS) \
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
cpu_avx512_cflags      = $(cpu_variant_cflags) -DCPU_FLOATS=16 -DCPU_HAS_BF16 \
	-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mprefer-vector-width=512
libcpuavx512_a_CFLAGS  = $(cpu_avx512_cflags) -DCPU_VARIANT=avx512
cpu_variant_libs += libcpuavx2.a libcpuavx512.a
endif
if AVXVNNI_VARIANT
AM_CPPFLAGS += -DSH_AVXVNNI_VARIANT
noinst_LIBRARIES += libcpuavxvnni.a
libcpuavxvnni_a_SOURCES = %D%/cpu/gemm_packed_lanes.c %D%/cpu/gemm_packed_lanes_row.c
libcpuavxvnni_a_CFLAGS  = $(cpu_variant_cflags) -DCPU_VARIANT=avxvnni -DCPU_FLOATS=8 -mavx2 -mfma -mf16c -mavxvnni
cpu_variant_libs += libcpuavxvnni.a
endif
if AMX_VARIANT
AM_CPPFLAGS += -DSH_AMX_VARIANT
noinst_LIBRARIES += libcpuamx.a
libcpuamx_a_SOURCES    = \
	%D%/cpu/amx.h %D%/cpu/attend.c %D%/cpu/attend_amx.c %D%/cpu/gemm_few_rows_amx.c %D%/cpu/record.c
libcpuamx_a_CFLAGS     = $(cpu_avx512_cflags) -DCPU_VARIANT=amx -DCPU_HAS_AMX -mamx-tile -mamx-bf16
cpu_variant_libs += libcpuamx.a
endif

kernel_libs = libkernels.a $(cpu_variant_libs) librows.a libbase.a $(DNNL_LIBS) -ldl -lm

# The CUDA backend is a module: a program that is linked shared, without libtool. Its sources are always
# in the tarball and are compiled for the host by tests/emu; the module is built where there is nvcc.
# nvcc gets none of CFLAGS and LDFLAGS (it does not know hardening and sanitizer flags): NVCCFLAGS is
# the user's. Objects follow headers, not flags: after changing flags, make clean.
cuda_sources = \
	%D%/cuda/attend.cu \
	%D%/cuda/conv.cu \
	%D%/cuda/delta.cu \
	%D%/cuda/scan.cu \
	%D%/cuda/lru.cu \
	%D%/cuda/device.cu \
	%D%/cuda/drain.cu \
	%D%/cuda/embed.cu \
	%D%/cuda/few_rows.cu \
	%D%/cuda/graph.cu \
	%D%/cuda/linear.cu \
	%D%/cuda/memory.cu \
	%D%/cuda/ops.cu \
	%D%/cuda/packed.cu \
	%D%/cuda/sets.cu \
	%D%/cuda/slots/slots.cu \
	%D%/cuda/slots/slots_attend.cu \
	%D%/cuda/slots/slots_block.cu \
	%D%/cuda/slots/slots_room.cu \
	%D%/cuda/slots/slots_rows.cu \
	%D%/cuda/spans.cu \
	%D%/cuda/stage.cu \
	%D%/cuda/tile.cu \
	%D%/cuda/weight.cu \
	%D%/cuda/weight_codes.cu
cuda_headers = \
	%D%/cuda/cuda.cuh \
	%D%/cuda/device.cuh \
	%D%/cuda/numbers.cuh \
	%D%/cuda/packed.cuh %D%/cuda/packing.cuh %D%/cuda/points.cuh \
	%D%/cuda/slots/slots.cuh \
	%D%/cuda/slots/slots_evict.cuh \
	%D%/cuda/slots/slots_unpack.cuh \
	%D%/cuda/tile.cuh

SUFFIXES = .cu
EXTRA_PROGRAMS += %D%/cuda.so
CLEANFILES += %D%/cuda.so %D%/cuda/*.d %D%/cuda/slots/*.d
if WITH_CUDA
module_PROGRAMS += %D%/cuda.so
endif
kernels_cuda_so_SOURCES = $(cuda_sources) $(cuda_headers)
kernels_cuda_so_LINK    = $(NVCC) -shared $(CUDA_GENCODE) $(NVCCFLAGS) $(CUDA_LDFLAGS) -o $@
kernels_cuda_so_LDADD   = libbase.a -lcublas -lpthread
AM_V_NVCC   = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
.cu.o:
	@$(MKDIR_P) $(@D)
	$(AM_V_NVCC)$(NVCC) -std=c++17 $(DEFS) $(AM_CPPFLAGS) $(CUDA_GENCODE) $(NVCCFLAGS) \
	-Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra -Werror all-warnings -MD -MP -MF $@.d -c -o $@ $<
-include $(cuda_sources:.cu=.o.d)
