/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of long work on stderr, where nothing else in the libraries writes, and requests to stop it.
 *
 * Progress: what, how far, rate, time left. On a terminal one line that is rewritten, elsewhere a line every few
 * seconds, nothing when quiet. Call from one thread only. */
#ifndef SH_BASE_PROGRESS_H
#define SH_BASE_PROGRESS_H

#include "src/base/err.h"

struct sh_progress {
    const char *what, *unit;        /* "tracing", "tokens"                          */
    double total;                   /* all of the work, in units                    */
    double began_s, shown_s;
    int quiet, terminal, shown;
    int uneven;                     /* set after begin: one unit may take a thousand times as long as another, so no
                                       rate and no time left are shown */
};

/* Seconds of a monotonic clock, for durations. */
double sh_now_s(void);

void sh_progress_begin(struct sh_progress *p, const char *what, const char *unit, double total, int quiet);
void sh_progress_at(struct sh_progress *p, double done, const char *detail);
void sh_progress_end(struct sh_progress *p);

/* A program that works within another one says nothing on stderr: from now on, what this thread would show goes to the
 * listener, and the listener may ask the work to stop. NULL: as before. It must outlive the work. */
struct sh_listener {
    int (*progress)(void *to, double share);            /* of the work, in [0, 1], NaN: not known, at most some times a
                                                         * second; nonzero: stop at the next whole transaction */
    void (*remark)(void *to, const char *text);
    void *to;
};
void sh_listen(const struct sh_listener *l);

/* From now on sh_progress_at passes the completed fraction to `fn` and shows nothing: for a process whose
 * progress another one shows. NULL: as before. sh_progress_show always shows. */
void sh_progress_listen(void (*fn)(void *to, double share), void *to);
void sh_progress_show(struct sh_progress *p, double done, const char *detail);

/* ---- remarks and errors ---- */

/* One line. Control characters are replaced, as texts may contain names from untrusted files. */
void sh_say(const char *label, const char *text);
void sh_sayf(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the error and its hint; returns its exit status. */
int sh_report_error(const struct sh_err *e);

/* ---- interruption ---- */

/* Ctrl-C and SIGTERM ask long work to stop at the next whole transaction; a second one kills. */
void sh_interrupt_install(void);
int sh_interrupted(void);           /* the signal's number, or 0; SIGINT if the listener asks to stop */

#endif
