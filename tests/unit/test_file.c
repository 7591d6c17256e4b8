/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/file.h: an output is whole or not there. Calls that fail are tests/faults' part. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

static int says(const char *path, const char *text)
{
    size_t n;
    char *there = sh_file_read(path, 1 << 20, &n, &e);
    int same = there && n == strlen(text) && !memcmp(there, text, n);
    free(there);
    return same;
}

static int write_text(const char *path, const char *text, int bad)
{
    struct sh_file *f = sh_file_begin(path, &e);
    if (!f)
        return -2;
    fputs(text, sh_file_stream(f));
    fflush(sh_file_stream(f));
    return sh_file_end(f, bad, &e);
}

static char *path_of(const char *name)
{
    return xstrdup(scratch_path(name));
}

static void whole_or_as_before(void)
{
    char *path = path_of("out"), *temporary = path_of("out.shears-new");
    CU_ASSERT_EQUAL(write_text(path, "first", -1), -1);
    CU_ASSERT(access(path, F_OK) != 0 && access(temporary, F_OK) != 0);
    CU_ASSERT_EQUAL(write_text(path, "first", 0), 0);
    CU_ASSERT(says(path, "first") && access(temporary, F_OK) != 0);
    struct sh_file *f = sh_file_begin(path, &e);
    fputs("second", sh_file_stream(f));
    fflush(sh_file_stream(f));
    CU_ASSERT(says(path, "first") && says(temporary, "second"));
    CU_ASSERT_EQUAL(sh_file_end(f, 0, &e), 0);
    CU_ASSERT(says(path, "second"));
    CU_ASSERT_EQUAL(write_text(path, "third", -1), -1);
    CU_ASSERT(says(path, "second") && access(temporary, F_OK) != 0);
    free(path);
    free(temporary);
}

/* A longer text of a killed program must not show after ours. */
static void left_over_is_taken_over(void)
{
    char *path = path_of("taken"), *temporary = path_of("taken.shears-new");
    scratch_write("taken.shears-new", "half of something long", 22);
    CU_ASSERT_EQUAL(write_text(path, "short", 0), 0);
    CU_ASSERT(says(path, "short") && access(temporary, F_OK) != 0);
    free(path);
    free(temporary);
}

static void locked_is_refused(void)
{
    char *path = path_of("locked"), *temporary = path_of("locked.shears-new");
    scratch_write("locked.shears-new", "theirs", 6);
    int fd = open(temporary, O_RDWR | O_CLOEXEC);
    CU_ASSERT(fd >= 0 && !flock(fd, LOCK_EX));
    CU_ASSERT_EQUAL(write_text(path, "ours", 0), -2);
    CU_ASSERT(strstr(e.text, "locked: cannot be written: another program") != NULL);
    CU_ASSERT(says(temporary, "theirs") && access(path, F_OK) != 0);
    close(fd);
    CU_ASSERT_EQUAL(write_text(path, "ours", 0), 0);
    free(path);
    free(temporary);
}

static void links_lead_to_their_file(void)
{
    char *path = path_of("real"), *link = path_of("link");
    struct stat about;
    scratch_write("real", "old", 3);
    CU_ASSERT_EQUAL(symlink(path, link), 0);
    CU_ASSERT_EQUAL(write_text(link, "new", 0), 0);
    CU_ASSERT(says(path, "new") && !lstat(link, &about) && S_ISLNK(about.st_mode));
    free(path);
    free(link);
}

static void devices_are_written_to_directly(void)
{
    CU_ASSERT_EQUAL(write_text("/dev/null", "text", 0), 0);
    CU_ASSERT(access("/dev/null.shears-new", F_OK) != 0);
    if (access("/dev/full", W_OK))
        return;
    struct sh_file *f = sh_file_begin("/dev/full", &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs("text", sh_file_stream(f));
    CU_ASSERT_EQUAL(sh_file_end(f, 0, &e), -1);
    CU_ASSERT_STRING_EQUAL(e.text, "/dev/full: cannot be written: No space left on device");
}

/* Its folder is among the devices, and its files are files. */
static void memory_holds_files(void)
{
    char folder[] = "/dev/shm/shears-test.XXXXXX";
    if (!mkdtemp(folder)) {
        tap_skip("/dev/shm is not here");
        return;
    }
    char *path = xasprintf("%s/out", folder);
    CU_ASSERT_EQUAL(write_text(path, "first", -1), -1);
    CU_ASSERT(access(path, F_OK) != 0);
    CU_ASSERT_EQUAL(write_text(path, "second", 0), 0);
    CU_ASSERT(says(path, "second"));
    unlink(path);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
    free(path);
}

static void too_much_is_refused(void)
{
    size_t n;
    const char *path = scratch_write("much", "0123456789", 10);
    CU_ASSERT_PTR_NULL(sh_file_read(path, 9, &n, &e));
    CU_ASSERT(strstr(e.text, path) != NULL && strstr(e.text, "9") != NULL);
    char *text = sh_file_read(path, 10, &n, &e);
    CU_ASSERT(text && n == 10 && !strcmp(text, "0123456789"));
    free(text);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"an output is whole, or what was there before", whole_or_as_before},
        {"what a killed program left is taken over", left_over_is_taken_over},
        {"what somebody writes is left alone", locked_is_refused},
        {"a link leads to its file", links_lead_to_their_file},
        {"a device is written to directly", devices_are_written_to_directly},
        {"a file in /dev/shm is whole or not there", memory_holds_files},
        {"a file beyond the limit is refused", too_much_is_refused},
        {0}};
    return tap_run("file", tests);
}
