/* SPDX-License-Identifier: Apache-2.0 */
#include "src/model/files/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map_whole(struct sh_map *m, int fd, const char *path, struct sh_err *e)
{
    struct stat facts;
    if (fstat(fd, &facts))
        return sh_fail(e, "%s: cannot read its status: %s", path, strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return sh_fail(e, "%s: not a regular file", path);
    if (facts.st_size == 0) {
        *m = (struct sh_map){0};
        return 0;
    }
    void *at = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        sh_fail(e, "%s: cannot map the file into memory: %s", path, strerror(errno));
        e->is_io = 1;
        return -1;
    }
    *m = (struct sh_map){at, (size_t)facts.st_size};
    return 0;
}

/* Non-blocking, so that a pipe in place of the file is refused instead of waited for. */
int sh_map_open(struct sh_map *m, const char *path, struct sh_err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        int why = errno;
        sh_fail(e, "%s: cannot be opened: %s", path, strerror(why));
        e->is_io = why != ENOENT && why != ENOTDIR;     /* there, and yet not readable */
        return -1;
    }
    int result = map_whole(m, fd, path, e);
    close(fd);
    return result;
}

void sh_map_close(struct sh_map *m)
{
    if (m->at)
        munmap((void *)(uintptr_t)m->at, m->bytes);
    *m = (struct sh_map){0};
}

void sh_map_drop(const void *at, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)at + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)at + bytes) / page * page;
    if (from < to)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

void sh_map_ask(const void *at, size_t bytes)
{
    uintptr_t from = (uintptr_t)at / (uintptr_t)sysconf(_SC_PAGESIZE) * (uintptr_t)sysconf(_SC_PAGESIZE);
    if (bytes)
        madvise((void *)from, (uintptr_t)at + bytes - from, MADV_WILLNEED);
}
