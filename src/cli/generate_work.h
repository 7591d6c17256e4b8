/* SPDX-License-Identifier: Apache-2.0 */
/* What shears generate was asked for, and what it has in hand while it writes. cmd_generate.c reads the request and
 * runs it; generate_show.c shows the texts and what they took. */
#ifndef SH_CLI_GENERATE_WORK_H
#define SH_CLI_GENERATE_WORK_H

#include "src/base/progress.h"
#include "src/app/generate/prompts.h"
#include "src/app/common/timing.h"
#include "src/app/generate/writing.h"
#include "src/engine/text_stream.h"

struct sh_generate_args {
    struct sh_live_options live;
    const char *prompt, *prompt_file, *tokens, *jsonl, *field, *policy, *budget, *dump;
    long long count, batch, max_tokens, top_k, dump_every;
    double temperature, top_p;
    int stop_at_end, repetition, timing;
};

struct sh_generate_work {
    const struct sh_generate_args *a;
    const struct sh_common *common;
    struct sh_live live;
    struct sh_timing timing;
    struct sh_prompts prompts;
    struct sh_policy_spec policy;
    struct sh_budget budget;
    struct sh_eval_dump dump;
    struct sh_written *text;            /* [n] */
    int n, is_many;                     /* is_many: asked for with --jsonl or --count, even if there is one */
    struct sh_writing writing;
    /* ---- generate_show.c's ---- */
    int goes_out;                       /* text goes to stdout while it is written                */
    struct sh_text_stream stream;       /* of the only text                                       */
    int n_shown;                        /* of many: the first so many are on stdout               */
    struct sh_progress progress;
    double done;                        /* tokens */
};

/* Before the first token, and behind the last one, whether it went well (0) or not; it gives that back, or -1 where
 * stdout took not everything. */
void sh_generate_show_begin(struct sh_generate_work *w);
int sh_generate_show_end(struct sh_generate_work *w, int bad, struct sh_err *e);

/* sh_writing's on_token and stops; their `to` is the work. */
void sh_generate_show_token(void *work, int text);
int sh_generate_show_stops(void *work);

/* What it took: for people on stderr; all of it with the texts, for --json and --csv. */
void sh_generate_tell(const struct sh_generate_work *w);
int sh_generate_report(const struct sh_generate_work *w, struct sh_err *e);

#endif
