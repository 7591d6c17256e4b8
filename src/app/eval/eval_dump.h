/* SPDX-License-Identifier: Apache-2.0 */
/* Files that eval writes besides its results: kept positions as JSON lines, logits as .npy. They have a temporary name
 * until they are complete. */
#ifndef SH_APP_EVAL_DUMP_H
#define SH_APP_EVAL_DUMP_H

#include <stdio.h>

#include "src/base/file.h"
#include "src/engine/session.h"

struct sh_eval_dump {
    const char *kept_path, *logits_path;        /* NULL: not wanted                               */
    int every;                                  /* steps                                          */
    const struct sh_arch *arch;                 /* model whose windows hide tokens; NULL: none is hidden */
    int n_vocab;
    int sequence;                               /* the sequence that is being read                */
    struct sh_file *kept_file, *logits_file;
    FILE *kept, *logits;                        /* their streams; NULL: not wanted                */
};

/* rows: of the logits. */
int sh_eval_dump_begin(struct sh_eval_dump *d, long long rows, struct sh_err *e);

/* Writes the positions in the cache that query t sees through a window (0: none) as a JSON list. */
void sh_dump_positions(FILE *to, const struct sh_cache *c, int t, int window);

sh_watch sh_eval_dump_kept;             /* their `to` is the dump                         */
sh_session_take sh_eval_dump_logits;

/* bad: the reading failed, so no file remains. Returns it, or -1 when a file could not be written. */
int sh_eval_dump_end(struct sh_eval_dump *d, int bad, struct sh_err *e);

#endif
