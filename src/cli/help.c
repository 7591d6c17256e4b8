/* SPDX-License-Identifier: Apache-2.0 */
/* --help, generated from the option tables. */
#include <string.h>

#include "src/cli/args.h"

static void row(FILE *to, const struct sh_opt *o)
{
    char left[80], letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    fprintf(to, "  %-26s", left);
    if (strlen(left) > 25)
        fprintf(to, "\n  %26s", "");
    for (const char *s = o->help; *s; s++) {
        fputc(*s, to);
        if (*s == '\n')
            fprintf(to, "  %26s", "");
    }
    fputc('\n', to);
}

void sh_args_help(const struct sh_cmd *c, FILE *to)
{
    fprintf(to, "usage: shears %s %s\n\n%s\n", c->name, c->usage, c->about);
    if (c->list)
        c->list(to);
    if (c->opts && c->opts->name)
        fprintf(to, "\noptions:\n");
    for (const struct sh_opt *o = c->opts; o && o->name; o++)
        row(to, o);
    fprintf(to, "\ncommon options:\n");
    for (const struct sh_opt *o = sh_common_opts; o->name; o++)
        row(to, o);
    fprintf(to, "\nexit status: 0 success, 1 failure, 2 usage error, 3 an optional component is missing\n");
}
