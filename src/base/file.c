/* SPDX-License-Identifier: Apache-2.0 */
/* See file.h. The temporary file of an output is locked while it is written, so that only an abandoned one can be
 * taken over; a lock ends with its process. Outputs still open when the program exits early (no memory) are
 * removed at exit. */
#include "src/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "src/base/mem.h"

struct sh_file {
    FILE *to;
    int fd, why;                        /* of the first write that failed, or 0 */
    char *path, *real, *temporary;      /* as named; without links; the temporary file, NULL: in place */
    struct sh_file *next;
};

static struct sh_file *open_files;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- streams ---- */

/* Leaves errno as it is. */
static void close_quietly(int fd)
{
    int why = errno;
    close(fd);
    errno = why;
}

static int fd_of(void *cookie)
{
    return (int)(intptr_t)cookie;
}

static ssize_t read_some(void *cookie, char *to, size_t bytes)
{
    ssize_t n;
    do
        n = read(fd_of(cookie), to, bytes);
    while (n < 0 && errno == EINTR);
    return n;
}

int sh_file_nameless(const char *folder)
{
    int fd = -1;
#ifdef O_TMPFILE
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
#endif
    if (fd >= 0)
        return fd;
    char *path = xasprintf("%s/shears-XXXXXX", folder);
    if ((fd = mkostemp(path, O_CLOEXEC)) >= 0)
        unlink(path);
    free(path);
    return fd;
}

int sh_write_all(int fd, const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n ? errno : EIO;
            return -1;
        }
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int reader_is_gone;              /* of standard output; the stream itself forgets why a write failed */

/* The stream counts what is not written as lost, so it is all or nothing. */
static ssize_t write_some(void *cookie, const char *from, size_t bytes)
{
    if (!sh_write_all(fd_of(cookie), from, bytes))
        return (ssize_t)bytes;
    reader_is_gone |= errno == EPIPE && fd_of(cookie) == STDOUT_FILENO;
    return 0;
}

int sh_output_failed(const char *what, int why, struct sh_err *e)
{
    return sh_err_fill(e, reader_is_gone ? SH_UNREAD : SH_FAILED, "cannot write %sto standard output%s%s", what,
                       why ? ": " : "", why ? strerror(why) : "");
}

static int seek(void *cookie, off64_t *at, int whence)
{
    off64_t now = lseek64(fd_of(cookie), *at, whence);
    if (now < 0)
        return -1;
    *at = now;
    return 0;
}

static int end(void *cookie)
{
    return close(fd_of(cookie));
}

FILE *sh_stream_of(int fd, const char *how)
{
    FILE *f = fopencookie((void *)(intptr_t)fd, how,
                          (cookie_io_functions_t){.read = read_some, .write = write_some, .seek = seek, .close = end});
    if (!f)
        close_quietly(fd);
    return f;
}

FILE *sh_stream_open(const char *path, struct stat *about)
{
    struct stat mine;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (fstat(fd, about ? about : &mine)) {
        close_quietly(fd);
        return NULL;
    }
    return sh_stream_of(fd, "r");
}

static char *read_all(FILE *f, const char *path, size_t most, size_t *bytes, struct sh_err *e)
{
    if (!f) {
        sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    size_t cap = 1 << 16, n = 0, got;
    char *text = xmalloc(cap);
    while (n <= most && (got = fread(text + n, 1, cap - n - 1, f)) > 0)
        if ((n += got) == cap - 1)
            text = xreallocarray(text, cap *= 2, 1);
    int failed = ferror(f), why = errno;
    fclose(f);
    if (!failed && n <= most) {
        text[n] = '\0';
        *bytes = n;
        return text;
    }
    free(text);
    if (failed)
        sh_fail(e, "%s: cannot be read: %s", path, strerror(why));
    else
        sh_fail(e, "%s: the file is larger than the limit of %zu bytes", path, most);
    return NULL;
}

char *sh_file_read(const char *path, size_t most, size_t *bytes, struct sh_err *e)
{
    return read_all(sh_stream_open(path, NULL), path, most, bytes, e);
}

char *sh_input_read(size_t most, size_t *bytes, struct sh_err *e)
{
    int fd = dup(STDIN_FILENO);
    return read_all(fd < 0 ? NULL : sh_stream_of(fd, "r"), "standard input", most, bytes, e);
}

/* ---- outputs ---- */

static ssize_t write_output(void *cookie, const char *from, size_t bytes)
{
    struct sh_file *f = cookie;
    if (!sh_write_all(f->fd, from, bytes))
        return (ssize_t)bytes;
    f->why = f->why ? f->why : errno;
    return 0;
}

static void abandon_all(void)
{
    for (struct sh_file *f = open_files; f; f = f->next)
        if (f->temporary)
            unlink(f->temporary);
}

static void list(struct sh_file *f)
{
    static int is_installed;
    pthread_mutex_lock(&list_lock);
    if (!is_installed)
        is_installed = !atexit(abandon_all) && !at_quick_exit(abandon_all);
    f->next = open_files;
    open_files = f;
    pthread_mutex_unlock(&list_lock);
}

static void unlist(const struct sh_file *f)
{
    pthread_mutex_lock(&list_lock);
    for (struct sh_file **at = &open_files; *at; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            break;
        }
    pthread_mutex_unlock(&list_lock);
}

/* Waits up to 3 s: the child of a killed program (gnuplot) ends a little later and holds the lock until then. */
static int lock(int fd)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    int got;
    for (int i = 0; (got = flock(fd, LOCK_EX | LOCK_NB)) && (errno == EINTR || errno == EWOULDBLOCK) && i < 60; i++)
        nanosleep(&pause, NULL);
    return got;
}

