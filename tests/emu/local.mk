# SPDX-License-Identifier: Apache-2.0
# CUDA on the host: a library that emulates the runtime and cuBLAS, its test, and the CUDA backend's
# sources compiled against it into a module like the real one, for the tests that need a device. No
# contraction: the kernels' operations are rounded one by one, as __fmul_rn and its kin say.
if HAVE_CXX
emu_cppflags = -I$(srcdir)/%D%/include $(AM_CPPFLAGS) -D_GNU_SOURCE
emu_plain    = -std=c++17 -Wall -Wextra -Wno-unknown-pragmas -fPIC -fvisibility=hidden -ffp-contract=off \
	$(UNTRACKED_CFLAGS)
emu_cxxflags = $(emu_plain) $(SH_SAN_FLAGS)
emu_headers  = \
	%D%/include/cublas_v2.h %D%/include/cuda_bf16.h %D%/include/cuda_fp16.h %D%/include/cuda_runtime.h \
	%D%/include/emu/device.h %D%/include/emu/launch.h %D%/include/emu/shared.h

check_LIBRARIES += libemu.a
libemu_a_CPPFLAGS = $(emu_cppflags)
libemu_a_CXXFLAGS = $(emu_plain) $(SH_EMU_SAN_FLAGS) -ftree-vectorize -fvect-cost-model=dynamic
libemu_a_SOURCES  = $(emu_headers) \
	%D%/blas.cpp %D%/blas.h \
	%D%/block.cpp %D%/block.h \
	%D%/call.h \
	%D%/copy.cpp \
	%D%/emu.h \
	%D%/fail.cpp \
	%D%/fiber.cpp %D%/fiber.h \
	%D%/gemm.cpp \
	%D%/graph.cpp \
	%D%/guard.cpp %D%/guard.h \
	%D%/launch.cpp \
	%D%/leaks.cpp \
	%D%/memory.cpp %D%/memory.h \
	%D%/race.cpp \
	%D%/running.h \
	%D%/runtime.cpp \
	%D%/settings.cpp %D%/settings.h \
	%D%/stream.cpp %D%/stream.h \
	%D%/warp.cpp

check_PROGRAMS += %D%/test_emu
TESTS          += %D%/test_emu
tests_emu_test_emu_SOURCES  = %D%/test_device.cpp %D%/test_emu.cpp %D%/test_emu.h \
	%D%/test_faults.cpp %D%/test_runtime.cpp %D%/test_streams.cpp
tests_emu_test_emu_CPPFLAGS = $(emu_cppflags)
tests_emu_test_emu_CXXFLAGS = $(emu_cxxflags)
tests_emu_test_emu_LDADD    = libemu.a -lpthread

# The module is linked whole, for the functions that only a test asks for.
emu_objects = $(cuda_sources:kernels/cuda/%.cu=%D%/modules/%.o)
CLEANFILES += %D%/modules/*.o %D%/modules/*.d %D%/modules/slots/*.o %D%/modules/slots/*.d
AM_V_EMU    = $(am__v_EMU_@AM_V@)
am__v_EMU_  = $(am__v_EMU_@AM_DEFAULT_V@)
am__v_EMU_0 = @echo "  EMU     " $@;
am__v_EMU_1 =
%D%/modules/%.o: kernels/cuda/%.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_EMU)$(CXX) $(DEFS) $(emu_cppflags) $(emu_cxxflags) $(CXXFLAGS) -MD -MP -MF $@.d -c -o $@ -x c++ $<
-include $(emu_objects:=.d)

check_PROGRAMS += %D%/modules/cuda.so
tests_emu_modules_cuda_so_SOURCES      =
tests_emu_modules_cuda_so_DEPENDENCIES = libemu.a libbase.a $(emu_objects)
tests_emu_modules_cuda_so_LINK         = $(CXX) -shared $(SH_SAN_FLAGS) $(CXXFLAGS) $(LDFLAGS) -o $@ $(emu_objects) \
	-Wl,--whole-archive libemu.a -Wl,--no-whole-archive libbase.a -Wl,-z,defs -lpthread
endif
