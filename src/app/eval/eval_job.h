/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the work of shears eval. cmd_eval.c reads the options and shows the results; eval_job.c reads the
 * texts, alone or as one of several ranks; eval_tasks.c is --task. */
#ifndef SH_APP_EVAL_JOB_H
#define SH_APP_EVAL_JOB_H

#include "src/base/progress.h"
#include "src/jobs/mpi_job.h"
#include "src/app/eval/eval_dump.h"
#include "src/app/eval/eval_results.h"
#include "src/app/common/live_session.h"
#include "src/jobs/shard_option.h"
#include "src/app/plan/plan_file.h"
#include "src/app/common/text_source.h"

/* shears eval --answers FIELD: which tokens of jsonl documents are answers. In each document the field is a list of
 * objects, in the order of the text:
 *
 *     {"at": 1234, "answer": " Rome", "said_at": 96}
 *
 * "answer" is at byte "at" of the text, and its tokens are scored; "said_at", which is optional, is the byte at which
 * the same was said before. All of it is checked against the text. */
struct sh_eval_answers {                /* start with {0} */
    struct sh_eval_answer **of;         /* [texts] */
    int *n;                             /* [texts] */
    int texts, all, cut;                /* cut: answers beyond the tokens that are read           */
};

/* Reads the answers for the texts of the opened source, which must all come from its jsonl file. Errors name file, line
 * and number. */
int sh_eval_answers_read(struct sh_eval_answers *a, const struct sh_text_source *s, const char *field,
                         struct sh_err *e);
void sh_eval_answers_free(struct sh_eval_answers *a);
uint64_t sh_eval_answers_hash(const struct sh_eval_answers *a);         /* never 0 */

enum { SH_EVAL_POLICIES = 64 };

struct sh_eval_args {
    const char *model, *jsonl, *field, *tokens, *answers, *by, *dtype, *kv_keys, *db, *logits, *dump;
    struct sh_list text, policy, budget, plan;
    long long length, count, least, batch, prefill, prefill_block, kv_bits, kv_group, kv_residual, weight_bits;
    long long activation_bits;          /* 0: as eval's help says                                 */
    long long dump_every;
    size_t device_memory;
    int force, timing, stream;
    const char *task, *data, *shots_data, *items;
    long long shots;
    const char *shard;
    double rank_timeout, weight_prune;
};

struct sh_eval_job {
    const struct sh_eval_args *a;
    const struct sh_common *common;
    enum sh_type dtype;
    struct sh_kv_format format;
    struct sh_policy_spec spec[SH_EVAL_POLICIES], full;
    int n_spec;
    struct sh_budget budget[SH_MAX_BUDGETS];
    int n_budget, prefill, part;                /* part: shown instead of the whole; -1: none     */
    struct sh_plan *plan;                       /* [n_plan]                                       */
    int n_plan;
    struct sh_eval_answers answers;
    struct sh_devices devices;
    struct sh_timing timing;
    char *chips;
    struct sh_text_source source;
    struct sh_eval_cell reference, *cell;       /* [n]; reference: the full cache in f32          */
    struct sh_eval_result *result;              /* [n + 1]; the last one: the reference's         */
    int n;
    int *twin;                                  /* [n]: a cell with the same figures, because the policy keeps all
                                                 * whatever the budget; n: the reference; else the cell itself   */
    struct sh_eval eval;
    struct sh_eval_dump dump;
    struct sh_progress progress;
    double read;                                /* tokens, by all caches                          */
    int kept;                                   /* results written to the store                   */
    struct sh_part shard;
    struct sh_job cluster;
    struct sh_host_note note;
};

/* of[]: the cells that need a run of their own, in order, of the whole job or of this shard. Returns their number. */
int sh_eval_own_cells(const struct sh_eval_job *w, int *of);

/* Computes the results that the store (NULL: none) does not have, and keeps them there. */
int sh_evaluate(struct sh_eval_job *w, struct sh_store *store, struct sh_err *e);

/* ---- few-shot tasks ---- */

struct sh_task_request {
    struct sh_live_options live;
    const char *task, *data, *shots_data, *items;       /* items: a file for what was scored; NULL    */
    const struct sh_list *policy, *budget;
    long long shots, count;                             /* count 0: every record                      */
    const char *db;                                     /* NULL: nothing is kept                      */
    int force, timing;
};

/* Reads a task under KV budgets and puts the results into o. */
int sh_eval_tasks(const struct sh_task_request *q, const struct sh_common *common, struct sh_out *o, struct sh_err *e);

#endif
