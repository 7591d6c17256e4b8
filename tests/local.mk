# SPDX-License-Identifier: Apache-2.0
# Unit tests (CUnit) link only the libraries that their subject may use; CLI tests drive the program.
TEST_EXTENSIONS = .sh
LOG_DRIVER     = env AM_TAP_AWK='$(AWK)' bash $(top_srcdir)/%D%/timed.sh $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER  = $(LOG_DRIVER)
SH_LOG_COMPILER = bash
# How long each took, the slowest first.
check-local: check-TESTS
	@bash $(srcdir)/%D%/timed.sh --table 20 $(TEST_LOGS:.log=.seconds)
MOSTLYCLEANFILES = $(TEST_LOGS:.log=.seconds)
EXTRA_DIST += %D%/timed.sh %D%/later.sh
# The contract tests' module: the CUDA sources compiled for the host.
if HAVE_CXX
emulated_module = $(abs_top_builddir)/%D%/emu/modules/cuda.so
endif
# Tests run at the same time: a thread that waits long for another one would take the processor from it.
# At a wait the emulation lets the other streams run first here, and runs them last in tests/cli/cuda.sh.
# Where undefined behaviour is a trap, AddressSanitizer says where it was.
AM_TESTS_ENVIRONMENT = \
	ASAN_OPTIONS="$${ASAN_OPTIONS:+$$ASAN_OPTIONS:}handle_sigill=1"; export ASAN_OPTIONS; \
	SH_EMU_STREAMS="$${SH_EMU_STREAMS-others}"; export SH_EMU_STREAMS; \
	GOMP_SPINCOUNT="$${GOMP_SPINCOUNT-2000}"; export GOMP_SPINCOUNT; \
	SH_TEST_FULL="$${SH_TEST_FULL-1}"; export SH_TEST_FULL; \
	SH_TEST_MODULE="$${SH_TEST_MODULE-$(emulated_module)}"; export SH_TEST_MODULE; \
	SH_SANITIZED='$(SH_SAN_FLAGS)'; export SH_SANITIZED; \
	SHEARS='$(abs_top_builddir)/shears'; export SHEARS; \
	SH_TOP='$(abs_top_srcdir)'; export SH_TOP; \
	SH_GOLDEN='$(abs_top_srcdir)/tests/golden'; export SH_GOLDEN; \
	SH_FAKE='$(abs_top_builddir)/tests/fake'; export SH_FAKE; \
	SH_FAULTS_SO='$(abs_top_builddir)/tests/faults/faults.so'; export SH_FAULTS_SO; \
	SH_FIXTURES="$${SH_FIXTURES-$(abs_top_srcdir)/../shared/fixtures}"; export SH_FIXTURES;

if HAVE_CUNIT
check_LIBRARIES += libtap.a
libtap_a_SOURCES = %D%/tap.c %D%/tap.h
libtap_a_CFLAGS  = $(AM_CFLAGS) $(CUNIT_CFLAGS)

unit_tests = \
	%D%/unit/test_base \
	%D%/unit/test_team \
	%D%/unit/test_stats \
	%D%/unit/test_stats_sets \
	%D%/unit/test_persistence \
	%D%/unit/test_safetensors \
	%D%/unit/test_model

tests_unit_test_base_SOURCES = %D%/unit/test_base.c
tests_unit_test_base_LDADD   = libbase.a libtap.a $(CUNIT_LIBS) -lm
tests_unit_test_team_SOURCES = %D%/unit/test_team.c
tests_unit_test_team_LDADD   = libbase.a libtap.a $(CUNIT_LIBS) -lm -lpthread

tests_unit_test_row_variants_SOURCES = %D%/unit/test_row_variants.c
tests_unit_test_row_variants_LDADD   = libbase.a libtap.a $(CUNIT_LIBS) -lm
unit_tests += %D%/unit/test_row_variants

tests_unit_test_file_SOURCES = %D%/unit/test_file.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_file_LDADD   = libbase.a libtap.a $(CUNIT_LIBS) -lm
unit_tests += %D%/unit/test_file

tests_unit_test_host_memory_SOURCES = %D%/unit/test_host_memory.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_host_memory_LDADD   = libbase.a libtap.a $(CUNIT_LIBS) -lm
unit_tests += %D%/unit/test_host_memory

tests_unit_test_safetensors_SOURCES = %D%/unit/test_safetensors.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_safetensors_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_unit_test_torch_file_SOURCES = %D%/unit/test_torch_file.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_torch_file_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
unit_tests += %D%/unit/test_torch_file
tests_unit_test_gguf_SOURCES = %D%/unit/test_gguf.c %D%/unit/blocks.c %D%/unit/blocks.h %D%/unit/reference.c \
	%D%/unit/reference.h \
	%D%/unit/pass.c %D%/unit/pass.h %D%/unit/scratch.c %D%/unit/scratch.h $(contract_sources)
tests_unit_test_gguf_LDADD   = $(tests_unit_test_forward_LDADD)
tests_unit_test_coded_SOURCES = %D%/unit/test_coded.c %D%/unit/blocks.c %D%/unit/blocks.h %D%/unit/coded_folder.c \
	%D%/unit/coded_folder.h %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_coded_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_unit_test_coded_blocks_SOURCES = %D%/unit/test_coded_blocks.c %D%/unit/coded_folder.c %D%/unit/coded_folder.h
tests_unit_test_coded_blocks_LDADD = $(tests_unit_test_coded_LDADD)
unit_tests += %D%/unit/test_coded %D%/unit/test_coded_blocks
EXTRA_DIST += %D%/golden/coded %D%/oracle/coded.py %D%/oracle/coded_blocks.py %D%/oracle/coded_models.py \
	%D%/oracle/fuzz_experts.py %D%/oracle/fuzz_gguf_modern.py
tests_unit_test_gguf_refused_SOURCES = %D%/unit/test_gguf_refused.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_gguf_refused_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
unit_tests += %D%/unit/test_gguf %D%/unit/test_gguf_refused
tests_unit_test_model_SOURCES = %D%/unit/test_model.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_model_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm

tokenizer_golden = %D%/unit/tokenizer_golden.c %D%/unit/tokenizer_golden.h %D%/unit/base64.h
tests_unit_test_tokenizer_SOURCES = %D%/unit/test_tokenizer.c $(tokenizer_golden) %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_tokenizer_LDADD   = libtokenizer.a libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) \
	$(UTF8PROC_LIBS) -lpthread -lm
