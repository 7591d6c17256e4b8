# SPDX-License-Identifier: Apache-2.0
# The CUDA sources compiled for the host (include/cuda_runtime.h says how): a module like the real one,
# which the contract tests and the tests of the command line open where there is no GPU.
emu_parts   = %D%/block.cpp %D%/runtime.cpp %D%/gemm.cpp
emu_headers = %D%/block.h %D%/runtime.h %D%/fiber.h %D%/include/cublas_v2.h %D%/include/cuda_bf16.h \
	%D%/include/cuda_fp16.h %D%/include/cuda_runtime.h %D%/include/emu_block.h %D%/include/emu_math.h
EXTRA_DIST += $(emu_parts) $(emu_headers) %D%/test_emu.cpp
CLEANFILES += %D%/*.o %D%/*.d %D%/test_emu %D%/modules/cuda.so

if HAVE_CXX
emu_objects = $(emu_parts:.cpp=.emu.o)
emu_kernels = $(cuda_sources:kernels/cuda/%.cu=%D%/%.emu.o)
emu_compile = $(CXX) -std=c++17 $(DEFS) -I$(srcdir)/%D%/include -I$(srcdir)/%D% $(AM_CPPFLAGS) -O2 -g -Wall -Wextra \
	-ffp-contract=off -fPIC -fvisibility=hidden $(SH_SAN_FLAGS) -MD -MP -MF $@.d -c -o $@
AM_V_EMU    = $(am__v_EMU_@AM_V@)
am__v_EMU_  = $(am__v_EMU_@AM_DEFAULT_V@)
am__v_EMU_0 = @echo "  EMU     " $@;
am__v_EMU_1 =

%D%/%.emu.o: %D%/%.cpp
	@$(MKDIR_P) $(@D)
	$(AM_V_EMU)$(emu_compile) $<
%D%/%.emu.o: kernels/cuda/%.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_EMU)$(emu_compile) -x c++ $<
%D%/modules/cuda.so: $(emu_objects) $(emu_kernels)
	@$(MKDIR_P) $(@D)
	$(AM_V_EMU)$(CXX) -shared $(SH_SAN_FLAGS) -o $@ $(emu_objects) $(emu_kernels) -lpthread
%D%/test_emu: %D%/test_emu.emu.o $(emu_objects)
	$(AM_V_EMU)$(CXX) $(SH_SAN_FLAGS) -o $@ %D%/test_emu.emu.o $(emu_objects) -lpthread
-include $(emu_objects:=.d) $(emu_kernels:=.d)

check_DATA += %D%/modules/cuda.so
TESTS      += %D%/test_emu
endif
