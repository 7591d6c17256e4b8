/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that fail, for a program that is started with LD_PRELOAD set to this library. Environment:
 *
 *     SH_FAULT          which calls, and how they fail:
 *                       write-short, write-eintr, write-enospc, write-eio   write, pwrite
 *                       read-short, read-eintr, read-eio                    read, pread
 *                       mmap        ENOMEM, of files          sync       EIO, fsync and fdatasync
 *                       truncate    ENOSPC                    open       EACCES
 *                       rename      EACCES                    alloc      no memory
 *                       unlink-late goes well, SH_FAULT_DELAY seconds later
 *     SH_FAULT_AT       N: the N-th such call, from 1 on; 0: none, they are only counted
 *     SH_FAULT_HOW      once (default): that one; on: it and all later ones; every: each N-th
 *     SH_FAULT_UNDER    only files whose path begins so (after links); default: any file, pipe or terminal
 *     SH_FAULT_PROGRAM  only the program of this name, none of its children
 *     SH_FAULT_SPARE    libraries, parts of their names with commas between, whose own allocations do not fail
 *     SH_FAULT_COUNT    a file of 16 bytes: how many calls there were, and how many failed, whatever the end
 *
 * Counting begins with main(). A program's own stdio is not seen: glibc does not go through write() there. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum call { WRITE, READ, MMAP, SYNC, TRUNCATE, OPEN, RENAME, UNLINK, ALLOC };
enum how { ONCE, ON, EVERY };

static const struct kind { const char *name; enum call call; int error; } kinds[] = {
    {"write-short", WRITE, 0}, {"write-eintr", WRITE, EINTR}, {"write-enospc", WRITE, ENOSPC},
    {"write-eio", WRITE, EIO}, {"read-short", READ, 0}, {"read-eintr", READ, EINTR}, {"read-eio", READ, EIO},
    {"mmap", MMAP, ENOMEM}, {"sync", SYNC, EIO}, {"truncate", TRUNCATE, ENOSPC}, {"open", OPEN, EACCES},
    {"rename", RENAME, EACCES}, {"unlink-late", UNLINK, 0}, {"alloc", ALLOC, ENOMEM}};

static const struct kind *kind;                 /* NULL: nothing fails */
static enum how how;
static unsigned long long at;
static const char *under;
static _Atomic unsigned long long here[2], *count = here;      /* calls, failures */

/* glibc's own, which call none of ours. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

/* Functions that this library replaces have no header here that fits. */
int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

static int (*program_main)(int, char **, char **);

static const char *own_name(void)
{
    return program_invocation_short_name;
}

static void arm(void)
{
    const char *name = getenv("SH_FAULT"), *which = getenv("SH_FAULT_HOW"), *number = getenv("SH_FAULT_AT");
    const char *program = getenv("SH_FAULT_PROGRAM"), *path = getenv("SH_FAULT_COUNT");
    if (!name || (program && strcmp(program, own_name()) != 0))
        return;
    at = number ? strtoull(number, NULL, 10) : 0;
    how = which && !strcmp(which, "on") ? ON : which && !strcmp(which, "every") ? EVERY : ONCE;
    under = getenv("SH_FAULT_UNDER");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR, 0) : -1;
    void *shared = fd < 0 ? MAP_FAILED
                          : (void *)syscall(SYS_mmap, NULL, sizeof here, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
        count = shared;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name))
            kind = &kinds[i];
    if (!kind || (path && shared == MAP_FAILED)) {
        static const char sentence[] = "faults: SH_FAULT is no kind, or SH_FAULT_COUNT cannot be mapped\n";
        syscall(SYS_write, STDERR_FILENO, sentence, sizeof sentence - 1);
        _exit(98);
    }
}

struct range { uintptr_t from, to; };
static struct range spared[64];
static int n_spared;

/* The segments of the libraries that SH_FAULT_SPARE names. */
static int spare(struct dl_phdr_info *info, size_t bytes, void *names)
{
    const char *base = strrchr(info->dlpi_name, '/');
    (void)bytes;
    for (const char *s = names; base && s && *s; s += strcspn(s, ",") + (s[strcspn(s, ",")] == ',')) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(s, ","), s);
        for (int i = 0; strstr(base, name) && i < info->dlpi_phnum && n_spared < 64; i++)
            if (info->dlpi_phdr[i].p_type == PT_LOAD) {
                uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                spared[n_spared++] = (struct range){from, from + info->dlpi_phdr[i].p_memsz};
            }
    }
    return 0;
}

