/* SPDX-License-Identifier: Apache-2.0 */
/* One option table per command drives parsing and --help. Options are long (`--name value`,
 * `--name=value`); a few common ones have a letter. `--` ends options. A list option takes every
 * value up to the next option, and may be given again. */
#ifndef SH_CLI_ARGS_H
#define SH_CLI_ARGS_H

#include <stddef.h>
#include <stdio.h>

#include "src/base/common.h"
#include "src/base/err.h"
#include "src/base/out.h"

enum sh_opt_kind {
    SH_OPT_FLAG,                        /* int: 1 when given                                      */
    SH_OPT_INT,                         /* long long, in [min, max]                               */
    SH_OPT_REAL,                        /* double, in [min, max]                                  */
    SH_OPT_TEXT,                        /* const char *                                           */
    SH_OPT_BYTES,                       /* size_t: a number with k, M, G (binary)                 */
    SH_OPT_LIST,                        /* struct sh_list of const char *                         */
    SH_OPT_DEVICES                      /* struct sh_ordinals: "all", or numbers with commas      */
};

struct sh_opt {
    const char *name;                   /* "length"; NULL ends the table                          */
    enum sh_opt_kind kind;
    size_t field;                       /* offset in the command's struct                         */
    const char *arg;                    /* "N", shown in --help                                   */
    const char *help;                   /* one sentence; "\n" begins a new line                   */
    double min, max;                    /* of INT, REAL and BYTES; both 0: no limits              */
    char letter;
};

struct sh_cmd {
    const char *name;
    const char *usage;                  /* "--model DIR --db FILE …"                              */
    const char *summary;                /* one line, for the list of commands                     */
    const char *about;                  /* for --help: what it does, and an example               */
    void (*list)(FILE *to);             /* indented lines that follow `about`; may be NULL        */
    const struct sh_opt *opts;
    size_t args_bytes;                  /* of the command's own struct; zeroed, then `preset`     */
    void (*preset)(void *args);         /* defaults that are not zero; may be NULL                */
    int (*run)(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e);
    void (*release)(void *args);        /* lists; may be NULL                                     */
};

extern const struct sh_opt sh_common_opts[];

int sh_args_parse(const struct sh_cmd *c, int argc, char **argv, struct sh_common *common, void *args,
                  struct sh_list *positional, struct sh_err *e);
void sh_args_help(const struct sh_cmd *c, FILE *to);
void sh_list_free(struct sh_list *l);

/* What a command cannot do without; an option of NULL ends the list. */
struct sh_need {
    const char *option;                 /* "--db FILE"                                            */
    int is_given;
};

/* "trace needs --db FILE": names those that were not given; 0 when all were. */
int sh_args_need(const char *command, const struct sh_need *needs, struct sh_err *e);

/* The format that the common options ask for, and a result written in it on stdout. */
enum sh_out_format sh_common_format(const struct sh_common *c);
int sh_common_write(const struct sh_common *c, struct sh_out *o, struct sh_err *e);

#endif
