/* SPDX-License-Identifier: Apache-2.0 */
/* A programme of ordinary commands run one after another: each is shown as it would be typed, and its answer goes
 * to a file. A step is done when its file is there under its name (it is written beside and renamed) and begins
 * with the very command; it is not done again then, unless a step before it was. A list of steps ends with one that
 * has no line. */
#ifndef SH_CLI_STEPS_H
#define SH_CLI_STEPS_H

#include "src/cli/commands.h"

/* What %<letter> stands for in a step's words: within a word the first value, as a word of its own all of them.
 * A word of which a name has no value is left out. */
struct sh_step_name {
    char letter;                        /* 0 ends the table                                       */
    const char *const *value;           /* [n] */
    int n;
};

struct sh_step {
    const char *output, *line;          /* a file's name, words between single blanks; %% is %    */
    int draws;                          /* is nothing without gnuplot                             */
};

struct sh_steps {
    const struct sh_common *common;     /* --threads, --seed and -q are passed on                 */
    const char *folder;                 /* of the outputs                                         */
    const struct sh_step_name *name;
    const char *again;                  /* the command that goes on, for who interrupts it        */
    int keeps;                          /* a step that is done is not done again                  */
    int anew;                           /* a step was done: those behind it are, too              */
    int gnuplot_absent;                 /* found out by the first step that draws                 */
    int done, known;                    /* steps run now; found done                              */
};

/* Gives the step's exit status (SH_OK also when it was done before), SH_ABSENT where gnuplot is not there; -1 when it
 * was interrupted or its file cannot be written. What a command refuses it has said itself. */
int sh_steps_run(struct sh_steps *s, const struct sh_step *step, struct sh_err *e);

/* The command as a shell would take it; for free(). */
char *sh_step_line(const struct sh_steps *s, const struct sh_step *step);

#endif
