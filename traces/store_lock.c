/* SPDX-License-Identifier: Apache-2.0 */
/* See store.h. The claim is a lock (of an open file, not of a process) on a byte of the file past everything that
 * SQLite locks. It ends with its holder, however that ends, and leaves nothing in the folder. Programs that do not ask
 * for a claim do not notice it: they share the store as SQLite allows. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "traces/db.h"

enum { WAIT_MS = 5000, STEP_MS = 50 };

/* Does another process keep the lock? On a file system without locks the answer is no: SQLite has none there either.
 * take: otherwise it is ours now. */
static int stays_taken(int fd, int take)
{
    const struct timespec pause = {0, STEP_MS * 1000000L};
    for (int ms = 0;; ms += STEP_MS) {
        struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 62, .l_len = 1};
        int failed = fcntl(fd, take ? F_OFD_SETLK : F_OFD_GETLK, &byte);
        int taken = take ? failed && (errno == EAGAIN || errno == EACCES) : !failed && byte.l_type != F_UNLCK;
        if (!taken || ms >= WAIT_MS)
            return taken;
        nanosleep(&pause, NULL);
    }
}

int sh_store_lock(struct sh_store *s, struct sh_err *e)
{
    int fd = open(s->path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return sh_fail(e, "%s: cannot be opened: %s", s->path, strerror(errno));
    s->claim = fd;                      /* closed after SQLite's own: any close drops a process's locks on the file */
    if (!stays_taken(fd, 1))
        return 0;
    sh_fail(e, "%s: another job is using this store", s->path);
    sh_hint(e, "wait for that job, stop it, or give this one its own --db");
    return -1;
}

int sh_store_is_locked(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC), taken = fd >= 0 && stays_taken(fd, 0);
    if (fd >= 0)
        close(fd);
    return taken;
}
