# SPDX-License-Identifier: Apache-2.0
# What follows from recorded attention; pure arithmetic, no I/O.
noinst_LIBRARIES += libplanner.a
libplanner_a_SOURCES = \
	%D%/theory/bound.c %D%/theory/bound.h \
	%D%/theory/lomax.c %D%/theory/lomax.h \
	%D%/persistence.c %D%/persistence.h \
	%D%/theory/powerlaw.c %D%/theory/powerlaw.h \
	%D%/theory/powerlaw_bootstrap.c %D%/theory/powerlaw_bootstrap.h \
	%D%/theory/powerlaw_rival.c %D%/theory/powerlaw_rival.h \
	%D%/theory/theory_dropped.c %D%/theory/theory_dropped.h \
	%D%/theory/theory_output.c %D%/theory/theory_output.h \
	%D%/theory/theory_repeat.c %D%/theory/theory_repeat.h \
	%D%/theory/theory_sample.c %D%/theory/theory_sample.h

# Eviction: policies, what they keep, and replay over recorded rows. Its loops run over every score of
# a trace for every policy and budget; sums keep their order, so that they are the same everywhere.
noinst_LIBRARIES += libreplay.a
libreplay_a_SOURCES = \
	%D%/allocator.c %D%/allocator.h %D%/allocators.h \
	%D%/allocator_adakv.c \
	%D%/allocator_entropy.c \
	%D%/allocator_funnel.c \
	%D%/allocator_greedy.c \
	%D%/allocator_persistence.c \
	%D%/allocator_pyramid.c \
	%D%/allocator_uniform.c \
	%D%/carry.c %D%/carry.h \
	%D%/concave.c %D%/concave.h \
	%D%/knob_text.c %D%/knob_text.h \
	%D%/layer_ramp.c %D%/layer_ramp.h \
	%D%/spread.c %D%/spread.h \
	%D%/budget_list.c %D%/budget_list.h \
	%D%/descending.c %D%/descending.h \
	%D%/gather.c %D%/gather.h \
	%D%/budget.c %D%/budget.h \
	%D%/kept.c %D%/kept.h \
	%D%/key_units.c %D%/key_units.h \
	%D%/kth.c %D%/kth.h \
	%D%/last_rows.c %D%/last_rows.h \
	%D%/least.c %D%/least.h \
	%D%/list_walk.c %D%/list_walk.h \
	%D%/low_rows.c %D%/low_rows.h \
	%D%/neighbours.c %D%/neighbours.h \
	%D%/output_error.c %D%/output_error.h \
	%D%/policies.h \
	%D%/policy.c %D%/policy.h \
	%D%/policy_caote.c \
	%D%/policy_expected.c \
	%D%/policy_full.c \
	%D%/policy_h2o.c \
	%D%/policy_keydiff.c \
	%D%/policy_keyformer.c \
	%D%/policy_knorm.c \
	%D%/policy_lagkv.c \
	%D%/policy_observed.c \
	%D%/policy_oracle.c \
	%D%/policy_oracle_readmit.c \
	%D%/policy_random.c \
	%D%/policy_reservoir.c \
	%D%/policy_rkv.c \
	%D%/policy_roco.c \
	%D%/policy_scissorhands.c \
	%D%/policy_scissorhands_released.c \
	%D%/policy_snapkv.c \
	%D%/policy_streaming.c \
	%D%/policy_tova.c \
	%D%/policy_vatp.c \
	%D%/policy_window.c \
	%D%/replay.c %D%/replay.h \
	%D%/replay_bound.c %D%/replay_bound.h \
	%D%/replay_query.c %D%/replay_query.h \
	%D%/replay_pass.c %D%/replay_pass.h \
	%D%/replay_row.c %D%/replay_row.h \
	%D%/row_shares.c %D%/row_shares.h \
	%D%/replay_stack.c %D%/replay_stack.h \
	%D%/replay_total.c %D%/replay_total.h
libreplay_a_CFLAGS = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) \
	-fno-math-errno -fno-trapping-math -ffp-contract=off

# What fits on a GPU and how fast it could run; integers and formulas alone.
noinst_LIBRARIES += libcapacity.a
libcapacity_a_SOURCES = \
	%D%/capacity/capacity.c %D%/capacity/capacity.h \
	%D%/capacity/capacity_server.c %D%/capacity/capacity_server.h \
	%D%/capacity/capacity_split.c %D%/capacity/capacity_split.h \
	%D%/capacity/capacity_time.c \
	%D%/catalog/board.c %D%/catalog/board.h \
	%D%/catalog/catalog.c %D%/catalog/catalog.h \
	%D%/capacity/kv_facts.c %D%/capacity/kv_facts.h \
	%D%/capacity/kv_rule.c %D%/capacity/kv_rule.h \
	%D%/capacity/kv_shape.c %D%/capacity/kv_shape.h \
	%D%/capacity/kv_type.c %D%/capacity/kv_type.h \
	%D%/capacity/kv_weights.c %D%/capacity/kv_weights.h \
	%D%/capacity/roofline.c %D%/capacity/roofline.h \
	%D%/simulate/simulate.c %D%/simulate/simulate.h \
	%D%/simulate/simulate_cost.c %D%/simulate/simulate_cost.h \
	%D%/simulate/simulate_fit.c %D%/simulate/simulate_fit.h \
	%D%/simulate/simulate_quantile.c %D%/simulate/simulate_quantile.h \
	%D%/simulate/simulate_rate.c %D%/simulate/simulate_rate.h \
	%D%/simulate/simulate_timeline.c %D%/simulate/simulate_timeline.h \
	%D%/simulate/workload.h \
	%D%/simulate/workload_csv.c %D%/simulate/workload_csv.h \
	%D%/simulate/workload_random.c %D%/simulate/workload_random.h

# The catalogues' rows as tables of strings, so that they are read as a user's own files are.
EXTRA_DIST += %D%/catalog/gpus.txt %D%/catalog/models.txt
BUILT_SOURCES += %D%/catalog/gpus.inc %D%/catalog/models.inc
CLEANFILES += %D%/catalog/gpus.inc %D%/catalog/models.inc
catalog_rows = 'BEGIN { print "const char *const sh_catalog_" name "[] = {" } \
	/^[^\#]/ { gsub(/\\/, "&&"); gsub(/"/, "\\\""); print "\"" $$0 "\"," } END { print "NULL};" }'
%D%/catalog/gpus.inc: %D%/catalog/gpus.txt
	$(AM_V_GEN)$(MKDIR_P) %D%/catalog && $(AWK) -v name=gpus $(catalog_rows) $(srcdir)/%D%/catalog/gpus.txt > $@
%D%/catalog/models.inc: %D%/catalog/models.txt
	$(AM_V_GEN)$(MKDIR_P) %D%/catalog && $(AWK) -v name=models $(catalog_rows) $(srcdir)/%D%/catalog/models.txt > $@
planner/catalog/catalog.$(OBJEXT): planner/catalog/gpus.inc planner/catalog/models.inc
