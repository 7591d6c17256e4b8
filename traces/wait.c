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

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* ---- claims ---- */

/* A claim (store.h) is a lock (of an open file, not of a process) on a byte of the file past everything that SQLite
 * locks. It ends with its holder, however that ends, and leaves nothing in the folder. Programs that do not ask for a
 * claim do not notice it: they share the store as SQLite allows. */
enum { LOCK_MS = 5000, TELL_MS = 1000, STEP_MS = 50 };

/* Does another process keep the lock? On a file system without locks the answer is no: SQLite has none there either.
 * take: if nobody does, take it. */
static int stays_taken(int fd, int take, int most_ms)
{
    const struct timespec pause = {0, STEP_MS * 1000000L};
    for (int ms = 0;; ms += STEP_MS) {
        struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 62, .l_len = 1};
        int failed = fcntl(fd, take ? F_OFD_SETLK : F_OFD_GETLK, &byte);
        int taken = take ? failed && (errno == EAGAIN || errno == EACCES) : !failed && byte.l_type != F_UNLCK;
        if (!taken || ms >= most_ms || sh_interrupted())
            return taken;
        nanosleep(&pause, NULL);
    }
}

static int open_claim(struct sh_store *s, struct sh_err *e)
{
    int fd = open(s->path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return sh_fail(e, "%s: cannot be opened: %s", s->path, strerror(errno));
    s->claim = fd;                      /* closed after SQLite's own: any close drops a process's locks on the file */
    return 0;
}

int sh_store_wait_lock(struct sh_store *s, void (*tell)(const char *path), struct sh_err *e)
{
    int told = 0;
    if (open_claim(s, e))
        return -1;
    while (stays_taken(s->claim, 1, TELL_MS)) {
        if (sh_interrupted())
            return sh_fail(e, "%s: interrupted while another program was writing to it", s->path);
        if (!told++)
            tell(s->path);
    }
    return 0;
}

int sh_store_lock(struct sh_store *s, struct sh_err *e)
{
    if (open_claim(s, e))
        return -1;
    if (!stays_taken(s->claim, 1, LOCK_MS))
        return 0;
    sh_fail(e, "%s: another job is using this store", s->path);
    sh_hint(e, "wait for that job, stop it, or give this one its own --db");
    return -1;
}

int sh_store_is_locked(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC), taken = fd >= 0 && stays_taken(fd, 0, LOCK_MS);
    if (fd >= 0)
        close(fd);
    return taken;
}
