/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that every command has: threads, devices, how much to say. */
#ifndef SH_BASE_COMMON_H
#define SH_BASE_COMMON_H

struct sh_out;
struct sh_policy;

struct sh_list {
    const char **at;
    int n;
};

enum { SH_MAX_ORDINAL = 255 };

struct sh_ordinals {                    /* numbers of devices, each at most once, in the order given */
    int n, all;                         /* neither: not given, which means device 0               */
    int at[SH_MAX_ORDINAL + 1];
};

struct sh_common {
    int quiet, verbose;                 /* no progress and no remarks; more remarks               */
    long long threads, seed;
    const char *backend;                /* "auto", or the name of one                             */
    struct sh_ordinals device;
    const char *line;                   /* the command as it was typed, words quoted where needed */
    /* How the command writes its result: */
    int json, csv, help;
    const char *columns;
    struct sh_out **result;             /* it goes there instead, for the caller to free; NULL: it is printed */
    const struct sh_policy *policy;     /* the caller's own policy, which --policy also knows; NULL: none */
};

#endif