tests_unit_test_tokenizer_files_SOURCES = %D%/unit/test_tokenizer_files.c $(tokenizer_golden) %D%/unit/scratch.c \
	%D%/unit/scratch.h
tests_unit_test_tokenizer_files_LDADD   = $(tests_unit_test_tokenizer_LDADD)
tests_unit_test_tokenizer_model_SOURCES = %D%/unit/test_tokenizer_model.c $(tokenizer_golden) \
	%D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_tokenizer_model_LDADD   = $(tests_unit_test_tokenizer_LDADD)
tests_unit_test_tokenizer_arrays_SOURCES = %D%/unit/test_tokenizer_arrays.c $(tokenizer_golden)
tests_unit_test_tokenizer_arrays_LDADD   = $(tests_unit_test_tokenizer_LDADD)
tests_unit_test_tokenizer_real_SOURCES = %D%/unit/test_tokenizer_real.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_tokenizer_real_LDADD   = $(tests_unit_test_tokenizer_LDADD)

tests_unit_test_tokenizer_ranks_SOURCES = %D%/unit/test_tokenizer_ranks.c $(tokenizer_golden) %D%/unit/scratch.c \
	%D%/unit/scratch.h
tests_unit_test_tokenizer_ranks_LDADD   = $(tests_unit_test_tokenizer_LDADD)
unit_tests += %D%/unit/test_tokenizer_ranks
tests_unit_test_tok_gguf_SOURCES = %D%/unit/test_tok_gguf.c $(tokenizer_golden) %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_tok_gguf_LDADD   = $(tests_unit_test_tokenizer_LDADD)
unit_tests += %D%/unit/test_tok_gguf
unit_tests += %D%/unit/test_tokenizer %D%/unit/test_tokenizer_files %D%/unit/test_tokenizer_model \
	%D%/unit/test_tokenizer_arrays %D%/unit/test_tokenizer_real

tests_unit_test_stats_SOURCES = %D%/unit/test_stats.c %D%/unit/heads.c %D%/unit/heads.h
tests_unit_test_stats_LDADD   = libstats.a librows.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
tests_unit_test_stats_sets_SOURCES = %D%/unit/test_stats_sets.c %D%/unit/heads.c %D%/unit/heads.h \
	%D%/unit/row_sets.c %D%/unit/row_sets.h
tests_unit_test_stats_sets_LDADD   = $(tests_unit_test_stats_LDADD)
tests_unit_test_persistence_SOURCES = %D%/unit/test_persistence.c %D%/unit/heads.c %D%/unit/heads.h
tests_unit_test_persistence_LDADD   = libtheory.a libstats.a librows.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm

tests_unit_test_replay_SOURCES = %D%/unit/test_replay.c
tests_unit_test_replay_LDADD   = libreplay.a liballocator.a libpolicy.a libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
unit_tests += %D%/unit/test_replay
tests_unit_test_replay_stack_SOURCES = %D%/unit/test_replay_stack.c
tests_unit_test_replay_stack_LDADD   = libreplay.a liballocator.a libpolicy.a libbase.a libtap.a $(CUNIT_LIBS) -lm
unit_tests += %D%/unit/test_replay_stack
tried_policies = %D%/unit/tried_policies.c %D%/unit/tried_policies.h
tests_unit_test_policies_SOURCES = %D%/unit/test_policies.c %D%/unit/policy_story.c %D%/unit/policy_story.h \
	$(tried_policies)
tests_unit_test_policies_LDADD   = libreplay.a liballocator.a libpolicy.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
tests_unit_test_policy_text_SOURCES = %D%/unit/test_policy_text.c
tests_unit_test_policy_text_LDADD   = libreplay.a liballocator.a libpolicy.a libbase.a libtap.a $(CUNIT_LIBS) -lm
tests_unit_test_scissorhands_SOURCES = %D%/unit/test_scissorhands.c
tests_unit_test_scissorhands_LDADD   = $(tests_unit_test_policy_text_LDADD)
unit_tests += %D%/unit/test_policies %D%/unit/test_policy_text %D%/unit/test_scissorhands
EXTRA_DIST += %D%/golden/policies %D%/oracle/policies.py %D%/oracle/replay_rows.py

tests_unit_test_allocators_SOURCES = %D%/unit/test_allocators.c
tests_unit_test_allocators_LDADD   = libreplay.a liballocator.a libpolicy.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
unit_tests += %D%/unit/test_allocators
EXTRA_DIST += %D%/golden/allocators.json %D%/oracle/allocators.py

tests_unit_test_plan_bound_SOURCES = %D%/unit/test_plan_bound.c
tests_unit_test_plan_bound_LDADD   = libapp.a liballocator.a libpolicy.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
unit_tests += %D%/unit/test_plan_bound
EXTRA_DIST += %D%/golden/plan_bounds.json %D%/oracle/plan_bounds.py

tests_unit_test_powerlaw_SOURCES = %D%/unit/test_powerlaw.c %D%/unit/heads.c %D%/unit/heads.h
tests_unit_test_powerlaw_LDADD   = libtheory.a libstats.a librows.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
tests_unit_test_theory_SOURCES = %D%/unit/test_theory.c %D%/unit/heads.c %D%/unit/heads.h
tests_unit_test_theory_LDADD   = $(tests_unit_test_powerlaw_LDADD)
unit_tests += %D%/unit/test_powerlaw %D%/unit/test_theory
EXTRA_DIST += %D%/golden/theory %D%/oracle/theory.py

tests_unit_test_plots_SOURCES = %D%/unit/test_plots.c %D%/unit/plot_data.c %D%/unit/plot_data.h
tests_unit_test_plots_LDADD   = libplots.a libbase.a libtap.a $(CUNIT_LIBS) -lm

unit_tests += %D%/unit/test_plots
tests_unit_test_charts_SOURCES = %D%/unit/test_charts.c %D%/unit/plot_data.c %D%/unit/plot_data.h
tests_unit_test_charts_LDADD   = libplots.a libbase.a libtap.a $(CUNIT_LIBS) -lm
unit_tests += %D%/unit/test_charts

