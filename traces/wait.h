/* SPDX-License-Identifier: Apache-2.0 */
/* Several programs with one store. A transaction has the file to itself from the first page that it writes to the last
 * fsync, and it begins to write only when no statement reads. So everybody waits for everybody, each for a moment:
 *
 *     who reads waits for the running transaction, a minute at most;
 *     who writes waits for statements that read and for other writers, five seconds at most; sh_writer without end.
 *
 * Whoever waits tries again every millisecond; SQLite's own timeout tries every 100. sh_writer leaves the file free
 * between two transactions for a sixteenth of the time that the first one took: readers get their turn however slow the
 * disk is, and writing loses 6 % at most. */
#ifndef SH_TRACES_WAIT_H
#define SH_TRACES_WAIT_H

#include "traces/db.h"

/* From here on this connection waits so; it cannot fail. */
void sh_wait_set(struct sh_store *s);

/* Until when the file stays free after a transaction that began and ended then; sleep until then. Seconds, sh_now_s. */
double sh_wait_turn(double began, double ended);
void sh_wait_until(double then);

#endif
