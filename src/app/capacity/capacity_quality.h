/* SPDX-License-Identifier: Apache-2.0 */
/* What budgets cost according to a store: results of shears eval (perplexity compared with the full cache), plans that
 * shears plan judged, and results of shears replay (kept attention mass); and the smallest budget among them that is
 * good enough: of the fewest bytes where what the policies store is counted, else of the fewest tokens. */
#ifndef SH_APP_CAPACITY_QUALITY_H
#define SH_APP_CAPACITY_QUALITY_H

#include <jansson.h>
#include <stdint.h>

#include "src/app/capacity/capacity_ask.h"
#include "src/base/err.h"
#include "traces/store.h"

enum sh_quality { SH_QUALITY_PPL, SH_QUALITY_RECALL };
enum { SH_QUALITY_SETTINGS = 400 };

/* One measured budget. */
struct sh_quality_point {
    char policy[48], knobs[192], allocator[64], budget[32];     /* budget: as capacity takes it, "0.2" or "64" */
    struct sh_measured on;              /* the texts                                               */
    char model[160];                    /* its name in the store, else its fingerprint             */
    char settings[SH_QUALITY_SETTINGS]; /* the other settings, "key=value\n" each                 */
    enum sh_quality kind;
    int bits;                           /* size of the cache's numbers                            */
    long long prefill;                  /* tokens of a text that are read before any is evicted   */
    int is_over;                        /* it kept more than its budget                           */
    int is_plan;                        /* does it belong to a plan, whose heads keep `budget` on average? */
    int is_judged;                      /* a plan that met its target on texts that its search did not use */
    double value, low, high;            /* PPL: increase as a share; RECALL: kept mass with its 95 % interval, or NaN */
    double bound;                       /* PPL: one-sided 95 % bound of the increase; NaN: not known */
    int sequences;                      /* sequences that the bound is over; 0: over tokens, as if independent */
    double tokens, length;              /* measured on; mean tokens of a text, NaN: not known       */
};

/* All measured budgets, including those of plans. Policies that cannot run (because they see the future), results that
 * kept more than their budget, and full caches are left out. models: those that are asked about, as for --model; NULL:
 * none. *out for free(). -1: the store cannot be read. */
int sh_quality_read(const char *db, const char *models, struct sh_quality_point **out, int *n, struct sh_err *e);

struct sh_quality_ask {
    enum sh_quality kind;
    double limit;                       /* increase at most, or mass at least                      */
    const char *policy;                 /* only this one; NULL: any                               */
    const char *model;                  /* others count only if the store has no results of this one; NULL: any */
    int own_model;                      /* the store has results of `model` (sh_quality_narrow)   */
    const char *measured_on;            /* name of the text; NULL: the store's only one           */
    int bits;                           /* only caches with so many bits per number               */
    uint64_t length;                    /* tokens at which budgets are compared                   */
    const struct sh_kv_shape *shape;    /* of the model, for the bytes; NULL: tokens are compared  */
    struct sh_kv_rule rule;             /* the format                                             */
};

/* The question of --max-ppl-increase or --min-recall (neither: the limit is 0) about a model whose cache has the format
 * `kv`, at --length. It keeps `shape`. */
int sh_quality_ask(const struct sh_capacity_args *a, const char *kv, const struct sh_kv_shape *shape,
                   const struct sh_quality_point *p, int n, struct sh_quality_ask *out, struct sh_err *e);
/* -1: both limits are given. */
int sh_quality_one_limit(const struct sh_capacity_args *a, struct sh_err *e);

/* Tokens that the point's budget keeps of a text of `length`. A budget in tokens says nothing about texts longer than
 * those it was measured on, and meets no limit there; a share is assumed to hold, and the evidence says so. */
double sh_quality_kept(const struct sh_quality_point *p, uint64_t length);
int sh_quality_has_enough(const struct sh_quality_point *p);    /* enough sequences for a bound that shows something? */
int sh_quality_reaches(const struct sh_quality_point *p, uint64_t length);      /* does it tell of that length? */
int sh_quality_fits(const struct sh_quality_point *p, const struct sh_quality_ask *a);  /* all but limit and length */
void sh_quality_narrow(const struct sh_quality_point *p, int n, struct sh_quality_ask *a);

/* What a limit is compared with: the bound of an increase, kept mass itself. */
double sh_quality_judged(const struct sh_quality_point *p);

/* What budgets are compared by: bytes of a sequence's cache with what the policy stores, or tokens. */
double sh_quality_size(const struct sh_quality_point *p, const struct sh_quality_ask *a);

/* The smallest budget that meets the limit; among equal budgets, the best result. NULL: none does, and e names the best
 * one; or the results were measured on several texts. */
const struct sh_quality_point *sh_quality_least(const struct sh_quality_point *p, int n, const char *db,
                                                const struct sh_quality_ask *a, struct sh_err *e);

/* Sets the hint: the command that measures more of this kind, for a policy and bits. */
void sh_quality_more(const char *db, const struct sh_quality_ask *a, struct sh_err *e);

/* The evidence as a line. If it is of another model, the line begins with that model's name. For free(). */
char *sh_quality_text(const struct sh_quality_point *p, const char *db, const char *model, uint64_t length);

/* "+0.64 %, at most +1.19 % over 24 sequences", "kept mass 0.9512": the value in few words. For free(). */
char *sh_quality_cost(const struct sh_quality_point *p);

/* "h2o:recent=10": the policy and the knobs that are not at their defaults. The second function adds the settings in
 * which the points `all` differ, p among them: "h2o:recent=10, prefill 64". Both for free(). */
char *sh_quality_policy(const struct sh_quality_point *p);
char *sh_quality_name(const struct sh_quality_point *const *all, int n, const struct sh_quality_point *p);
void sh_quality_settings(const json_t *settings, int bits, char *to, size_t bytes);

#endif
