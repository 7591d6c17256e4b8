/* SPDX-License-Identifier: Apache-2.0 */
/* What shears generate was asked for, and what it has in hand while it writes. cmd_generate.c reads the request and
 * runs it; generate_show.c shows the texts and what they took. */
#ifndef SH_CLI_GENERATE_JOB_H
#define SH_CLI_GENERATE_JOB_H

#include "src/base/progress.h"
#include "src/app/generate/prompts.h"
#include "src/app/generate/generate_batch.h"
#include "src/engine/text_stream.h"

struct sh_generate_args {
    struct sh_live_options live;
    const char *prompt, *prompt_file, *tokens, *jsonl, *field, *policy, *budget, *plan, *dump;
    long long count, batch, max_tokens, top_k, dump_every;
    double temperature, top_p;
    int stop_at_end, repetition, timing;
};

struct sh_generate_job {
    const struct sh_generate_args *a;
    const struct sh_common *common;
    struct sh_live live;
    struct sh_timing timing;
    struct sh_prompts prompts;
    struct sh_policy_spec policy;
    struct sh_budget budget;
    struct sh_plan plan;                /* of --plan                                              */
    struct sh_eval_dump dump;
    struct sh_written *text;            /* [n] */
    int n, is_many;                     /* is_many: --jsonl or --count was given, even for one text   */
    struct sh_writing writing;
    /* ---- generate_show.c's ---- */
    int goes_out;                       /* text is printed to stdout as it is written             */
    struct sh_text_stream stream;       /* of the only text                                       */
    int n_shown;                        /* of many: how many have been printed                    */
    struct sh_progress progress;
    double done;                        /* tokens */
};

/* Called before the first token and after the last one, with 0 on success; the latter returns that, or -1 if writing
 * to stdout failed. */
void sh_generate_show_begin(struct sh_generate_job *w);
int sh_generate_show_end(struct sh_generate_job *w, int bad, struct sh_err *e);

/* sh_writing's on_token and stops; their `to` is the work. */
void sh_generate_show_token(void *work, int text);
int sh_generate_show_stops(void *work);

/* The cost: a summary on stderr; everything, with the texts, for --json and --csv. */
void sh_generate_tell(const struct sh_generate_job *w);
int sh_generate_report(const struct sh_generate_job *w, struct sh_err *e);

#endif
