/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: how many tokens each KV head of a model may keep, under which policy, and the quality measured with these
 * budgets. The file is one JSON object (see doc/planning.md). Files are untrusted: every field is validated. */
#ifndef SH_APP_PLAN_FILE_H
#define SH_APP_PLAN_FILE_H

#include "planner/allocator/allocator.h"
#include "planner/policy/policy.h"
#include "traces/store.h"

enum { SH_PLAN_VERSION = 1, SH_PLAN_NAME = 256, SH_PLAN_EVIDENCE = 16 };

/* One figure that was measured with these budgets. */
struct sh_plan_evidence {
    char metric[64];                    /* "kept_mass", "output_error", "ppl", …                  */
    double value, low, high;            /* a 95 % interval; NaN: unknown                          */
    int sequences;                      /* 0: not told                                            */
    long long tokens;
    int run;                            /* number in the store; 0: all of its runs; -1: an evaluation of other texts */
    char store[SH_PLAN_NAME];           /* the store's name without its folder                    */
    char program[64];                   /* version that measured                                  */
    char text[SH_MEASURED_NAME];        /* the texts' name; "": not told                          */
    char text_hash[24];                 /* hash of their ids, 16 hexadecimal digits; "": not told */
    double confidence;                  /* confidence of each of low and high alone; 0: the two-sided 95 % */
};

/* What has a size of its own. */
enum sh_plan_sizes { SH_SIZE_OF_HEAD, SH_SIZE_OF_LAYER, SH_SIZE_OF_ALL };

struct sh_plan {
    char model[SH_PLAN_NAME], weights[SH_PLAN_NAME], fingerprint[SH_PLAN_NAME];
    int n_layer, n_head, n_kv_head, d_head;
    struct sh_policy_spec policy;
    struct sh_allocator_spec allocator;
    int prefill;                        /* the first tokens of a text see everything              */
    int recorded_rows;                  /* 1: the policy saw rows as recorded, 0: renormalised    */
    int n_token;                        /* the length that the budgets are for                    */
    int *heads;                         /* [n_layer]: KV heads of each; 0: it does not attend; owned */
    int *budget;                        /* [n_layer][n_kv_head] tokens, 1 to n_token, also of heads that a layer does
                                         * not have; owned                                        */
    char target_metric[64];             /* empty: the budget was given                            */
    double target;
    char status[16];                    /* "met", "not_shown"; empty: nothing was promised       */
    struct sh_plan_evidence evidence[SH_PLAN_EVIDENCE];
    int n_evidence;
};

void sh_plan_clear(struct sh_plan *p);                  /* zeroed is fine */
long long sh_plan_total(const struct sh_plan *p);       /* tokens of all heads that there are */
double sh_plan_mean(const struct sh_plan *p);           /* tokens of a head */

/* FNV-1a over what decides a cache: budgets of heads that there are and the length that they are for. */
uint64_t sh_plan_hash(const struct sh_plan *p);

/* Scales `tokens` of a text of `from` tokens to one of `to` tokens: rounded, at least `least`, at most all. */
int sh_plan_scale(int tokens, int from, int to, int least);

/* Gives heads that must have one size the largest budget among them. */
void sh_plan_widen(struct sh_plan *p, enum sh_plan_sizes sizes);

/* Tokens of a head on a text of n_token: the plan's own on its length, the same share of others, never fewer
 * than the policy needs or more than there are. */
int sh_plan_tokens(const struct sh_plan *p, int layer, int head, int n_token);

/* The file's text; caller frees. */
char *sh_plan_text(const struct sh_plan *p);

/* Writes a temporary file and renames it: the file is the old one or the new one, never half of it. */
int sh_plan_write(const struct sh_plan *p, const char *path, struct sh_err *e);

/* Errors name the file and the field. */
int sh_plan_read(struct sh_plan *p, const char *path, struct sh_err *e);

/* Is it for this model? fingerprint NULL or empty: not known, the shape decides. heads [n_layer]: as in the plan; NULL:
 * not known. */
int sh_plan_check_model(const struct sh_plan *p, const char *path, const char *model, const char *fingerprint,
                        int n_layer, int n_kv_head, const int *heads, struct sh_err *e);

#endif
