/* SPDX-License-Identifier: Apache-2.0 */
/* One page of what stores hold: its parts, one file each (report_<name>.c), and what they write with. A part reads the
 * stores and writes figures, tables and the commands that repeat them, or names what is missing and the command that
 * fills it. All text is escaped here. */
#ifndef SH_REPORT_H
#define SH_REPORT_H

#include <stdio.h>

#include "plots/figure.h"
#include "src/base/out.h"
#include "traces/store.h"

/* The parts in their order, of which the first comes before the page's contents: X(name) stands for report_<name>.c
 * and sh_report_<name>. */
#define SH_REPORT_PARTS(X) \
    X(answer) \
    X(traced) \
    X(persistence) \
    X(orderless) \
    X(policies) \
    X(allocation) \
    X(quality) \
    X(quantisation) \
    X(capacity) \
    X(serving) \
    X(theory) \
    X(drift) \
    X(weights) \
    X(repetition) \
    X(models) \
    X(paper)

enum { SH_REPORT_STORES = 4 };          /* what the figures can show side by side                 */

struct sh_report_store {
    const char *path;
    struct sh_stored_run *run;          /* [n_run] */
    int n_run;
};

struct sh_answer;

struct sh_report {
    FILE *to;                           /* the open part's text                                   */
    struct sh_report_store store[SH_REPORT_STORES];
    int n_store;
    const char *const *plan;            /* [n_plan] files                                         */
    int n_plan;
    const char *model, *gpu, *gpus;     /* arguments of capacity; NULL: the traced one, common GPUs */
    const char *measured_on;            /* the text of results; NULL: of each store every one, apart */
    long long length;                   /* of a request; 0: as the page's answer, without one the model's positions */
    double target;                      /* increase of the perplexity, as a share; 0: as the page's answer */
    const struct sh_answer *answer;     /* of sh_report_page; NULL: there is none, for the reason of no_answer */
    struct sh_err no_answer;            /* empty: nothing was evaluated                           */
    int threads, quiet;
    int is_missing;                     /* the open part lacks something                          */
    char **command;                     /* [n_command] what repeats the numbers, each once        */
    int n_command;
};

struct sh_report_table;
struct sh_results;
struct sh_report_part {
    const char *name, *title;
    /* Writes the part; a part that writes nothing is left out. -1 only for what ends the command: what a store cannot
     * tell is missing, not an error. NULL: the part consists of the results of one command alone (report_results.h),
     * and the rest describes it. */
    int (*write)(struct sh_report *r, struct sh_err *e);
    const char *command;                /* the command whose results these are                    */
    const char *missing, *fill;         /* what is said where there are none, the command to fill it (sh_report_fill) */
    const char *says;                   /* what is said above the table                           */
    void (*verdict)(struct sh_report *r, const struct sh_results *all);     /* says what the numbers mean; NULL: none */
    const struct sh_report_table *table;
    const struct sh_figure *figure;     /* below it; NULL: none                                   */
    int has_commands;                   /* ends with the commands that the stores keep            */
};

/* ---- the page ---- */

/* Looks at the stores; close in any case. */
int sh_report_open(struct sh_report *r, const char *const *db, int n, struct sh_err *e);
void sh_report_close(struct sh_report *r);

/* Writes the whole page. typed: the command that asks for it, named last among those that reproduce the page. */
int sh_report_page(struct sh_report *r, const char *typed, FILE *to, struct sh_err *e);

/* ---- what parts write with ---- */

void sh_report_say(struct sh_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A place that links of the page lead to: #<id>. */
void sh_report_place(struct sh_report *r, const char *id);

/* The tables of `o`, which is freed. With a title they are folded away under it. */
void sh_report_table(struct sh_report *r, const char *title, struct sh_out *o);

/* A figure as #fig-<id>; id NULL: its name. */
int sh_report_figure(struct sh_report *r, const struct sh_figure *f, const char *id, const struct sh_fig_data *d,
                     struct sh_err *e);

/* What is not there, and the command that would fill it (without the program's name; NULL: none would). */
void sh_report_missing(struct sh_report *r, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, the command a pattern: STORE stands for the first store, "--model MODEL" and "--text FILE" for the model
 * that was asked for, and for the model and the texts that were traced, as far as the stores know them. */
void sh_report_fill(struct sh_report *r, const char *pattern, const char *missing);

/* The same with what an error says, which is cleared; -1 when it was an interruption, or a file that could not be
 * read. */
int sh_report_lacks(struct sh_report *r, const char *command, struct sh_err *e);

/* What is missing is a trace: the command is that of a store's first run, with the store's name replaced, and `more`
 * appended. */
void sh_report_trace(struct sh_report *r, int i_store, const char *db, const char *more, const char *missing);

/* How the numbers above are made again; also gathered for the page's end. */
void sh_report_command(struct sh_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Only shown: it has names that the reader is to fill in. */
void sh_report_example(struct sh_report *r, const char *command);

/* The commands that the stores keep of results of this command. */
int sh_report_typed(struct sh_report *r, const char *command, struct sh_err *e);

/* ---- what parts read ---- */

int sh_report_is_random(const struct sh_stored_run *run);

/* Does the store hold causal attention, and nothing else? Only then is it asked what caches would keep. */
int sh_report_is_causal(const struct sh_report_store *s);

#endif