tests_unit_test_layout_SOURCES = %D%/unit/test_layout.c %D%/unit/plot_data.c %D%/unit/plot_data.h
tests_unit_test_layout_LDADD   = libplots.a libbase.a libtap.a $(CUNIT_LIBS) -lm
unit_tests += %D%/unit/test_layout

# The list of figures with its loaders, which rest on nearly everything.
tests_unit_test_figures_SOURCES = %D%/unit/test_figures.c %D%/unit/plot_data.c %D%/unit/plot_data.h
tests_unit_test_figures_LDADD   = $(app_libs) libtap.a $(kernel_libs) $(CUNIT_LIBS) $(SQLITE_LIBS) $(ZSTD_LIBS) \
	$(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm
unit_tests += %D%/unit/test_figures

tests_unit_test_score_map_SOURCES = %D%/unit/test_score_map.c
tests_unit_test_score_map_LDADD   = libplots.a libbase.a libtap.a $(CUNIT_LIBS) -lm
unit_tests += %D%/unit/test_score_map

# The contract of kernels/backend.h, on the CPU backend and on the module that the environment names.
near_sources     = %D%/unit/near_ties.c %D%/unit/near_ties.h
contract_sources = %D%/unit/backends.c %D%/unit/backends.h %D%/unit/variants.c %D%/unit/variants.h
contract_libs    = $(kernel_libs) libtap.a $(CUNIT_LIBS) -ldl -lpthread -lm
contract_tests   = %D%/unit/test_backend %D%/unit/test_linear %D%/unit/test_rows %D%/unit/test_positions \
	%D%/unit/test_attend %D%/unit/test_record %D%/unit/test_weight_bits %D%/unit/test_few %D%/unit/test_waits \
	%D%/unit/test_packed_module %D%/unit/test_scan %D%/unit/test_lru
# The last two try the CPU alone: the pack for a GPU's machine (bench/local.mk) does not have them.
unit_tests      += $(contract_tests) %D%/unit/test_packed %D%/unit/test_packed_rows
tests_unit_test_backend_SOURCES   = %D%/unit/test_backend.c $(contract_sources)
tests_unit_test_backend_LDADD     = $(contract_libs)
tests_unit_test_waits_SOURCES     = %D%/unit/test_waits.c %D%/unit/attention.c %D%/unit/attention.h \
	$(contract_sources)
tests_unit_test_waits_LDADD       = $(contract_libs)
tests_unit_test_linear_SOURCES    = %D%/unit/test_linear.c $(contract_sources)
tests_unit_test_linear_LDADD      = $(contract_libs)
tests_unit_test_few_SOURCES = %D%/unit/test_few.c $(contract_sources)
tests_unit_test_few_LDADD   = $(contract_libs)
tests_unit_test_packed_module_SOURCES = %D%/unit/test_packed_module.c %D%/unit/blocks.c %D%/unit/blocks.h \
	$(contract_sources)
tests_unit_test_packed_module_LDADD = $(tests_unit_test_packed_LDADD)
tests_unit_test_packed_SOURCES = %D%/unit/test_packed.c %D%/unit/blocks.c %D%/unit/blocks.h $(contract_sources)
tests_unit_test_packed_LDADD   = libmodel.a $(contract_libs) $(JANSSON_LIBS) $(PCRE2_LIBS)
tests_unit_test_packed_rows_SOURCES = %D%/unit/test_packed_rows.c %D%/unit/blocks.c %D%/unit/blocks.h $(contract_sources)
tests_unit_test_packed_rows_LDADD   = $(tests_unit_test_packed_LDADD)
tests_unit_test_weight_bits_SOURCES = %D%/unit/test_weight_bits.c $(contract_sources)
tests_unit_test_weight_bits_LDADD   = libmodel.a $(contract_libs) $(JANSSON_LIBS) $(PCRE2_LIBS)
tests_unit_test_scan_SOURCES      = %D%/unit/test_scan.c $(contract_sources)
tests_unit_test_scan_LDADD        = $(contract_libs)
tests_unit_test_lru_SOURCES       = %D%/unit/test_lru.c $(contract_sources)
tests_unit_test_lru_LDADD         = $(contract_libs)
tests_unit_test_rows_SOURCES      = %D%/unit/test_rows.c $(contract_sources)
tests_unit_test_rows_LDADD        = $(contract_libs)
tests_unit_test_positions_SOURCES = %D%/unit/test_positions.c $(contract_sources)
tests_unit_test_positions_LDADD   = $(contract_libs)
tests_unit_test_attend_SOURCES    = %D%/unit/test_attend.c %D%/unit/attention.c %D%/unit/attention.h \
	$(contract_sources)
tests_unit_test_attend_LDADD      = $(contract_libs)
tests_unit_test_record_SOURCES    = %D%/unit/test_record.c %D%/unit/attention.c %D%/unit/attention.h \
	$(contract_sources)
tests_unit_test_record_LDADD      = $(contract_libs)

tests_unit_test_codec_SOURCES = %D%/unit/test_codec.c %D%/unit/sparse_blob.c %D%/unit/sparse_blob.h \
	%D%/unit/row_sets.c %D%/unit/row_sets.h
tests_unit_test_codec_LDADD   = libtraces.a libstats.a librows.a libbase.a libtap.a $(CUNIT_LIBS) $(ZSTD_LIBS) \
	$(JANSSON_LIBS) -lpthread -lm
tests_unit_test_recorder_SOURCES = %D%/unit/test_recorder.c %D%/unit/row_sets.c %D%/unit/row_sets.h
tests_unit_test_recorder_LDADD   = libtracer.a $(tests_unit_test_codec_LDADD)
tests_unit_test_store_shared_SOURCES = %D%/unit/test_store_shared.c %D%/unit/scratch.c %D%/unit/scratch.h \
	%D%/unit/scratch_store.c %D%/unit/scratch_store.h
tests_unit_test_store_shared_LDADD   = libtap.a $(trace_libs) $(CUNIT_LIBS)
tests_unit_test_store_SOURCES = %D%/unit/test_store.c %D%/unit/scratch.c %D%/unit/scratch.h \
	%D%/unit/scratch_store.c %D%/unit/scratch_store.h
tests_unit_test_store_LDADD   = libtap.a $(trace_libs) $(CUNIT_LIBS)
tests_unit_test_results_SOURCES = %D%/unit/test_results.c %D%/unit/scratch.c %D%/unit/scratch.h \
	%D%/unit/scratch_store.c %D%/unit/scratch_store.h
tests_unit_test_results_LDADD   = libapp.a libpolicy.a libtap.a $(trace_libs) $(CUNIT_LIBS) $(JANSSON_LIBS)
unit_tests += %D%/unit/test_results
tests_unit_test_forward_SOURCES = %D%/unit/test_forward.c %D%/unit/reference.c %D%/unit/reference.h \
	%D%/unit/pass.c %D%/unit/pass.h $(contract_sources)
tests_unit_test_forward_LDADD   = libmodel.a $(contract_libs) $(JANSSON_LIBS) $(PCRE2_LIBS)
tests_unit_test_families_SOURCES = %D%/unit/test_families.c %D%/unit/modern.h %D%/unit/reference.c %D%/unit/reference.h \
	%D%/unit/pass.c %D%/unit/pass.h %D%/unit/scratch.c %D%/unit/scratch.h $(contract_sources)
tests_unit_test_families_LDADD   = $(tests_unit_test_forward_LDADD)
tests_unit_test_family_names_SOURCES = %D%/unit/test_family_names.c %D%/unit/modern.h %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_family_names_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_unit_test_rope_SOURCES = %D%/unit/test_rope.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_rope_LDADD   = libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_unit_test_texts_SOURCES = %D%/unit/test_texts.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_texts_LDADD   = libtracer.a libtokenizer.a libmodel.a libtraces.a libbase.a libtap.a $(CUNIT_LIBS) \
	$(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm

unit_tests += %D%/unit/test_codec %D%/unit/test_recorder %D%/unit/test_store %D%/unit/test_store_shared %D%/unit/test_forward %D%/unit/test_texts
unit_tests += %D%/unit/test_families %D%/unit/test_family_names %D%/unit/test_rope

device_policies = %D%/unit/device_policies.c %D%/unit/device_policies.h
tests_unit_test_session_SOURCES = %D%/unit/test_session.c $(device_policies) $(near_sources) $(contract_sources)
tests_unit_test_session_LDADD   = libengine.a libreplay.a liballocator.a libpolicy.a libmodel.a $(contract_libs) $(JANSSON_LIBS) $(PCRE2_LIBS)
tests_unit_test_head_SOURCES = %D%/unit/test_head.c %D%/unit/scratch.c %D%/unit/scratch.h $(contract_sources)
tests_unit_test_head_LDADD   = $(tests_unit_test_session_LDADD)
tests_unit_test_session_families_SOURCES = %D%/unit/test_session_families.c %D%/unit/reference.c \
	%D%/unit/reference.h $(contract_sources)
tests_unit_test_session_families_LDADD   = $(tests_unit_test_session_LDADD)
tests_unit_test_modern_SOURCES = %D%/unit/test_modern.c %D%/unit/modern.h %D%/unit/reference.c %D%/unit/reference.h \
	%D%/unit/pass.c %D%/unit/pass.h $(contract_sources)
tests_unit_test_modern_LDADD   = $(tests_unit_test_session_LDADD)
tests_unit_test_quant_SOURCES = %D%/unit/test_quant.c $(contract_sources)
tests_unit_test_quant_LDADD   = $(tests_unit_test_session_LDADD)
tests_unit_test_engine_SOURCES = %D%/unit/test_engine.c %D%/unit/pass.c %D%/unit/pass.h $(tried_policies) \
	$(contract_sources)
tests_unit_test_engine_LDADD   = $(tests_unit_test_session_LDADD)
tests_unit_test_prompt_SOURCES = %D%/unit/test_prompt.c $(tried_policies) $(near_sources) $(contract_sources)
tests_unit_test_prompt_LDADD   = $(tests_unit_test_session_LDADD)
tests_unit_test_eval_row_SOURCES = %D%/unit/test_eval_row.c
tests_unit_test_eval_row_LDADD   = $(tests_unit_test_sampler_LDADD)
tests_unit_test_sampler_SOURCES = %D%/unit/test_sampler.c
tests_unit_test_sampler_LDADD   = libengine.a libbase.a libtap.a $(CUNIT_LIBS) -lm
tests_unit_test_repetition_SOURCES = %D%/unit/test_repetition.c
tests_unit_test_repetition_LDADD   = $(tests_unit_test_sampler_LDADD)
tests_unit_test_text_stream_SOURCES = %D%/unit/test_text_stream.c
tests_unit_test_text_stream_LDADD   = libengine.a libtokenizer.a libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) \
	$(UTF8PROC_LIBS) -lpthread -lm
tests_unit_test_slots_SOURCES = %D%/unit/test_slots.c $(device_policies) $(contract_sources)
tests_unit_test_slots_LDADD   = $(tests_unit_test_session_LDADD)
tests_unit_test_slots_block_SOURCES = %D%/unit/test_slots_block.c $(device_policies) $(near_sources) $(contract_sources)
tests_unit_test_slots_block_LDADD   = $(tests_unit_test_session_LDADD)
tests_unit_test_near_ties_SOURCES = %D%/unit/test_near_ties.c $(near_sources)
tests_unit_test_near_ties_LDADD   = $(tests_unit_test_session_LDADD)
unit_tests += %D%/unit/test_slots %D%/unit/test_slots_block %D%/unit/test_near_ties
unit_tests += %D%/unit/test_sampler %D%/unit/test_eval_row %D%/unit/test_repetition %D%/unit/test_text_stream
unit_tests += %D%/unit/test_head %D%/unit/test_session %D%/unit/test_session_families %D%/unit/test_modern %D%/unit/test_quant \
	%D%/unit/test_engine \
	%D%/unit/test_prompt
EXTRA_DIST += %D%/golden/session %D%/oracle/session.py %D%/oracle/session_plain.py %D%/oracle/prompt.py
EXTRA_DIST += %D%/golden/generated.json %D%/oracle/generated.py %D%/oracle/clustered.py

tests_unit_test_load_SOURCES = %D%/unit/test_load.c %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_load_LDADD   = libapp.a $(kernel_libs) libtap.a $(CUNIT_LIBS) -lpthread -lm
unit_tests += %D%/unit/test_load

# The calculator's tests link neither SQLite nor kernels.
unit_tests += %D%/unit/test_clock
tests_unit_test_clock_SOURCES = %D%/unit/test_clock.c
tests_unit_test_clock_LDADD   = libsimulate.a libclock.a libcapacity.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
EXTRA_DIST += %D%/golden/clock.json %D%/oracle/clock.py

unit_tests += %D%/unit/test_replicas
tests_unit_test_replicas_SOURCES = %D%/unit/test_replicas.c
tests_unit_test_replicas_LDADD   = libsimulate.a libclock.a libcapacity.a libbase.a libtap.a $(CUNIT_LIBS) \
	$(JANSSON_LIBS) -lm
EXTRA_DIST += %D%/golden/replicas.json %D%/oracle/replicas.py

unit_tests += %D%/unit/test_prefix
tests_unit_test_prefix_SOURCES = %D%/unit/test_prefix.c
tests_unit_test_prefix_LDADD   = libsimulate.a libclock.a libcapacity.a libbase.a libtap.a $(CUNIT_LIBS) \
	$(JANSSON_LIBS) -lm
EXTRA_DIST += %D%/golden/prefix.json %D%/oracle/prefix.py
unit_tests += %D%/unit/test_capacity %D%/unit/test_catalog %D%/unit/test_capacity_config %D%/unit/test_simulate \
	%D%/unit/test_workload
tests_unit_test_simulate_SOURCES = %D%/unit/test_simulate.c
tests_unit_test_simulate_LDADD   = libsimulate.a libclock.a libcapacity.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
tests_unit_test_workload_SOURCES = %D%/unit/test_workload.c
tests_unit_test_workload_LDADD   = libsimulate.a libclock.a libcapacity.a libbase.a libtap.a $(CUNIT_LIBS) -lm
EXTRA_DIST += %D%/golden/simulate.json %D%/oracle/simulate.py %D%/golden/recommend.json %D%/oracle/recommend.py
tests_unit_test_capacity_SOURCES = %D%/unit/test_capacity.c
tests_unit_test_capacity_LDADD   = libapp.a libpolicy.a libcapacity.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) -lm
tests_unit_test_catalog_SOURCES  = %D%/unit/test_catalog.c
tests_unit_test_catalog_LDADD    = libcapacity.a libbase.a libtap.a $(CUNIT_LIBS) -lm
tests_unit_test_capacity_config_SOURCES = %D%/unit/test_capacity_config.c %D%/unit/modern.h %D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_capacity_config_LDADD   = libapp.a libpolicy.a libcapacity.a libmodel.a libbase.a libtap.a $(CUNIT_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) -lm

