/* SPDX-License-Identifier: Apache-2.0 */
/* See paths.h. */
#include "src/cli/paths.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

const char *sh_store_path_of(const char *command, const char *db, const struct sh_list *positional, struct sh_err *e)
{
    int surplus = db ? 0 : 1;
    if (!db && !positional->n)
        sh_misused(e, "%s needs --db FILE", command);
    else if (positional->n > surplus)
        sh_misused(e, "%s: \"%s\" belongs to no option, expected one store", command, positional->at[surplus]);
    else
        return db ? db : positional->at[0];
    return NULL;
}

int sh_output_differs(const char *option, const char *out, const char *in, struct sh_err *e)
{
    struct stat a, b;
    if (!out || !in || stat(out, &a) || stat(in, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
        return 0;
    return sh_misused(e, "%s %s: is the file %s that is read", option, out, in);
}

void sh_store_tell_unkept(const char *what, const char *path, int quiet, const struct sh_err *e)
{
    if (!quiet || !access(path, W_OK))
        fprintf(stderr, "shears: the %s not kept: %s\n", what, e->text);
}
