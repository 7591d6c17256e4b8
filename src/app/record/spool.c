/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/record/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/mem.h"

struct sh_spool {
    char *folder;
    int fd;                             /* -1: no file yet */
    uint64_t end;
};

struct sh_spool *sh_spool_new(const char *store_path)
{
    struct sh_spool *s = xcalloc(1, sizeof *s);
    const char *slash = strrchr(store_path, '/');
    s->folder = !slash ? xstrdup(".") : slash == store_path ? xstrdup("/")
                : xasprintf("%.*s", (int)(slash - store_path), store_path);
    s->fd = -1;
    return s;
}

void sh_spool_free(struct sh_spool *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->folder);
    free(s);
}

static int failed(const struct sh_spool *s, const char *doing, struct sh_err *e)
{
    e->is_io = 1;
    return sh_fail(e, "%s: cannot %s the temporary file for recorded rows: %s", s->folder, doing, strerror(errno));
}

int sh_spool_put(struct sh_spool *s, const void *from, size_t bytes, uint64_t *at, struct sh_err *e)
{
    if (s->fd < 0 && (s->fd = sh_file_nameless(s->folder)) < 0)
        return failed(s, "create", e);
    *at = s->end;
    if (lseek(s->fd, (off_t)s->end, SEEK_SET) < 0 || sh_write_all(s->fd, from, bytes))
        return failed(s, "write", e);
    s->end += bytes;
    return 0;
}

int sh_spool_get(struct sh_spool *s, void *to, size_t bytes, uint64_t at, struct sh_err *e)
{
    char *here = to;
    while (bytes) {
        ssize_t n = pread(s->fd, here, bytes, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n ? errno : EIO;
            return failed(s, "read", e);
        }
        here += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return 0;
}

void sh_spool_empty(struct sh_spool *s)
{
    s->end = 0;
    if (s->fd >= 0 && ftruncate(s->fd, 0))
        s->end = 0;                     /* what is there will be written over */
}
