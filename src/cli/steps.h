/* SPDX-License-Identifier: Apache-2.0 */
/* A list of ordinary commands run one after another: each is shown as typed, and its output goes to a file. A step is
 * done if its file exists (it is renamed when complete) and begins with the same command; then it is not run again,
 * unless a step before it was. A list of steps ends with one that has no line. */
#ifndef SH_CLI_STEPS_H
#define SH_CLI_STEPS_H

#include "src/cli/commands.h"

/* The values of %<letter> in a step: within a word the first value, as a word of its own all values. A word with a
 * name that has no value is left out. */
struct sh_step_name {
    char letter;                        /* 0 ends the table                                       */
    const char *const *value;           /* [n] */
    int n;
};

struct sh_command_step {
    const char *output, *line;          /* a file name; words separated by single spaces, %% is %  */
    int draws;                          /* needs gnuplot                                          */
};

struct sh_steps {
    const struct sh_common *common;     /* --threads, --seed and -q are passed on                 */
    const char *folder;                 /* of the outputs                                         */
    const struct sh_step_name *name;
    const char *again;                  /* the command that resumes, for the message on interrupt */
    int keeps;                          /* a finished step is not run again                       */
    int anew;                           /* a step was run: those after it are run, too            */
    int gnuplot_absent;                 /* set by the first step that needs it                    */
    int done, known;                    /* steps run now; steps already done                      */
};

/* Returns the step's exit status (SH_OK also if it was done before), SH_ABSENT without gnuplot; -1 if it was
 * interrupted or its file cannot be written. The command itself reports its errors. */
int sh_steps_run(struct sh_steps *s, const struct sh_command_step *step, struct sh_err *e);

/* The words of a step that say what to read: --text FILE..., or --jsonl FILE --field NAME. to: room for text->n + 4 of
 * them; returns how many. */
int sh_step_texts(const struct sh_list *text, const char *jsonl, const char *field, const char **to);

/* The command quoted for a shell; caller frees. */
char *sh_step_line(const struct sh_steps *s, const struct sh_command_step *step);

#endif
