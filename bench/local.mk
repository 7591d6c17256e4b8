# SPDX-License-Identifier: Apache-2.0
# Benchmarks are run by hand; see bench/README.md.
EXTRA_DIST += %D%/README.md %D%/trace_speed.py %D%/memory.sh %D%/simulate_speed.sh %D%/capacity_peers.py %D%/long_trace.py %D%/soak.py %D%/results

# `make bench-tokenizer` builds the driver of tokenizer_speed.py; plain make does not.
EXTRA_PROGRAMS += %D%/tokenizer_encode
%C%_tokenizer_encode_SOURCES = %D%/tokenizer_encode.c
%C%_tokenizer_encode_LDADD   = libtokenizer.a libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm
bench-tokenizer: %D%/tokenizer_encode
.PHONY: bench-tokenizer
CLEANFILES += %D%/tokenizer_encode
EXTRA_DIST += %D%/tokenizer_speed.py

# `make bench-replay`: the driver of replay_speed.py.
EXTRA_PROGRAMS += %D%/replay_speed
%C%_replay_speed_SOURCES = %D%/replay_speed.c
%C%_replay_speed_LDADD   = libreplay.a libtraces.a libbase.a $(ZSTD_LIBS) -lpthread -lm
bench-replay: %D%/replay_speed
.PHONY: bench-replay
CLEANFILES += %D%/replay_speed
EXTRA_DIST += %D%/replay_speed.py

# `make bench-decode`: the driver of decode_speed.py.
EXTRA_PROGRAMS += %D%/decode_speed
%C%_decode_speed_SOURCES = %D%/decode_speed.c
%C%_decode_speed_CFLAGS  = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) -fno-trapping-math
%C%_decode_speed_LDADD   = libengine.a libplanner.a libreplay.a libmodel.a libbase.a $(kernel_libs) $(JANSSON_LIBS) -lpthread -lm
bench-decode: %D%/decode_speed
.PHONY: bench-decode
CLEANFILES += %D%/decode_speed
EXTRA_DIST += %D%/decode_speed.py

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
%C%_engine_gpu_LDADD   = libengine.a libplanner.a libreplay.a libmodel.a libbase.a $(kernel_libs) $(JANSSON_LIBS) -lpthread -lm
bench-engine: %D%/engine_gpu
.PHONY: bench-engine
CLEANFILES += %D%/engine_gpu
EXTRA_DIST += %D%/engine_gpu.py %D%/random_model.py
# `make bench-slots`.
EXTRA_PROGRAMS += %D%/slots_speed
%C%_slots_speed_SOURCES = %D%/slots_speed.c
%C%_slots_speed_LDADD   = $(kernel_libs) -lpthread -lm
bench-slots: %D%/slots_speed
.PHONY: bench-slots
CLEANFILES += %D%/slots_speed
