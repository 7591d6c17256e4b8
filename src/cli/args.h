/* SPDX-License-Identifier: Apache-2.0 */
/* One option table per command drives parsing and --help. Options are long (`--name value`,
 * `--name=value`); a few common ones have a letter. `--` ends options. A list option takes every
 * value up to the next option, and may be given again. */
#ifndef SH_CLI_ARGS_H
#define SH_CLI_ARGS_H

#include <stddef.h>
#include <stdio.h>

#include "src/base/err.h"
#include "src/base/num.h"
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

struct sh_list {
    const char **at;
    int n;
};

enum { SH_MAX_ORDINAL = 255 };

struct sh_ordinals {                    /* of devices, each at most once, in the order given      */
    int n, all;                         /* neither: nothing was said, which means device 0        */
    int at[SH_MAX_ORDINAL + 1];
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

/* What every command takes. */
struct sh_common {
    int json, csv, quiet, verbose, help;
    long long threads, seed;
    const char *backend, *columns;
    struct sh_ordinals device;
    const char *line;                   /* the command as it was typed, words quoted where needed */
};

struct sh_cmd {
    const char *name;
    const char *usage;                  /* "--model DIR --db FILE …"                              */
    const char *summary;                /* one line, for the list of commands                     */
    const char *about;                  /* for --help: what it does, and an example               */
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

/* "1,10,50": whole numbers; "0.25,0.5": reals. At most `most`; -1 with the option's name. */
int sh_args_ints(const char *option, const char *text, int *to, int most, int *n, struct sh_err *e);

/* --dtype: "f32", "f16" or "bf16". */
int sh_args_dtype(const char *name, enum sh_type *out, struct sh_err *e);
int sh_args_reals(const char *option, const char *text, double *to, int most, int *n, struct sh_err *e);

/* A range "A-B" or one number "A". */
int sh_args_range(const char *option, const char *text, int *first, int *last, struct sh_err *e);

#endif
