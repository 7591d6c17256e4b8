# SPDX-License-Identifier: Apache-2.0
# What follows from recorded attention, and what fits on a GPU: pure arithmetic, no I/O. One library a folder; each may
# use those above it.

# Eviction policies and what a cache keeps. These loops run over every score of a trace for every policy and budget;
# sums keep their order, so that they are the same everywhere.
noinst_LIBRARIES += libpolicy.a
libpolicy_a_SOURCES = \
	%D%/policy/budget.c %D%/policy/budget.h \
	%D%/policy/budget_list.c %D%/policy/budget_list.h \
	%D%/policy/simd_gather.c %D%/policy/simd_gather.h \
	%D%/policy/kept_slots.c %D%/policy/kept_slots.h \
	%D%/policy/knob_text.c \
	%D%/policy/last_rows.c %D%/policy/last_rows.h \
	%D%/policy/victims.c %D%/policy/victims.h \
	%D%/policy/policy.c %D%/policy/policy.h \
	%D%/policy/policy_caote.c \
	%D%/policy/policy_expected.c \
	%D%/policy/policy_h2o.c \
	%D%/policy/policy_keydiff.c \
	%D%/policy/policy_keyformer.c \
	%D%/policy/policy_knorm.c \
	%D%/policy/policy_lagkv.c \
	%D%/policy/policy_observed.c \
	%D%/policy/policy_oracle.c \
	%D%/policy/policy_random.c \
	%D%/policy/policy_reservoir.c \
	%D%/policy/policy_rkv.c \
	%D%/policy/policy_roco.c \
	%D%/policy/policy_scissorhands.c \
	%D%/policy/policy_scissorhands_released.c \
	%D%/policy/policy_snapkv.c \
	%D%/policy/policy_tova.c \
	%D%/policy/policy_vatp.c \
	%D%/policy/policy_window.c \
	%D%/policy/state.c %D%/policy/state.h \
	%D%/policy/vectors.c %D%/policy/vectors.h
libpolicy_a_CFLAGS = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) \
	-fno-math-errno -fno-trapping-math -ffp-contract=off

# How one total budget is spread over layers and heads.
noinst_LIBRARIES += liballocator.a
liballocator_a_SOURCES = \
	%D%/allocator/allocator.c %D%/allocator/allocator.h \
	%D%/allocator/allocator_adakv.c \
	%D%/allocator/allocator_entropy.c \
	%D%/allocator/allocator_greedy.c \
	%D%/allocator/allocator_loss.c \
	%D%/allocator/allocator_persistence.c \
	%D%/allocator/allocator_pyramid.c \
	%D%/allocator/allocator_uniform.c \
	%D%/allocator/apportion.c \
	%D%/allocator/pieces.c
liballocator_a_CFLAGS = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) \
	-fno-math-errno -fno-trapping-math -ffp-contract=off

# Recorded rows through policies and budgets.
noinst_LIBRARIES += libreplay.a
libreplay_a_SOURCES = \
	%D%/replay/list_walk.c %D%/replay/list_walk.h \
	%D%/replay/output_error.c %D%/replay/output_error.h \
	%D%/replay/replay.c %D%/replay/replay.h \
	%D%/replay/replay_bound.c \
	%D%/replay/replay_pass.c \
	%D%/replay/replay_row.c %D%/replay/replay_row.h \
	%D%/replay/replay_stack.c \
	%D%/replay/replay_total.c %D%/replay/replay_total.h
libreplay_a_CFLAGS = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) \
	-fno-math-errno -fno-trapping-math -ffp-contract=off

# Persistence, and the paper's theorems.
noinst_LIBRARIES += libtheory.a
libtheory_a_SOURCES = \
	%D%/theory/bound.c %D%/theory/bound.h \
	%D%/theory/persistence.c %D%/theory/persistence.h \
	%D%/theory/powerlaw.c %D%/theory/powerlaw.h \
	%D%/theory/powerlaw_goodness.c \
	%D%/theory/theory_dropped.c %D%/theory/theory_dropped.h \
	%D%/theory/theory_repeat.c %D%/theory/theory_repeat.h \
	%D%/theory/theory_sample.c %D%/theory/theory_sample.h

