# SPDX-License-Identifier: Apache-2.0
# The program: one file per subcommand, the only place where all folders meet.
bin_PROGRAMS += shears
shears_SOURCES = \
	src/main.c \
	%D%/allot.c %D%/allot.h \
	%D%/args.c %D%/args.h \
	%D%/backends.c %D%/backends.h \
	%D%/capacity_ask.c %D%/capacity_ask.h \
	%D%/capacity_config.c %D%/capacity_config.h \
	%D%/capacity_names.c %D%/capacity_names.h \
	%D%/capacity_notes.c \
	%D%/capacity_plan.c %D%/capacity_plan.h \
	%D%/capacity_plot.c \
	%D%/capacity_quality.c %D%/capacity_quality.h \
	%D%/capacity_quirks.c \
	%D%/capacity_row.c \
	%D%/capacity_show.c %D%/capacity_show.h \
	%D%/capacity_states.c \
	%D%/capacity_stored.c %D%/capacity_stored.h \
	%D%/capacity_study.c %D%/capacity_study.h \
	%D%/cluster.c %D%/cluster.h \
	%D%/cmd_capacity.c \
	%D%/cmd_demo.c \
	%D%/cmd_drift.c \
	%D%/cmd_eval.c \
	%D%/cmd_export.c \
	%D%/cmd_generate.c \
	%D%/cmd_help.c \
	%D%/cmd_import.c \
	%D%/cmd_info.c \
	%D%/cmd_merge.c \
	%D%/cmd_persistence.c \
	%D%/cmd_plan.c \
	%D%/cmd_plot.c \
	%D%/cmd_repetition.c \
	%D%/cmd_replay.c \
	%D%/cmd_report.c \
	%D%/cmd_reproduce.c %D%/reproduce_steps.h \
	%D%/reproduce_show.c %D%/reproduce_show.h \
	%D%/cmd_simulate.c \
	%D%/cmd_theory.c \
	%D%/cmd_trace.c \
	%D%/cmd_verify.c \
	%D%/commands.c %D%/commands.h \
	%D%/demo_steps.h \
	%D%/completion.c \
	%D%/describe.c %D%/describe.h \
	%D%/devices.c %D%/devices.h \
	%D%/drift_run.c %D%/drift_run.h \
	%D%/eval_answers.c %D%/eval_answers.h \
	%D%/eval_dump.c %D%/eval_dump.h \
	%D%/eval_rows.c %D%/eval_rows.h \
	%D%/eval_tasks.c %D%/eval_tasks.h \
	%D%/eval_work.c %D%/eval_work.h \
	%D%/figure_curves.c \
	%D%/figure_data.c %D%/figure_data.h \
	%D%/figure_drift.c \
	%D%/figure_dropped.c \
	%D%/figure_evals.c \
	%D%/figure_maps.c \
	%D%/figure_plan.c \
	%D%/gather.c %D%/gather.h \
	%D%/generate_show.c %D%/generate_work.h \
	%D%/head_rows.c %D%/head_rows.h \
	%D%/help.c \
	%D%/info_policies.c %D%/info_policies.h \
	%D%/key_profile.c %D%/key_profile.h \
	%D%/live.c %D%/live.h \
	%D%/man.c %D%/man.h \
	%D%/part.c %D%/part.h \
	%D%/pipeline.c %D%/pipeline.h \
	%D%/plan_evals.c %D%/plan_evals.h \
	%D%/plan_file.c %D%/plan_file.h \
	%D%/plan_measure.c %D%/plan_measure.h \
	%D%/plan_search.c %D%/plan_search.h \
	%D%/plan_show.c %D%/plan_show.h \
	%D%/plan_write.c \
	%D%/prompts.c %D%/prompts.h \
	%D%/metrics.c %D%/metrics.h \
	%D%/paths.c %D%/paths.h \
	%D%/quality_names.c \
	%D%/replay_rows.c %D%/replay_rows.h \
	%D%/replay_run.c %D%/replay_run.h \
	%D%/replay_share.c %D%/replay_share.h \
	%D%/replay_work.c %D%/replay_work.h \
	%D%/result_check.c %D%/result_check.h \
	%D%/report.h %D%/report_page.c %D%/report_style.h \
	%D%/report_results.c %D%/report_results.h \
	%D%/report_allocation.c \
	%D%/report_capacity.c \
	%D%/report_drift.c \
	%D%/report_models.c \
	%D%/report_orderless.c \
	%D%/report_paper.c \
	%D%/report_persistence.c \
	%D%/report_policies.c \
	%D%/report_quality.c \
	%D%/report_quantisation.c \
	%D%/report_repetition.c \
	%D%/report_serving.c \
	%D%/report_theory.c \
	%D%/report_traced.c \
	%D%/report_weights.c \
	%D%/runs.c %D%/runs.h \
	%D%/simulate_args.c %D%/simulate_args.h \
	%D%/simulate_csv.c %D%/simulate_csv.h \
	%D%/simulate_keep.c \
	%D%/simulate_plot.c \
	%D%/simulate_run.c %D%/simulate_run.h \
	%D%/simulate_show.c \
	%D%/simulate_study.c \
	%D%/simulate_sweep.c \
	%D%/steps.c %D%/steps.h \
	%D%/study.c %D%/study.h \
	%D%/task_rows.c %D%/task_rows.h \
	%D%/text_source.c %D%/text_source.h \
	%D%/theory_mean.c \
	%D%/theory_repeat_run.c %D%/theory_repeat_run.h \
	%D%/theory_run.c %D%/theory_run.h \
	%D%/theory_show.c %D%/theory_show.h \
	%D%/time_unit.c %D%/time_unit.h \
	%D%/timing.c %D%/timing.h \
	%D%/trace_work.c %D%/trace_work.h \
	%D%/vector_set.c %D%/vector_set.h \
	%D%/writing.c %D%/writing.h
shears_LDADD = libdemo.a libranks.a libtracer.a libengine.a libplanner.a libreplay.a libcapacity.a libplots.a libtokenizer.a libmodel.a libtraces.a libstats.a \
	librows.a $(kernel_libs) $(SQLITE_LIBS) $(ZSTD_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) -lpthread -lm
