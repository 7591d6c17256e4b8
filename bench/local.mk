# SPDX-License-Identifier: Apache-2.0
# Benchmarks are run by hand; see bench/README.md.
EXTRA_DIST += %D%/README.md %D%/avx2_only.h %D%/summary_speed.py %D%/two_builds.py %D%/eval_speed.py %D%/plan_promise.py %D%/plan_walk.py %D%/allocator_table.py %D%/busy.py %D%/fit_serving.py %D%/trace_speed.py %D%/memory.sh %D%/simulate_speed.sh %D%/capacity_peers.py %D%/long_trace.py %D%/soak.py %D%/results

# `make bench-tokenizer` builds the driver of tokenizer_speed.py; plain make does not.
EXTRA_PROGRAMS += %D%/tokenizer_encode
%C%_tokenizer_encode_SOURCES = %D%/tokenizer_encode.c
%C%_tokenizer_encode_LDADD   = libtokenizer.a libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm
bench-tokenizer: %D%/tokenizer_encode
.PHONY: bench-tokenizer
CLEANFILES += %D%/tokenizer_encode
EXTRA_DIST += %D%/reading_speed.py %D%/record_speed.py %D%/tokenizer_speed.py

# `make bench-replay`: the driver of replay_speed.py.
EXTRA_PROGRAMS += %D%/replay_speed
%C%_replay_speed_SOURCES = %D%/replay_speed.c
%C%_replay_speed_LDADD   = libreplay.a liballocator.a libpolicy.a libtraces.a libbase.a $(ZSTD_LIBS) -lpthread -lm
bench-replay: %D%/replay_speed
.PHONY: bench-replay
CLEANFILES += %D%/replay_speed
EXTRA_DIST += %D%/replay_speed.py

# `make bench-decode`: the driver of decode_speed.py.
EXTRA_PROGRAMS += %D%/decode_speed
%C%_decode_speed_SOURCES = %D%/decode_speed.c
%C%_decode_speed_CFLAGS  = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) -fno-trapping-math
%C%_decode_speed_LDADD   = libengine.a libtheory.a libreplay.a liballocator.a libpolicy.a libmodel.a libbase.a $(kernel_libs) $(JANSSON_LIBS) $(PCRE2_LIBS) -lpthread -lm
bench-decode: %D%/decode_speed
.PHONY: bench-decode
CLEANFILES += %D%/decode_speed
EXTRA_DIST += %D%/decode_speed.py %D%/llama_coded.py %D%/llama_gguf.py %D%/perplexity_peers.py

# `make bench-ranks`: the driver of ranks.sh.
EXTRA_PROGRAMS += %D%/ranks_overhead
%C%_ranks_overhead_SOURCES = %D%/ranks_overhead.c
%C%_ranks_overhead_LDADD   = libranks.a libbase.a -ldl -lpthread -lm
bench-ranks: %D%/ranks_overhead
.PHONY: bench-ranks
CLEANFILES += %D%/ranks_overhead
EXTRA_DIST += %D%/ranks.sh
# `make bench-engine`: the driver of engine_gpu.py.
EXTRA_PROGRAMS += %D%/engine_gpu
%C%_engine_gpu_SOURCES = %D%/engine_gpu.c
%C%_engine_gpu_LDADD   = libengine.a libtheory.a libreplay.a liballocator.a libpolicy.a libmodel.a libbase.a $(kernel_libs) $(JANSSON_LIBS) $(PCRE2_LIBS) -lpthread -lm
bench-engine: %D%/engine_gpu
.PHONY: bench-engine
CLEANFILES += %D%/engine_gpu
EXTRA_DIST += %D%/engine_gpu.py %D%/packed_memory.py %D%/random_coded.py %D%/random_gguf.py %D%/random_model.py
# `make bench-slots`.
EXTRA_PROGRAMS += %D%/slots_speed
%C%_slots_speed_SOURCES = %D%/slots_speed.c
%C%_slots_speed_LDADD   = $(kernel_libs) -lpthread -lm
bench-slots: %D%/slots_speed
.PHONY: bench-slots
CLEANFILES += %D%/slots_speed
# `make bench-kernels`.
EXTRA_PROGRAMS += %D%/kernels_speed
%C%_kernels_speed_SOURCES = %D%/kernels_speed.c
%C%_kernels_speed_LDADD   = $(kernel_libs) -lpthread -lm
bench-kernels: %D%/kernels_speed
.PHONY: bench-kernels
CLEANFILES += %D%/kernels_speed

