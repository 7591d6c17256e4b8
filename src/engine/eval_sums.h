/* SPDX-License-Identifier: Apache-2.0 */
/* What a compressed cache costs a model, compared with the full one: for a row of logits the negative log-likelihood
 * of the next token, the divergence KL(full || compressed) of the next token's distribution, and whether both have the
 * same likeliest token; then sums over rows and texts. In nats and double; the order of the sums is the same on every
 * machine. */
#ifndef SH_ENGINE_EVAL_SUMS_H
#define SH_ENGINE_EVAL_SUMS_H

#include <stddef.h>
#include <stdint.h>

/* One row of logits [n_vocab]. */
struct sh_eval_row {
    const float *logits;
    double total;                       /* log sum exp; NaN: a logit is NaN or infinitely large   */
    int best;                           /* the likeliest token; the first of equal ones           */
};

struct sh_eval_row sh_eval_row_of(const float *logits, int n_vocab);

/* What one row adds to the sums. */
struct sh_eval_point {
    double nll, change, kl;             /* change: nll - the full cache's                         */
    int has_next, same, is_right;       /* is_right: the next token is the likeliest one          */
};

/* next: the token that follows; -1: none. full: the same row of the full cache; NULL: this is it. */
struct sh_eval_point sh_eval_point_of(const struct sh_eval_row *row, const struct sh_eval_row *full, int next,
                                      int n_vocab);

/* Sums over rows (a row: a token with its successor); they add up over texts. */
struct sh_eval_sums {
    long long tokens;                   /* tokens that were predicted                             */
    double nll, nll_2;                  /* and of squares, for the standard error                 */
    double change, change_2;            /* nll - the full cache's, token by token                 */
    double kl, kl_2;
    long long rows, same;               /* rows compared, the last of a text included; equal first choices */
    double seconds;
    long long read;                     /* tokens read in that time                               */
    double budget_tokens, texts;        /* sum over texts of the budget of a head, mean over heads */
    size_t kv_bytes;                    /* bytes of the largest text                              */
    int peak_tokens;                    /* the most tokens of any head                            */
};

void sh_eval_add(struct sh_eval_sums *s, const struct sh_eval_point *p);

/* Numbers of tokens in buckets that double: 0 is 1 to 32, 1 is 33 to 64, and so on; the last has no end. */
enum { SH_EVAL_BUCKETS = 18, SH_EVAL_BUCKET_FIRST = 32 };
int sh_eval_bucket(long long n);

/* Sums of parts of the texts. */
enum sh_eval_part {
    SH_EVAL_POSITION,                   /* place of the token in its text, from 1                 */
    SH_EVAL_LENGTH,                     /* tokens of its text                                     */
    SH_EVAL_DISTANCE,                   /* for answers alone: tokens since the same was said before      */
    SH_EVAL_PARTS
};

/* Where the texts' caches were. */
struct sh_eval_place {
    int on_host, on_device;             /* texts                                                  */
    char why_host[160];                 /* why the last one was on the host, although the device has memory of its */
};                                      /* own; else empty                                        */

/* Of a text: why is NULL where its cache is on the device, or on the host because the backend's memory is. */
void sh_eval_place_add(struct sh_eval_place *p, int is_on_host, const char *why);
void sh_eval_place_join(struct sh_eval_place *to, const struct sh_eval_place *from);     /* adds those of other texts */
/* "host", "device", "both"; NULL: no text was read. */
const char *sh_eval_place_name(const struct sh_eval_place *p);

/* Sums of a sequence: of a text, or of a block of a long one. */
struct sh_eval_sequence { double tokens, rows, nll, change, kl; };

enum { SH_EVAL_BLOCK = 512,             /* tokens of a block of a text                            */
       SH_EVAL_BLOCKS = 256,            /* the last one has all tokens that follow, too           */
       SH_EVAL_LEAST_SEQUENCES = 6 };   /* sequences that a standard error over them requires     */

struct sh_eval_total {
    struct sh_eval_sums all, answers;   /* answers: of the rows in front of their tokens          */
    struct sh_eval_sequence block[SH_EVAL_BLOCKS];      /* of one text: what sh_eval_total_add adds up has none */
    struct sh_eval_sums part[SH_EVAL_PARTS][SH_EVAL_BUCKETS];
    long long n_answer, n_right;        /* right: every token of it is the likeliest              */
    long long answered[SH_EVAL_BUCKETS], right[SH_EVAL_BUCKETS];        /* by distance            */
    struct sh_eval_place place;
};

/* The next row of a text: adds it to `all` and its block. */
void sh_eval_add_row(struct sh_eval_total *t, const struct sh_eval_point *p);

/* Of other texts. */
void sh_eval_total_add(struct sh_eval_total *to, const struct sh_eval_total *from);

struct sh_eval_mean { double value, error; };           /* standard error; NaN with fewer than two */

/* Share of n that is right, with the standard error of a share. */
struct sh_eval_mean sh_eval_share(long long right, long long n);

/* ---- standard errors of tokens, as if they were independent ---- */

struct sh_eval_mean sh_eval_nll(const struct sh_eval_sums *s);
struct sh_eval_mean sh_eval_perplexity(const struct sh_eval_sums *s);   /* exp(nll); the error by its slope */
struct sh_eval_mean sh_eval_change(const struct sh_eval_sums *s);       /* paired */
struct sh_eval_mean sh_eval_kl(const struct sh_eval_sums *s);
double sh_eval_agreement(const struct sh_eval_sums *s);                 /* share of equal first choices */

/* ---- standard errors over sequences ---- */

struct sh_eval_sequences {              /* start with {0}, free at                                */
    struct sh_eval_sequence *at;        /* [n] */
    int n;
};

/* Adds a text, or, with by_block, its blocks; a last block of less than half a block belongs to the one before. What
 * predicts no token is left out. */
void sh_eval_sequences_add(struct sh_eval_sequences *q, const struct sh_eval_total *text, int by_block);

/* The mean per token (KL: per row) over all sequences with its standard error: the ratio of two sums, over clusters of
 * unequal size. With m = sum s / sum w, for a sequence's sum s over its w tokens, and n sequences,
 *
 *     r = (s - m w) / mean(w),  error = sqrt(sum r^2 / (n - 1) / n)                 (Cochran, Sampling Techniques, 6.4)
 */
struct sh_eval_mean sh_eval_sequences_nll(const struct sh_eval_sequences *q);
struct sh_eval_mean sh_eval_sequences_change(const struct sh_eval_sequences *q);
struct sh_eval_mean sh_eval_sequences_kl(const struct sh_eval_sequences *q);

#define SH_EVAL_CONFIDENCE 0.95

/* What the perplexity increases by, as a share, at most: one-sided, with Student's t for n sequences or tokens. */
double sh_eval_increase_bound(struct sh_eval_mean change, long long n);

#endif
