/* SPDX-License-Identifier: Apache-2.0 */
/* See paths.h. */
#include "src/cli/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/progress.h"

const char *sh_store_path_of(const char *command, const char *db, const struct sh_list *positional, struct sh_err *e)
{
    int surplus = db ? 0 : 1;
    if (!db && !positional->n)
        sh_misused(e, "%s requires --db FILE", command);
    else if (positional->n > surplus)
        sh_misused(e, "%s: unexpected argument \"%s\", expected one store", command, positional->at[surplus]);
    else
        return db ? db : positional->at[0];
    return NULL;
}

/* Paths of files that do not exist yet are compared as text. */
static int are_same(const char *x, const char *y)
{
    struct stat a, b;
    int is_x = !stat(x, &a), is_y = !stat(y, &b);
    return is_x && is_y ? a.st_dev == b.st_dev && a.st_ino == b.st_ino : !is_x && !is_y && !strcmp(x, y);
}

int sh_folder_make(const char *path, struct sh_err *e)
{
    struct stat s;
    if (mkdir(path, 0777) && errno != EEXIST)
        return sh_fail(e, "%s: cannot create folder: %s", path, strerror(errno));
    return stat(path, &s) || !S_ISDIR(s.st_mode) ? sh_fail(e, "%s: not a folder", path) : 0;
}

int sh_folder_hold(const char *path, struct sh_err *e)
{
    if (sh_folder_make(path, e))
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);        /* until the program ends */
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        close(fd);
        sh_fail(e, "%s: another command is writing to this folder", path);
        return sh_hint(e, "wait until it ends, or name another folder");
    }
    return 0;
}

int sh_output_differs(const char *option, const char *out, const char *in, struct sh_err *e)
{
    return out && in && are_same(out, in) ? sh_misused(e, "%s %s: is also the input file %s", option, out, in) : 0;
}

static int is_device(const char *path)
{
    struct stat s;
    return !stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

int sh_files_apart(const struct sh_file_use *files, struct sh_err *e)
{
    for (const struct sh_file_use *a = files; a->option; a++)
        for (const struct sh_file_use *b = files; b < a; b++) {
            const struct sh_file_use *out = a->is_written ? a : b, *other = out == a ? b : a;
            if (!a->path || !b->path || !out->is_written || !are_same(a->path, b->path) || is_device(a->path))
                continue;
            if (other->is_written)
                return sh_misused(e, "%s %s: is the same file as %s", a->option, a->path, b->option);
            return sh_output_differs(out->option, out->path, other->path, e);
        }
    return 0;
}

void sh_store_tell_unkept(const char *what, const char *path, int quiet, const struct sh_err *e)
{
    char label[80];
    if (!quiet || !access(path, W_OK)) {
        snprintf(label, sizeof label, "shears: the %s not stored: ", what);
        sh_say(label, e->text);
    }
}
