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
#include "traces/db.h"

#include <time.h>

#include "src/base/interrupt.h"
#include "src/base/progress.h"

enum { WRITER_S = 5, READER_S = 60, TELL_S = 5, SAME_S = 1 };

static int is_enough(const struct sh_store *s, double passed)
{
    if (sh_interrupted())
        return s->reads || passed > WRITER_S;
    return !s->patient && passed > (s->reads ? READER_S : WRITER_S);
}

/* SQLite's busy handler, with the number of earlier calls for this wait: 1, try again; 0, give up. A signal ends a
 * read-only wait at once, every other one after the limit of a writer. A transaction larger than the cache asks again
 * for each further page after it was told to give up: that counts as the same wait. */
static int wait_a_moment(void *store, int before)
{
    const struct timespec pause = {0, 1000000};
    struct sh_store *s = store;
    double now = sh_now_s();
    if (!before && now - s->gave_up > SAME_S) {
        s->since = now;
        s->told = 0;
    }
    double passed = now - s->since;
    if (is_enough(s, passed)) {
        s->gave_up = now;
        return 0;
    }
    if (s->patient && passed > TELL_S && !s->told) {
        s->told = 1;
        if (s->tell)
            s->tell(s->tell_to, s->path);
    }
    nanosleep(&pause, NULL);
    return 1;
}

double sh_wait_turn(double began, double ended)
{
    double share = (ended - began) / 16;
    return ended + (share < 0.002 ? 0.002 : share > 0.2 ? 0.2 : share);
}

void sh_wait_until(double then)
{
    double left = then - sh_now_s();
    if (left <= 0)
        return;
    struct timespec pause = {0, (long)((left < 0.999 ? left : 0.999) * 1e9)};
    nanosleep(&pause, NULL);
}

void sh_wait_set(struct sh_store *s)
{
    sqlite3_busy_handler(s->db, wait_a_moment, s);
}
