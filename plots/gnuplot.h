/* SPDX-License-Identifier: Apache-2.0 */
/* The gnuplot program as a child process: found on PATH, started without a shell, fed a script. */
#ifndef PLOTS_GNUPLOT_H
#define PLOTS_GNUPLOT_H

#include <stddef.h>

#include "src/base/err.h"

/* The path of gnuplot, to be freed; NULL when there is none on PATH. */
char *sh_gnuplot_find(void);

/* The same for drawing `what`; NULL: SH_ABSENT, in a sentence. */
char *sh_gnuplot_need(const char *what, struct sh_err *e);

/* Runs `program` on a whole script; what it draws goes to the open file `out_fd`. No user setting
 * is read. Any exit status but 0 is an error that carries the first line gnuplot wrote on stderr. */
int sh_gnuplot_run(const char *program, const char *script, size_t script_bytes, int out_fd, struct sh_err *e);

#endif
