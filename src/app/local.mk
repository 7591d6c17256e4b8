# SPDX-License-Identifier: Apache-2.0
# The use cases: what the commands do, without options, without printing. What a library would offer.
noinst_LIBRARIES += libapp.a
libapp_a_SOURCES = \
	%D%/calibrate/calibrate.c %D%/calibrate/calibrate.h \
	%D%/calibrate/calibrate_fit.c \
	%D%/calibrate/serving_json.c \
	%D%/calibrate/serving_runs.c %D%/calibrate/serving_runs.h \
	%D%/capacity/capacity_ask.c %D%/capacity/capacity_ask.h \
	%D%/capacity/capacity_names.c %D%/capacity/capacity_names.h \
	%D%/capacity/capacity_own.c %D%/capacity/capacity_own.h \
	%D%/capacity/capacity_plan.c \
	%D%/capacity/policy_state.c \
	%D%/capacity/capacity_quality.c %D%/capacity/capacity_quality.h \
	%D%/capacity/capacity_row.c \
	%D%/capacity/capacity_stored.c \
	%D%/capacity/capacity_study.c %D%/capacity/capacity_study.h \
	%D%/common/devices.c %D%/common/devices.h \
	%D%/common/live_session.c %D%/common/live_session.h \
	%D%/common/page_args.h \
	%D%/common/quality_limit.c %D%/common/quality_limit.h \
	%D%/common/recorded.c %D%/common/recorded.h \
	%D%/common/serving.c %D%/common/serving.h \
	%D%/common/text_source.c %D%/common/text_source.h \
	%D%/drift/drift_store.c %D%/drift/drift_store.h \
	%D%/eval/eval_answers.c \
	%D%/eval/eval_dump.c %D%/eval/eval_dump.h \
	%D%/eval/eval_results.c %D%/eval/eval_results.h \
	%D%/eval/eval_tasks.c \
	%D%/eval/eval_job.c %D%/eval/eval_job.h \
	%D%/eval/task_results.c \
	%D%/generate/prompts.c %D%/generate/prompts.h \
	%D%/generate/generate_batch.c %D%/generate/generate_batch.h \
	%D%/store/begin.c %D%/store/begin.h \
	%D%/store/measured.c %D%/store/measured.h \
	%D%/persistence/persistence_study.c %D%/persistence/persistence_study.h \
	%D%/plan/allot.c %D%/plan/allot.h \
	%D%/plan/key_profile.c \
	%D%/plan/judged_count.c %D%/plan/judged_count.h \
	%D%/plan/layer_losses.c %D%/plan/layer_losses.h \
	%D%/plan/live_bytes.c \
	%D%/plan/live_evidence.c \
	%D%/plan/live_judge.c \
	%D%/plan/live_plan.c %D%/plan/live_plan.h \
	%D%/plan/live_probe.c \
	%D%/plan/live_read.c \
	%D%/plan/live_search.c \
	%D%/plan/plan_bound.c %D%/plan/plan_bound.h \
	%D%/plan/plan_evals.c \
	%D%/plan/plan_file.c %D%/plan/plan_file.h \
	%D%/plan/plan_measure.c %D%/plan/plan_measure.h \
	%D%/plan/plan_search.c \
	%D%/plan/plan_write.c \
	%D%/policy/evictor.c %D%/policy/evictor.h \
	%D%/record/record.c %D%/record/record.h \
	%D%/record/record_layer.c %D%/record/record_layer.h \
	%D%/record/spool.c %D%/record/spool.h \
	%D%/recommend/recommend.c %D%/recommend/recommend.h \
	%D%/recommend/recommend_command.c \
	%D%/recommend/recommend_layout.c \
	%D%/recommend/recommend_open.c \
	%D%/recommend/recommend_run.c \
	%D%/recommend/recommend_screen.c \
	%D%/replay/replay_results.c %D%/replay/replay_results.h \
	%D%/replay/replay_store.c %D%/replay/replay_store.h \
	%D%/replay/replay_ranks.c \
	%D%/replay/replay_job.c %D%/replay/replay_job.h \
	%D%/simulate/simulate_args.c %D%/simulate/simulate_args.h \
	%D%/simulate/simulate_closed.c %D%/simulate/simulate_closed.h \
	%D%/simulate/simulate_csv.c \
	%D%/simulate/simulate_keep.c \
	%D%/simulate/simulate_quality.c \
	%D%/simulate/simulate_run.c %D%/simulate/simulate_run.h \
	%D%/simulate/simulate_study.c \
	%D%/simulate/simulate_sweep.c \
	%D%/simulate/workload_mooncake.c \
	%D%/store/describe.c %D%/store/describe.h \
	%D%/store/result_tables.c \
	%D%/store/results.c %D%/store/results.h \
	%D%/theory/theory_repeat_store.c \
	%D%/theory/theory_store.c %D%/theory/theory_store.h \
	%D%/trace/trace_job.c %D%/trace/trace_job.h
libapp_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