# `make bench-mixture`: products of experts next to dense ones. random_experts.py makes its checkpoints.
EXTRA_PROGRAMS += %D%/mixture_speed
%C%_mixture_speed_SOURCES = %D%/mixture_speed.c
%C%_mixture_speed_LDADD   = libmodel.a libbase.a $(kernel_libs) $(JANSSON_LIBS) $(PCRE2_LIBS) -lpthread -lm
bench-mixture: %D%/mixture_speed
.PHONY: bench-mixture
CLEANFILES += %D%/mixture_speed
EXTRA_DIST += %D%/random_experts.py %D%/mixture_memory.sh %D%/gpt_oss_gguf.py

# A day at a GPU: gpu_day.sh runs gpu_day.py, by itself or out of the pack that `make gpu-pack` writes. The pack's module
# is for sm_90 alone, with PTX for newer chips, and linked without this machine's paths. GPU_PACK_EMULATED=1 packs the
# emulated module, too, and kernels/cuda.so in place of the module for sm_90, or neither where there is no nvcc.
EXTRA_DIST += %D%/gpu_day.sh %D%/gpu_day.py %D%/gpu_parts.py %D%/gpu_libraries.py %D%/gpu_environment.py \
	%D%/gpu_pack.sh %D%/torch_speed.py %D%/trace_match.py
gpu_pack_drivers  = %D%/engine_gpu %D%/slots_speed %D%/kernels_speed
gpu_pack_gencode  = -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90
gpu_pack_objects  = $(cuda_sources:kernels/cuda/%.cu=%D%/pack/%.o)
gpu_pack_name     = shears-gpu-pack$(GPU_PACK_EMULATED:1=-emulated).tar.xz
gpu_pack_emulated = $(GPU_PACK_EMULATED:1=tests/emu/modules/cuda.so)
%D%/pack/%.o: kernels/cuda/%.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_NVCC)$(NVCC) -std=c++17 $(DEFS) $(AM_CPPFLAGS) $(gpu_pack_gencode) $(NVCCFLAGS) \
	-Xcompiler -fPIC,-fvisibility=hidden -MD -MP -MF $@.d -c -o $@ $<
-include $(gpu_pack_objects:=.d)
%D%/pack/cuda.so: $(gpu_pack_objects) libbase.a
	$(AM_V_NVCC)$(NVCC) -shared $(gpu_pack_gencode) $(NVCCFLAGS) -L$$(dirname $$(dirname '$(NVCC)'))/lib64 -o $@ \
	$(gpu_pack_objects) libbase.a -lcublas -lpthread
# The pack's program is without the embedded demonstration, which would be a fifth of the pack.
%D%/pack/shears: shears libnodemo.a
	@$(MKDIR_P) $(@D)
	$(AM_V_CCLD)$(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -o $@ $(shears_OBJECTS) \
	$(shears_LDADD:libdemo.a=libnodemo.a) $(LIBS)
if WITH_CUDA
gpu_pack_module = $(if $(gpu_pack_emulated),kernels/cuda.so,%D%/pack/cuda.so)
else
gpu_pack_module = $(if $(gpu_pack_emulated),,no-nvcc)
endif
no-nvcc:
	@echo "gpu-pack needs nvcc, which configure did not find; GPU_PACK_EMULATED=1 does without" >&2; exit 1
gpu-pack: %D%/pack/shears $(gpu_tests) $(gpu_pack_drivers) $(gpu_pack_module) $(gpu_pack_emulated)
	bash $(srcdir)/%D%/gpu_pack.sh $(srcdir) $(gpu_pack_name) shears=%D%/pack/shears $(gpu_tests) $(gpu_pack_drivers) \
	$(gpu_pack_module:%=kernels/cuda.so=%) $(gpu_pack_emulated)
.PHONY: gpu-pack no-nvcc
CLEANFILES += shears-gpu-pack*.tar.xz %D%/pack/*
# `make bench-writer`: the driver of writer_speed.py.
EXTRA_PROGRAMS += %D%/writer_speed
%C%_writer_speed_SOURCES = %D%/writer_speed.c
%C%_writer_speed_LDADD   = $(trace_libs)
bench-writer: %D%/writer_speed
.PHONY: bench-writer
CLEANFILES += %D%/writer_speed
EXTRA_DIST += %D%/writer_speed.py
