/* SPDX-License-Identifier: Apache-2.0 */
/* One option table per command drives parsing and --help. Options are long (`--name value`,
 * `--name=value`); a few common ones have a short form. `--` ends the options. A list option takes every
 * value up to the next option and may be repeated. */
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
    SH_OPT_SECONDS,                     /* double, in [min, max]: 1.5, 200ms, 1s                  */
    SH_OPT_FORMAT,                      /* const char *: a number format, by shears' name of it   */
    SH_OPT_TEXT,                        /* const char *                                           */
    SH_OPT_BYTES,                       /* size_t: a number with k, M, G, T (binary)              */
    SH_OPT_LIST,                        /* struct sh_list of const char *                         */
    SH_OPT_DEVICES                      /* struct sh_ordinals: "all", or comma-separated numbers  */
};

struct sh_opt {
    const char *name;                   /* "length"; NULL ends the table                          */
    enum sh_opt_kind kind;
    size_t field;                       /* offset in the command's struct                         */
    const char *arg;                    /* "N", shown in --help                                   */
    const char *help;                   /* one sentence; "\n" starts a new line                   */
    double min, max;                    /* for INT, REAL and BYTES; both 0: no limits             */
    char letter;
};

/* Rows of options without a letter. */
#define SH_FLAG(name, field, help) {name, SH_OPT_FLAG, field, NULL, help, 0, 0, 0}
#define SH_TEXT(name, field, arg, help) {name, SH_OPT_TEXT, field, arg, help, 0, 0, 0}
#define SH_LIST(name, field, arg, help) {name, SH_OPT_LIST, field, arg, help, 0, 0, 0}
#define SH_INT(name, field, arg, min, max, help) {name, SH_OPT_INT, field, arg, help, min, max, 0}
#define SH_REAL(name, field, arg, min, max, help) {name, SH_OPT_REAL, field, arg, help, min, max, 0}
#define SH_SECONDS(name, field, min, max, help) {name, SH_OPT_SECONDS, field, "S", help, min, max, 0}
#define SH_BYTES(name, field, arg, min, max, help) {name, SH_OPT_BYTES, field, arg, help, min, max, 0}

struct sh_cmd {
    const char *name;
    const char *usage;                  /* "--model DIR --db FILE …"                              */
    const char *summary;                /* one line, for the list of commands                     */
    const char *about;                  /* for --help: what it does, and an example               */
    void (*list)(FILE *to);             /* indented lines that follow `about`; may be NULL        */
    const struct sh_opt *opts;
    size_t args_bytes;                  /* size of the command's struct                           */
    const void *defaults;               /* such a struct; NULL: all zero                          */
    int (*run)(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e);
};

extern const struct sh_opt sh_common_opts[];

int sh_args_parse(const struct sh_cmd *c, int argc, char **argv, struct sh_common *common, void *args,
                  struct sh_list *positional, struct sh_err *e);
void sh_args_help(const struct sh_cmd *c, FILE *to);
void sh_list_free(struct sh_list *l);

/* Frees a command's struct, its lists, and the list of positional arguments. */
void sh_args_free(const struct sh_cmd *c, void *args, struct sh_list *positional);

/* "trace --model 'my model' …", quoted for a shell; caller frees. */
char *sh_args_typed(const char *command, int argc, char *const *argv);

/* Options that a command requires; an option of NULL ends the list. */
struct sh_need {
    const char *option;                 /* "--db FILE"                                            */
    int is_given;
};

/* -1 and an error that names those that were not given; 0 when all were. */
int sh_args_need(const char *command, const struct sh_need *needs, struct sh_err *e);

/* -1 and an error that names the first argument, where a command takes options only. */
int sh_args_none(const char *command, const struct sh_list *positional, struct sh_err *e);

/* The format that the common options ask for. */
enum sh_out_format sh_common_format(const struct sh_common *c);

/* Writes a result to stdout in that format, unless it is `bad`, and frees it; or hands it to the caller of the command.
 * -1 if it is bad or cannot be written. */
int sh_common_write(const struct sh_common *c, struct sh_out *o, int bad, struct sh_err *e);

#endif