/* The temporary file, locked and empty. EWOULDBLOCK: another program writes it. */
static int open_temporary(const char *temporary)
{
    for (;;) {
        struct stat opened, named;
        int fd = open(temporary, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0)
            return -1;
        int got = lock(fd);
        if (got || fstat(fd, &opened)) {
            close_quietly(fd);
            return -1;
        }
        if (!stat(temporary, &named) && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev) {
            while ((got = ftruncate(fd, 0)) && errno == EINTR)
                continue;
            if (!got)
                return fd;
            int why = errno;
            unlink(temporary);
            errno = why;
            close_quietly(fd);
            return -1;
        }
        close(fd);                              /* it was renamed or removed between the two calls */
    }
}

static int open_output(struct sh_file *f)
{
    struct stat about;
    if (!strncmp(f->path, "/dev/", 5) && strncmp(f->path, "/dev/shm/", 9)) {
        /* /dev/stdout may lead to a file that others write, too; /dev/shm holds files like any folder */
        f->real = xstrdup(f->path);
        return open(f->real, O_WRONLY | O_APPEND | O_CLOEXEC);
    }
    char *target = xrealpath(f->path);
    if (!target && errno != ENOENT)
        return -1;
    f->real = target ? target : xstrdup(f->path);
    if (!stat(f->real, &about) && !S_ISREG(about.st_mode))
        return open(f->real, O_WRONLY | O_CLOEXEC);
    f->temporary = xasprintf("%s.shears-new", f->real);
    return open_temporary(f->temporary);
}

static void release(struct sh_file *f)
{
    free(f->path);
    free(f->real);
    free(f->temporary);
    free(f);
}

struct sh_file *sh_file_begin(const char *path, struct sh_err *e)
{
    struct sh_file *f = xcalloc(1, sizeof *f);
    f->path = xstrdup(path);
    f->fd = open_output(f);
    f->to = f->fd < 0 ? NULL : fopencookie(f, "w", (cookie_io_functions_t){.write = write_output});
    if (f->to) {
        list(f);
        return f;
    }
    sh_fail(e, "%s: cannot be written: %s", path,
            errno == EWOULDBLOCK ? "another program is writing to it" : strerror(errno));
    if (f->fd >= 0 && f->temporary)
        unlink(f->temporary);
    if (f->fd >= 0)
        close(f->fd);
    release(f);
    return NULL;
}

FILE *sh_file_stream(struct sh_file *f)
{
    return f->to;
}

int sh_file_fd(const struct sh_file *f)
{
    return f->fd;
}

/* Waits until the data is on disk; a pipe or terminal has none. */
static int settle(int fd)
{
    int got;
    while ((got = fsync(fd)) && errno == EINTR)
        continue;
    return got && (errno == EINVAL || errno == EROFS || errno == ENOTSUP) ? 0 : got;
}

int sh_file_end(struct sh_file *f, int bad, struct sh_err *e)
{
    if (!f)
        return bad;
    if (!bad && (fflush(f->to) || ferror(f->to) || settle(f->fd) || (f->temporary && rename(f->temporary, f->real))))
        bad = sh_fail(e, "%s: cannot be written: %s", f->path, strerror(f->why ? f->why : errno));
    if (bad && f->temporary)
        unlink(f->temporary);
    unlist(f);
    fclose(f->to);
    close(f->fd);
    release(f);
    return bad;
}