tests_unit_test_library_SOURCES = %D%/unit/test_library.c %D%/fuzz/store_fixture.c %D%/fuzz/store_fixture.h \
	%D%/unit/scratch.c %D%/unit/scratch.h
tests_unit_test_library_LDADD   = libtap.a $(library_libs) $(CUNIT_LIBS)
unit_tests += %D%/unit/test_library
tests_unit_test_evictor_SOURCES = %D%/unit/test_evictor.c %D%/unit/policy_story.c %D%/unit/policy_story.h
tests_unit_test_evictor_LDADD   = libtap.a $(library_libs) $(CUNIT_LIBS)
unit_tests += %D%/unit/test_evictor

check_PROGRAMS += $(unit_tests)
TESTS          += $(unit_tests)
endif

# Modules for the loader (tests/fake/module.c says which is which); linked shared, like the real ones.
fake_cflags  = $(AM_CFLAGS) -fPIC -fvisibility=hidden
fake_link    = $(CC) -shared $(SH_SAN_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@
check_PROGRAMS += %D%/fake/good/cuda.so %D%/fake/stale/cuda.so %D%/fake/foreign/cuda.so %D%/fake/hidden/cuda.so \
	%D%/fake/needs/cuda.so %D%/fake/trap/cuda.so
tests_fake_good_cuda_so_SOURCES = %D%/fake/module.c
tests_fake_good_cuda_so_CFLAGS  = $(fake_cflags)
tests_fake_good_cuda_so_LINK    = $(fake_link)
tests_fake_stale_cuda_so_SOURCES = %D%/fake/module.c
tests_fake_stale_cuda_so_CFLAGS  = $(fake_cflags) '-DFAKE_ABI=(SH_BACKEND_ABI - 1)'
tests_fake_stale_cuda_so_LINK    = $(fake_link)
tests_fake_foreign_cuda_so_SOURCES = %D%/fake/module.c
tests_fake_foreign_cuda_so_CFLAGS  = $(fake_cflags) -DFAKE_NAME='"rocm"'
tests_fake_foreign_cuda_so_LINK    = $(fake_link)
tests_fake_hidden_cuda_so_SOURCES = %D%/fake/module.c
tests_fake_hidden_cuda_so_CFLAGS  = $(fake_cflags) -DFAKE_HIDDEN
tests_fake_hidden_cuda_so_LINK    = $(fake_link)
tests_fake_needs_cuda_so_SOURCES = %D%/fake/module.c
tests_fake_needs_cuda_so_CFLAGS  = $(fake_cflags) -DFAKE_NEEDS
tests_fake_needs_cuda_so_LINK    = $(fake_link)
tests_fake_trap_cuda_so_SOURCES = %D%/fake/module.c
tests_fake_trap_cuda_so_CFLAGS  = $(fake_cflags) -DFAKE_TRAP
tests_fake_trap_cuda_so_LINK    = $(fake_link)

EXTRA_DIST += %D%/golden/checkpoints %D%/oracle/checkpoint_bytes.py %D%/oracle/families.py %D%/oracle/families_plain.py \
	%D%/oracle/families_modern.py %D%/oracle/families_remote.py %D%/oracle/families_variants.py %D%/oracle/wrappers.py
EXTRA_DIST += %D%/golden/rope.json %D%/oracle/rope.py
EXTRA_DIST += %D%/golden/tokenizers %D%/oracle/tokenizer_models.py %D%/oracle/tokenizer_real.py \
	%D%/oracle/tokenizer_unigram.py %D%/oracle/tokenizer_folders.py %D%/oracle/tokenizer_pre.py \
	%D%/oracle/tokenizer_ranks.py
EXTRA_DIST += %D%/golden/persistence %D%/oracle/persistence.py
EXTRA_DIST += %D%/golden/plots
EXTRA_DIST += %D%/golden/torch %D%/oracle/torch_files.py
EXTRA_DIST += %D%/golden/gguf %D%/oracle/gguf_files.py %D%/oracle/gguf_blocks.py %D%/oracle/gguf_llama_cpp.py %D%/oracle/gguf_hybrid.py \
	%D%/oracle/gguf_modern.py %D%/oracle/gguf_remote.py %D%/oracle/gguf_more.py

# Tests of the built program. `make check` runs the quick ones, which decide most changes; `make check-slow` those that
# kill, starve, wait or do the same in many orders, and the demonstration (the longest first, so that no processor waits
# for the last one); `make check-full` both. Built with sanitizers, `make check` leaves the scripts to hostile input and
# one run of every command.
quick_scripts = %D%/cli/activation_bits.sh %D%/cli/backends.sh %D%/cli/bad_input.sh %D%/cli/bounds.sh %D%/cli/calibrate.sh %D%/cli/capacity.sh \
	%D%/cli/capacity_engine.sh %D%/cli/capacity_quality.sh %D%/cli/codes.sh %D%/cli/crash.sh %D%/cli/damage.sh %D%/cli/disk_full.sh \
	%D%/cli/drift.sh %D%/cli/ends.sh %D%/cli/engine_cuda.sh %D%/cli/eval.sh %D%/cli/experts.sh %D%/cli/figures.sh %D%/cli/findings.sh \
	%D%/cli/expert_copies.sh %D%/cli/generate.sh %D%/cli/generate_many.sh %D%/cli/gguf.sh %D%/cli/gguf_modern.sh %D%/cli/hash.sh %D%/cli/held.sh %D%/cli/help.sh %D%/cli/hints.sh \
	%D%/cli/wrappers.sh %D%/cli/hostile.sh %D%/cli/import.sh %D%/cli/install.sh %D%/cli/kv_heads.sh %D%/cli/library.sh %D%/cli/limits.sh \
	%D%/cli/blocks.sh %D%/cli/capacity_modules.sh %D%/cli/merge.sh %D%/cli/modern.sh %D%/cli/own_memory.sh %D%/cli/persistence.sh %D%/cli/plan.sh \
	%D%/cli/plan_count.sh %D%/cli/plan_loss.sh \
	%D%/cli/python.sh %D%/cli/reader.sh %D%/cli/record.sh %D%/cli/recommend.sh %D%/cli/replay.sh %D%/cli/report.sh \
	%D%/cli/prefix.sh %D%/cli/shard_files.sh %D%/cli/simulate.sh %D%/cli/simulate_sweep.sh %D%/cli/spelling.sh \
	%D%/cli/sql.sh %D%/cli/sweep.sh %D%/cli/tasks.sh \
	%D%/cli/texts.sh %D%/cli/theory.sh \
	%D%/cli/timing.sh %D%/cli/trace.sh %D%/cli/weight_bits.sh %D%/cli/weight_prune.sh %D%/cli/windowed.sh
slow_scripts = %D%/cli/python_torch.sh %D%/cli/demo.sh %D%/cli/reading.sh %D%/cli/neon.sh %D%/cli/cuda.sh \
	%D%/cli/study.sh %D%/cli/reproduce.sh %D%/cli/mpi.sh \
	%D%/cli/ranks.sh %D%/cli/ranks_apart.sh %D%/cli/ranks_cuda.sh %D%/cli/ranks_force.sh %D%/cli/ranks_kept.sh \
	%D%/cli/ranks_lost.sh %D%/cli/ranks_progress.sh %D%/cli/ranks_sweep.sh %D%/cli/kills.sh %D%/cli/slurm.sh \
	%D%/cli/slurm_scripts.sh %D%/cli/faults.sh %D%/cli/thread.sh %D%/cli/record_ends.sh
sanitized_scripts = %D%/cli/bad_input.sh %D%/cli/damage.sh %D%/cli/hostile.sh %D%/cli/faults.sh \
	%D%/cli/thread.sh
if SANITIZED
TESTS += $(sanitized_scripts)
else
TESTS += $(quick_scripts)
endif
check-slow:
	$(MAKE) check TESTS="$(slow_scripts)"
check-full:
	$(MAKE) check TESTS="$(sort $(TESTS) $(quick_scripts) $(slow_scripts))"
.PHONY: check-slow check-full
EXTRA_DIST += $(quick_scripts) $(slow_scripts)
EXTRA_DIST += %D%/oracle/shears_trace.py
EXTRA_DIST += %D%/cli/abi.c %D%/cli/neon_packed.c %D%/cli/python.py %D%/cli/python_cache.py %D%/cli/record.py %D%/cli/record_torch.py %D%/cli/torch_checks.py \
	%D%/golden/abi.txt
EXTRA_DIST += %D%/cli/checkpoint.py %D%/cli/damage.py %D%/cli/dumps.py %D%/cli/evals.py %D%/cli/examples.py \
	%D%/cli/figures.py %D%/cli/generate_many.py %D%/cli/hostile.py %D%/cli/kept.py %D%/cli/lib.sh %D%/cli/own_memory.py \
	%D%/cli/maps.py %D%/cli/ranks_lib.sh %D%/cli/reader.py %D%/cli/scores.py %D%/cli/tasks.py %D%/cli/theory.py \
	%D%/cli/vectors.py %D%/cli/zsh_tab.py %D%/faults/sweep.py %D%/golden/activation_bits.json %D%/golden/capacity.json %D%/golden/capacity_configs.json \
	%D%/golden/tasks %D%/golden/weight_bits %D%/golden/weight_prune %D%/oracle/activation_bits.py %D%/oracle/capacity.py \
	%D%/oracle/capacity_configs.py %D%/oracle/codes.py %D%/oracle/perplexity.py %D%/oracle/tasks.py \
	%D%/oracle/weight_bits.py %D%/oracle/weight_prune.py

# Calls that fail, for programs that are started with this library in LD_PRELOAD; without sanitizers.
check_PROGRAMS += %D%/faults/faults.so
tests_faults_faults_so_SOURCES = %D%/faults/faults.c
tests_faults_faults_so_CFLAGS  = $(SH_WARN_CFLAGS) -fPIC
tests_faults_faults_so_LINK    = $(CC) -shared $(CFLAGS) $(LDFLAGS) -o $@

# Readers of foreign bytes over a kept corpus and seeded mutations of it (tests/fuzz/fuzz.h).
fuzz_tests = \
	%D%/fuzz/fuzz_dense \
	%D%/fuzz/fuzz_sparse \
	%D%/fuzz/fuzz_stats \
	%D%/fuzz/fuzz_safetensors \
	%D%/fuzz/fuzz_index \
	%D%/fuzz/fuzz_torch_file \
	%D%/fuzz/fuzz_gguf \
	%D%/fuzz/fuzz_capacity \
	%D%/fuzz/fuzz_coded \
	%D%/fuzz/fuzz_experts \
	%D%/fuzz/fuzz_config \
	%D%/fuzz/fuzz_model \
	%D%/fuzz/fuzz_mooncake \
	%D%/fuzz/fuzz_plan \
	%D%/fuzz/fuzz_tokenizer \
	%D%/fuzz/fuzz_sp_model \
	%D%/fuzz/fuzz_ranks \
	%D%/fuzz/fuzz_tekken \
	%D%/fuzz/fuzz_tok_gguf \
	%D%/fuzz/fuzz_vocab \
	%D%/fuzz/fuzz_texts \
	%D%/fuzz/fuzz_answers \
	%D%/fuzz/fuzz_task \
	%D%/fuzz/fuzz_workload \
	%D%/fuzz/fuzz_benchmark \
	%D%/fuzz/fuzz_engine \
	%D%/fuzz/fuzz_npy \
	%D%/fuzz/fuzz_sql \
	%D%/fuzz/fuzz_library \
	%D%/fuzz/fuzz_record \
	%D%/fuzz/fuzz_store
fuzz_driver = %D%/fuzz/driver.c %D%/fuzz/afl.c %D%/fuzz/afl.h %D%/fuzz/fuzz.h %D%/fuzz/input.c \
	%D%/unit/scratch.c %D%/unit/scratch.h

tests_fuzz_fuzz_dense_SOURCES       = %D%/fuzz/fuzz_dense.c %D%/fuzz/block.c $(fuzz_driver)
tests_fuzz_fuzz_dense_LDADD         = libtraces.a libbase.a $(ZSTD_LIBS) -lpthread -lm
tests_fuzz_fuzz_sparse_SOURCES      = %D%/fuzz/fuzz_sparse.c %D%/fuzz/block.c $(fuzz_driver) \
	%D%/unit/sparse_blob.c %D%/unit/sparse_blob.h
tests_fuzz_fuzz_sparse_LDADD        = libtraces.a libbase.a $(ZSTD_LIBS) -lpthread -lm
tests_fuzz_fuzz_stats_SOURCES       = %D%/fuzz/fuzz_stats.c $(fuzz_driver)
tests_fuzz_fuzz_stats_LDADD         = libstats.a librows.a libbase.a $(JANSSON_LIBS) -lm
tests_fuzz_fuzz_safetensors_SOURCES = %D%/fuzz/fuzz_safetensors.c $(fuzz_driver)
tests_fuzz_fuzz_safetensors_LDADD   = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_index_SOURCES       = %D%/fuzz/fuzz_index.c $(fuzz_driver)
tests_fuzz_fuzz_index_LDADD         = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_torch_file_SOURCES  = %D%/fuzz/fuzz_torch_file.c $(fuzz_driver)
tests_fuzz_fuzz_torch_file_LDADD    = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_gguf_SOURCES        = %D%/fuzz/fuzz_gguf.c $(fuzz_driver)
tests_fuzz_fuzz_gguf_LDADD          = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_capacity_SOURCES    = %D%/fuzz/fuzz_capacity.c $(fuzz_driver)
tests_fuzz_fuzz_capacity_LDADD      = libapp.a libpolicy.a libcapacity.a libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_coded_SOURCES       = %D%/fuzz/fuzz_coded.c $(fuzz_driver)
tests_fuzz_fuzz_coded_LDADD         = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_experts_SOURCES     = %D%/fuzz/fuzz_experts.c $(fuzz_driver)
tests_fuzz_fuzz_experts_LDADD       = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_config_SOURCES      = %D%/fuzz/fuzz_config.c $(fuzz_driver)
tests_fuzz_fuzz_config_LDADD        = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_model_SOURCES       = %D%/fuzz/fuzz_model.c $(fuzz_driver)
tests_fuzz_fuzz_model_LDADD         = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_mooncake_SOURCES    = %D%/fuzz/fuzz_mooncake.c $(fuzz_driver)
tests_fuzz_fuzz_mooncake_LDADD      = libapp.a libsimulate.a libclock.a libcapacity.a libbase.a $(JANSSON_LIBS) -lm
tests_fuzz_fuzz_plan_SOURCES        = %D%/fuzz/fuzz_plan.c $(fuzz_driver)
tests_fuzz_fuzz_plan_LDADD          = libapp.a libreplay.a liballocator.a libpolicy.a libbase.a $(JANSSON_LIBS) -lm
tests_fuzz_fuzz_tokenizer_SOURCES   = %D%/fuzz/fuzz_tokenizer.c %D%/fuzz/tokenizer_file.c $(fuzz_driver)
tests_fuzz_fuzz_tokenizer_LDADD     = libtokenizer.a libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) \
	-lpthread -lm