static int armed_main(int argc, char **argv, char **environment)
{
    arm();
    if (kind)
        dl_iterate_phdr(spare, getenv("SH_FAULT_SPARE"));
    return program_main(argc, argv, environment);
}

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    union { void *at; int (*call)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                                  void (*)(void), void *); } real = {dlsym(RTLD_NEXT, "__libc_start_main")};
    program_main = program;
    return real.call(armed_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* ---- which calls fail ---- */

static int now(enum call call)
{
    if (!kind || kind->call != call)
        return 0;
    unsigned long long n = atomic_fetch_add(&count[0], 1) + 1;
    int fails = at && (how == ONCE ? n == at : how == ON ? n >= at : n % at == 0);
    if (fails)
        atomic_fetch_add(&count[1], 1);
    return fails;
}

static int is_path_meant(const char *path)
{
    return !under || !strncmp(path, under, strlen(under));
}

static int is_meant(int fd)
{
    char link[40], path[4096];
    if (!under)
        return 1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return n > 0 && is_path_meant(path);
}

/* A name as it will be opened, for comparison: relative ones in the current folder. */
static int is_name_meant(const char *name)
{
    char path[8192];
    if (!under || name[0] == '/')
        return is_path_meant(name);
    if (!getcwd(path, 4096))
        return 0;
    size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "/%s", name + 2 * !strncmp(name, "./", 2));
    return is_path_meant(path);
}

/* 0: the call goes on, with *bytes of its own; -1: it failed. */
static int intercept(enum call call, int fd, size_t *bytes)
{
    if (!kind || kind->call != call || !is_meant(fd) || !now(call))
        return 0;
    if (!kind->error) {
        *bytes = *bytes > 1 ? *bytes / 2 : *bytes;
        return 0;
    }
    errno = kind->error;
    return -1;
}

static int fails(enum call call)
{
    if (!now(call))
        return 0;
    errno = kind->error;
    return 1;
}

/* ---- files ---- */

ssize_t write(int fd, const void *from, size_t bytes)
{
    return intercept(WRITE, fd, &bytes) ? -1 : syscall(SYS_write, fd, from, bytes);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    return intercept(WRITE, fd, &bytes) ? -1 : syscall(SYS_pwrite64, fd, from, bytes, offset);
}

ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t offset)
{
    return intercept(WRITE, fd, &bytes) ? -1 : syscall(SYS_pwrite64, fd, from, bytes, offset);
}

ssize_t read(int fd, void *to, size_t bytes)
{
    return intercept(READ, fd, &bytes) ? -1 : syscall(SYS_read, fd, to, bytes);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    return intercept(READ, fd, &bytes) ? -1 : syscall(SYS_pread64, fd, to, bytes, offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t offset)
{
    return intercept(READ, fd, &bytes) ? -1 : syscall(SYS_pread64, fd, to, bytes, offset);
}

int fsync(int fd)
{
    size_t none = 0;
    return intercept(SYNC, fd, &none) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    size_t none = 0;
    return intercept(SYNC, fd, &none) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t bytes)
{
    size_t none = 0;
    return intercept(TRUNCATE, fd, &none) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int ftruncate64(int fd, off64_t bytes)
{
    size_t none = 0;
    return intercept(TRUNCATE, fd, &none) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

void *mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    size_t none = 0;
    if (fd >= 0 && intercept(MMAP, fd, &none))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, where, bytes, protection, flags, fd, offset);
}

void *mmap64(void *where, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    return mmap(where, bytes, protection, flags, fd, offset);
}

static int opened(int folder, const char *path, int flags, mode_t mode)
{
    if (kind && kind->call == OPEN && is_name_meant(path) && fails(OPEN))
        return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return opened(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return opened(AT_FDCWD, path, flags, mode);
}

int rename(const char *from, const char *to)
{
    if (kind && kind->call == RENAME && is_name_meant(from) && fails(RENAME))
        return -1;
    return (int)syscall(SYS_rename, from, to);
}

int unlink(const char *path)
{
    const char *delay = getenv("SH_FAULT_DELAY");
    if (kind && kind->call == UNLINK && is_name_meant(path) && now(UNLINK))
        sleep(delay ? (unsigned)strtoul(delay, NULL, 10) : 1);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* ---- memory ---- */

static int no_memory(const void *caller)
{
    for (int i = 0; i < n_spared; i++)
        if ((uintptr_t)caller >= spared[i].from && (uintptr_t)caller < spared[i].to)
            return 0;
    return fails(ALLOC);
}

void *malloc(size_t bytes)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **to, size_t alignment, size_t bytes)
{
    void *got = no_memory(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
    if (!got)
        return ENOMEM;
    *to = got;
    return 0;
}
