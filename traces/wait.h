/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing a store between programs. A transaction has the file to itself from the first page that it writes to the
 * last fsync, and it starts writing only when no statement is reading. So all programs wait for one another, each
 * briefly:
 *
 *     a reader waits for the running transaction, a minute at most;
 *     a writer waits for reading statements and for other writers, five seconds at most; sh_writer without limit.
 *
 * A waiting program tries again every millisecond; SQLite's own timeout tries every 100. Between two transactions,
 * sh_writer leaves the file free for a sixteenth of the time that the first one took: readers get their turn however
 * slow the disk is, and writing loses 6 % at most. */
#ifndef SH_TRACES_WAIT_H
#define SH_TRACES_WAIT_H

#include "traces/db.h"

/* This connection waits in this way from now on; cannot fail. */
void sh_wait_set(struct sh_store *s);

/* The time until which the file stays free after a transaction with this begin and end; sleep until then. Seconds,
 * sh_now_s. */
double sh_wait_turn(double began, double ended);
void sh_wait_until(double then);

#endif