tests_fuzz_fuzz_sp_model_SOURCES    = %D%/fuzz/fuzz_sp_model.c %D%/fuzz/tokenizer_file.c $(fuzz_driver)
tests_fuzz_fuzz_sp_model_LDADD      = $(tests_fuzz_fuzz_tokenizer_LDADD)
tests_fuzz_fuzz_ranks_SOURCES       = %D%/fuzz/fuzz_ranks.c %D%/fuzz/tokenizer_file.c $(fuzz_driver)
tests_fuzz_fuzz_ranks_LDADD         = $(tests_fuzz_fuzz_tokenizer_LDADD)
tests_fuzz_fuzz_tekken_SOURCES      = %D%/fuzz/fuzz_tekken.c %D%/fuzz/tokenizer_file.c $(fuzz_driver)
tests_fuzz_fuzz_tekken_LDADD        = $(tests_fuzz_fuzz_tokenizer_LDADD)
tests_fuzz_fuzz_tok_gguf_SOURCES    = %D%/fuzz/fuzz_tok_gguf.c %D%/fuzz/tokenizer_file.c $(fuzz_driver)
tests_fuzz_fuzz_tok_gguf_LDADD      = $(tests_fuzz_fuzz_tokenizer_LDADD)
tests_fuzz_fuzz_vocab_SOURCES       = %D%/fuzz/fuzz_vocab.c $(fuzz_driver)
tests_fuzz_fuzz_vocab_LDADD         = $(tests_fuzz_fuzz_tokenizer_LDADD)
fuzz_words = %D%/fuzz/words.c %D%/fuzz/words.h
tests_fuzz_fuzz_texts_SOURCES       = %D%/fuzz/fuzz_texts.c $(fuzz_words) $(fuzz_driver)
tests_fuzz_fuzz_texts_LDADD         = libtracer.a libtraces.a $(tests_fuzz_fuzz_tokenizer_LDADD)
tests_fuzz_fuzz_answers_SOURCES     = %D%/fuzz/fuzz_answers.c $(fuzz_words) $(fuzz_driver)
tests_fuzz_fuzz_answers_LDADD       = libapp.a $(tests_fuzz_fuzz_texts_LDADD)
tests_fuzz_fuzz_task_SOURCES        = %D%/fuzz/fuzz_task.c $(fuzz_driver)
tests_fuzz_fuzz_task_LDADD          = libengine.a $(tests_fuzz_fuzz_tokenizer_LDADD)
tests_fuzz_fuzz_workload_SOURCES    = %D%/fuzz/fuzz_workload.c $(fuzz_driver)
tests_fuzz_fuzz_workload_LDADD      = libsimulate.a libclock.a libcapacity.a libbase.a -lm