# GPUs and models by name; what fits on a GPU and how fast it could run; integers and formulas alone.
noinst_LIBRARIES += libcapacity.a
libcapacity_a_SOURCES = \
	%D%/capacity/capacity.c %D%/capacity/capacity.h \
	%D%/capacity/capacity_server.c \
	%D%/capacity/capacity_split.c \
	%D%/capacity/capacity_time.c \
	%D%/capacity/kv_facts.c \
	%D%/capacity/kv_rule.c %D%/capacity/kv_rule.h \
	%D%/capacity/kv_shape.c %D%/capacity/kv_shape.h \
	%D%/capacity/kv_type.c %D%/capacity/kv_type.h \
	%D%/capacity/kv_weights.c %D%/capacity/kv_weights.h \
	%D%/capacity/lora.c %D%/capacity/lora.h \
	%D%/catalog/spelling.c \
	%D%/catalog/catalog.c %D%/catalog/catalog.h

# How long a step of a server takes.
noinst_LIBRARIES += libclock.a
libclock_a_SOURCES = \
	%D%/clock/engine.c %D%/clock/engine.h \
	%D%/clock/step_time.c %D%/clock/step_time.h

# A server under load.
noinst_LIBRARIES += libsimulate.a
libsimulate_a_SOURCES = \
	%D%/simulate/closed_loop.c %D%/simulate/closed_loop.h \
	%D%/simulate/loop_parts.c %D%/simulate/loop_parts.h \
	%D%/simulate/prefix_cache.c %D%/simulate/prefix_cache.h \
	%D%/simulate/simulate.c %D%/simulate/simulate.h \
	%D%/simulate/simulate_cost.c %D%/simulate/simulate_cost.h \
	%D%/simulate/simulate_fit.c \
	%D%/simulate/simulate_series.c \
	%D%/simulate/simulate_rate.c \
	%D%/simulate/split_loop.c %D%/simulate/split_loop.h \
	%D%/simulate/workload.h \
	%D%/simulate/workload_csv.c \
	%D%/simulate/workload_keys.c \
	%D%/simulate/workload_random.c

# The catalogues' rows as tables of strings, so that they are read as a user's own files are.
EXTRA_DIST += %D%/catalog/gpus.txt %D%/catalog/models.txt %D%/catalog/engines/sglang.tsv \
	%D%/catalog/engines/trtllm.tsv %D%/catalog/engines/vllm.tsv
catalog_inc = %D%/catalog/gpus.inc %D%/catalog/models.inc %D%/catalog/sglang.inc %D%/catalog/trtllm.inc \
	%D%/catalog/vllm.inc
BUILT_SOURCES += $(catalog_inc)
CLEANFILES += $(catalog_inc)
catalog_rows = 'BEGIN { print "const char *const sh_catalog_" name "[] = {" } \
	/^[^\#]/ { gsub(/\\/, "&&"); gsub(/"/, "\\\""); print "\"" $$0 "\"," } END { print "NULL};" }'
%D%/catalog/gpus.inc: %D%/catalog/gpus.txt
	$(AM_V_GEN)$(MKDIR_P) %D%/catalog && $(AWK) -v name=gpus $(catalog_rows) $(srcdir)/%D%/catalog/gpus.txt > $@
%D%/catalog/models.inc: %D%/catalog/models.txt
	$(AM_V_GEN)$(MKDIR_P) %D%/catalog && $(AWK) -v name=models $(catalog_rows) $(srcdir)/%D%/catalog/models.txt > $@
%D%/catalog/vllm.inc: %D%/catalog/engines/vllm.tsv
	$(AM_V_GEN)$(MKDIR_P) %D%/catalog && $(AWK) -v name=vllm $(catalog_rows) $(srcdir)/%D%/catalog/engines/vllm.tsv > $@
%D%/catalog/sglang.inc: %D%/catalog/engines/sglang.tsv
	$(AM_V_GEN)$(MKDIR_P) %D%/catalog && $(AWK) -v name=sglang $(catalog_rows) $(srcdir)/%D%/catalog/engines/sglang.tsv > $@
%D%/catalog/trtllm.inc: %D%/catalog/engines/trtllm.tsv
	$(AM_V_GEN)$(MKDIR_P) %D%/catalog && $(AWK) -v name=trtllm $(catalog_rows) $(srcdir)/%D%/catalog/engines/trtllm.tsv > $@
planner/catalog/catalog.$(OBJEXT): $(catalog_inc)