tests_fuzz_fuzz_benchmark_SOURCES   = %D%/fuzz/fuzz_benchmark.c $(fuzz_driver)
tests_fuzz_fuzz_benchmark_LDADD     = libapp.a libsimulate.a libclock.a libcapacity.a libpolicy.a libmodel.a libbase.a \
	$(JANSSON_LIBS) -lm
tests_fuzz_fuzz_engine_SOURCES      = %D%/fuzz/fuzz_engine.c $(fuzz_driver)
tests_fuzz_fuzz_engine_LDADD        = $(tests_fuzz_fuzz_benchmark_LDADD)
tests_fuzz_fuzz_npy_SOURCES         = %D%/fuzz/fuzz_npy.c $(fuzz_driver) \
	src/tracer/dump.c src/tracer/dump.h
tests_fuzz_fuzz_npy_LDADD           = libmodel.a libbase.a $(JANSSON_LIBS) $(PCRE2_LIBS) -lm
tests_fuzz_fuzz_sql_SOURCES         = %D%/fuzz/fuzz_sql.c %D%/fuzz/block.c $(fuzz_driver) \
	traces/sql_extension.c
tests_fuzz_fuzz_sql_LDADD           = libtraces.a libstats.a librows.a libbase.a $(SQLITE_LIBS) $(ZSTD_LIBS) \
	$(JANSSON_LIBS) -lpthread -lm
tests_fuzz_fuzz_store_SOURCES       = %D%/fuzz/fuzz_store.c %D%/fuzz/store_fixture.c %D%/fuzz/store_fixture.h $(fuzz_driver)
tests_fuzz_fuzz_store_LDADD         = libtraces.a libstats.a librows.a libbase.a $(SQLITE_LIBS) $(ZSTD_LIBS) \
	$(JANSSON_LIBS) -lpthread -lm

# The library by its public header, as its users see it; the store is made by what is within.
library_libs = libapi.a libcli.a $(app_libs) $(kernel_libs) $(SQLITE_LIBS) $(ZSTD_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) \
	$(UTF8PROC_LIBS) -lpthread -lm
tests_fuzz_fuzz_library_SOURCES     = %D%/fuzz/fuzz_library.c %D%/fuzz/store_fixture.c %D%/fuzz/store_fixture.h \
	$(fuzz_driver)
tests_fuzz_fuzz_library_LDADD       = $(library_libs)
tests_fuzz_fuzz_record_SOURCES      = %D%/fuzz/fuzz_record.c $(fuzz_driver)
tests_fuzz_fuzz_record_LDADD        = $(library_libs)

check_PROGRAMS += $(fuzz_tests)
TESTS          += $(fuzz_tests)
EXTRA_DIST     += %D%/fuzz/corpus %D%/fuzz/long.sh

# On a machine with a GPU (make check-gpu): the contract tests, the engine's and the program with its cache on the
# device, all on the real module, the former also under compute-sanitizer; what they say is kept.
EXTRA_DIST += %D%/check_gpu.sh %D%/gpu_findings.awk %D%/golden/sanitizer
gpu_report = $(abs_top_srcdir)/bench/results/$$(date -u +%Y-%m-%d)-check-gpu.txt
gpu_tests  = $(contract_tests) %D%/unit/test_forward %D%/unit/test_families %D%/unit/test_session \
	%D%/unit/test_session_families %D%/unit/test_modern %D%/unit/test_slots %D%/unit/test_slots_block %D%/unit/test_prompt \
	%D%/unit/test_quant
gpu_scripts = %D%/cli/engine_cuda.sh %D%/cli/codes.sh
check-gpu: all $(gpu_tests)
	PATH="$$PATH:$$(dirname '$(NVCC)')" SH_TOP='$(abs_top_srcdir)' SH_GOLDEN='$(abs_top_srcdir)/tests/golden' \
	SH_FIXTURES="$${SH_FIXTURES-$(abs_top_srcdir)/../shared/fixtures}" SHEARS='$(abs_top_builddir)/shears' \
	bash $(srcdir)/%D%/check_gpu.sh "$(gpu_report)" $(gpu_tests:%=./%) $(gpu_scripts:%=$(abs_top_srcdir)/%)
.PHONY: check-gpu

# The pack for a bare GPU machine where there is next to nothing, with the emulated device.
EXTRA_DIST += %D%/cli/gpu_pack.sh
check-gpu-pack:
	$(MAKE) check TESTS=tests/cli/gpu_pack.sh GPU_PACK_EMULATED=1
%D%/cli/gpu_pack.log: gpu-pack
.PHONY: check-gpu-pack
