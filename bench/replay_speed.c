/* SPDX-License-Identifier: Apache-2.0 */
/* How fast recorded scores go through replay: see bench/replay_speed.py, which runs this.
 *
 *     replay_speed ROWS N_TOKEN N_HEAD       ROWS: f32, packed causal rows, head after head
 *
 * One JSON object: billions of recorded scores per second of processor time (a thread's own; where two
 * threads run, of the clock on the wall), for each policy and budget where there are several. The best of
 * three runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/replay/replay.h"
#include "planner/replay/replay_row.h"
#include "src/base/log8.h"
#include "src/base/mem.h"
#include "src/base/num.h"
#include "traces/codec.h"

enum { N_BUDGET = 20, N_REPEAT = 3, MAX_CELL = 64 };

struct rows {
    float *score;
    int n_token, n_head;
    size_t per_head;
};

struct job {                            /* one kind of work on some heads */
    const struct rows *rows;
    int first, last;
    struct sh_policy_spec spec[MAX_CELL];
    int budget[MAX_CELL], n_cell;
    enum sh_rows kind;
    void (*head)(struct job *j, const float *score);
    double mass;                        /* mean kept mass of the first cell, to compare */
    struct sh_block *block;             /* [n_head] */
};

static const char *const stack_policies[] = {
    "h2o", "h2o:score=mean", "h2o:score=decay", "h2o:sinks=4,recent=64", "tova", "random", "window",
    "scissorhands:drop=1,threshold=i", "scissorhands:drop=1,threshold=i,counter=epochs", NULL};
static const char *const grid_policies[] = {
    "h2o", "tova", "scissorhands", "scissorhands:counter=epochs", "scissorhands:drop=1", "window", NULL};

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static _Noreturn void die(const struct sh_err *e)
{
    fprintf(stderr, "%s\n", e->text);
    exit(1);
}

static struct sh_replay_setup setup_of(const struct job *j)
{
    return (struct sh_replay_setup){.n_token = j->rows->n_token, .group = 1, .n_layer = 1, .rows = j->kind};
}

static double sink_of_sums;             /* so that nothing is optimised away */

static void read_head(struct job *j, const float *score)
{
    int above;
    for (int t = 0; t < j->rows->n_token; score += ++t)
        sink_of_sums += sh_row_sum(score, t + 1, 0.5f, &above);
}

static int keep_row(void *to, const struct sh_row *row)
{
    *(double *)to += (double)row->score[row->n - 1];
    return 0;
}

static void decode_head(struct job *j, const float *score)
{
    struct sh_err e;
    if (sh_codec_rows(&j->block[(size_t)(score - j->rows->score) / j->rows->per_head], keep_row, &sink_of_sums, &e))
        die(&e);
}

static void grid_head(struct job *j, const float *score)
{
    struct sh_err e;
    struct sh_replay_setup setup = setup_of(j);
    struct sh_replay_cell cell[MAX_CELL];
    for (int i = 0; i < j->n_cell; i++)
        cell[i] = (struct sh_replay_cell){&j->spec[i], j->budget[i]};
    struct sh_replay *r = sh_replay_new(&setup, cell, j->n_cell);
    for (int t = 0; t < setup.n_token; score += ++t)
        if (sh_replay_row(r, t, 0, &score, &e))
            die(&e);
    j->mass += sh_replay_sums(r, 0)->sum[SH_KEPT_MASS] / setup.n_token;
    sh_replay_free(r);
}

static void stack_head(struct job *j, const float *score)
{
    struct sh_err e;
    struct sh_replay_setup setup = setup_of(j);
    const struct sh_policy_spec *spec[MAX_CELL];
    struct sh_replay_sums sums;
    for (int i = 0; i < j->n_cell; i++)
        spec[i] = &j->spec[i];
    struct sh_replay_stack *s = sh_replay_stack_new(&setup, spec, j->n_cell);
    for (int t = 0; t < setup.n_token; score += ++t)
        if (sh_replay_stack_row(s, t, 0, &score, &e))
            die(&e);
    for (int i = 0; i < j->n_cell; i++)
        for (int budget = setup.n_token; budget >= j->budget[0]; budget--)
            sh_replay_stack_sums(s, i, budget, &sums);
    j->mass += sums.sum[SH_KEPT_MASS] / setup.n_token;
    sh_replay_stack_free(s);
}

static void bound_head(struct job *j, const float *score)
{
    struct sh_err e;
    struct sh_replay_setup setup = setup_of(j);
    struct sh_replay_sums sums;
    struct sh_replay_bound *b = sh_replay_bound_new(&setup);
    for (int t = 0; t < setup.n_token; score += ++t)
        if (sh_replay_bound_row(b, t, 0, &score, &e))
            die(&e);
    for (int budget = 1; budget <= setup.n_token; budget++)
        sh_replay_bound_sums(b, budget, &sums);
    sink_of_sums += sums.sum[SH_KEPT_MASS];
    sh_replay_bound_free(b);
}

static void *run_heads(void *job)
{
    struct job *j = job;
    j->mass = 0;
    for (int h = j->first; h < j->last; h++)
        j->head(j, j->rows->score + (size_t)h * j->rows->per_head);
    j->mass /= j->last - j->first;
    return NULL;
}

/* Recorded scores per second, times `each`. */
static double rate(struct job *j, double each)
{
    double best = 0, scores = (double)(j->last - j->first) * (double)j->rows->per_head * each;
    for (int i = 0; i < N_REPEAT; i++) {
        double begin = now(CLOCK_THREAD_CPUTIME_ID);
        run_heads(j);
        double speed = scores / (now(CLOCK_THREAD_CPUTIME_ID) - begin);
        best = speed > best ? speed : best;
    }
    return best / 1e9;
}

/* By the wall clock, on one thread or on two with half of the heads each. */
static double rate_of_threads(const struct job *j, double each, int n_thread)
{
    double best = 0, scores = (double)(j->last - j->first) * (double)j->rows->per_head * each;
    for (int i = 0; i < N_REPEAT; i++) {
        struct job part[2] = {*j, *j};
        pthread_t thread;
        double begin = now(CLOCK_MONOTONIC);
        if (n_thread == 2) {
            part[0].last = part[1].first = (j->first + j->last) / 2;
            if (pthread_create(&thread, NULL, run_heads, &part[1]))
                exit(1);
        }
        run_heads(&part[0]);
        if (n_thread == 2)
            pthread_join(thread, NULL);
        double speed = scores / (now(CLOCK_MONOTONIC) - begin);
        best = speed > best ? speed : best;
    }
    return best / 1e9;
}

static struct job job_of(const struct rows *rows, void (*head)(struct job *, const float *), enum sh_rows kind)
{
    return (struct job){.rows = rows, .last = rows->n_head, .kind = kind, .head = head};
}

static void add_cell(struct job *j, const char *policy, int budget)
{
    struct sh_err e;
    if (sh_policy_parse(policy, &j->spec[j->n_cell], &e))
        die(&e);
    j->budget[j->n_cell++] = budget;
}

static void stacks(const struct rows *rows)
{
    struct job all = job_of(rows, stack_head, SH_ROWS_RECORDED);
    printf("\"stack_all_budgets\": {");
    for (int i = 0; stack_policies[i]; i++) {
        struct job j = job_of(rows, stack_head, SH_ROWS_RECORDED);
        add_cell(&j, stack_policies[i], 69);
        add_cell(&all, stack_policies[i], 69);
        printf("%s\"%s\": %.3f", i ? ", " : "", stack_policies[i], rate(&j, 1));
    }
    printf("}, \"stack_together_per_policy\": %.3f, ", rate(&all, all.n_cell));
    struct job bound = job_of(rows, bound_head, SH_ROWS_RECORDED);
    printf("\"oracle_readmit_all_budgets\": %.3f, ", rate(&bound, 1));
}

static void grids(const struct rows *rows)
{
    int budget = rows->n_token / 5;
    struct job mixed = job_of(rows, grid_head, SH_ROWS_RENORMALISED);
    printf("\"grid_per_policy_and_budget\": {");
    for (int i = 0; grid_policies[i]; i++) {
        struct job j = job_of(rows, grid_head, SH_ROWS_RENORMALISED);
        for (int b = 0; b < 4; b++) {
            add_cell(&j, grid_policies[i], budget);
            add_cell(&mixed, grid_policies[i], budget);
        }
        printf("%s\"%s\": %.3f", i ? ", " : "", grid_policies[i], rate(&j, j.n_cell));
    }
    printf("}, \"grid_mixed_20_cells\": %.3f, ", rate(&mixed, mixed.n_cell));
}

/* What the other program of the comparison does: H2O at one budget, and at 20 of them. */
static void heavy_hitters(const struct rows *rows)
{
    struct job one = job_of(rows, grid_head, SH_ROWS_RECORDED), many = one, stack = one;
    stack.head = stack_head;
    add_cell(&one, "h2o", rows->n_token / 5);
    for (int i = 1; i <= N_BUDGET; i++)
        add_cell(&many, "h2o", rows->n_token * i / N_BUDGET);
    add_cell(&stack, "h2o", rows->n_token / 5);
    double one_rate = rate(&one, 1), many_rate = rate(&many, 1), stack_rate = rate(&stack, 1);
    printf("\"h2o\": {\"one_budget\": %.3f, \"20_budgets_grid\": %.4f, \"20_budgets_stack\": %.3f, "
           "\"mean_kept_mass_simulated\": %.7f, \"mean_kept_mass_stack\": %.7f}, ",
           one_rate, many_rate, stack_rate, one.mass, stack.mass);
}

static void threads(const struct rows *rows)
{
    struct job stack = job_of(rows, stack_head, SH_ROWS_RECORDED), grid = job_of(rows, grid_head, SH_ROWS_RENORMALISED);
    add_cell(&stack, "h2o", rows->n_token / 5);
    for (int i = 0; i < 4; i++)
        add_cell(&grid, "h2o", rows->n_token / 5);
    double a = rate_of_threads(&stack, 1, 1), b = rate_of_threads(&stack, 1, 2);
    double c = rate_of_threads(&grid, grid.n_cell, 1), d = rate_of_threads(&grid, grid.n_cell, 2);
    printf("\"two_threads\": {\"stack\": [%.3f, %.3f], \"grid\": [%.3f, %.3f]}", a, b, c, d);
}

/* Each head as one log8 block, as a trace has it. */
static struct sh_block *encode(const struct rows *rows, double *bytes)
{
    struct sh_block *block = xcalloc((size_t)rows->n_head, sizeof *block);
    unsigned char *code = xmalloc(rows->per_head);
    const float *score = rows->score;
    for (int h = 0; h < rows->n_head; h++) {
        unsigned char *to = code;
        for (int t = 0; t < rows->n_token; score += ++t) {
            float most = 0;
            for (int i = 0; i <= t; i++)
                most = score[i] > most ? score[i] : most;
            struct sh_log8 a = sh_log8_row(t + 1, logf(most), 0, most);
            for (int i = 0; i <= t; i++)
                *to++ = score[i] < 4e-9f ? SH_LOG8_ZERO : sh_log8_code(&a, logf(score[i]), score[i]);
        }
        block[h] = (struct sh_block){.kind = SH_BLOCK_SCORES, .head = h, .n_rows = rows->n_token,
                                     .codec = SH_CODEC_LOG8};
        block[h].bytes = sh_codec_dense(SH_CODEC_LOG8, code, rows->per_head, &block[h].blob);
        *bytes += (double)block[h].bytes;
    }
    free(code);
    return block;
}

static void reading(const struct rows *rows)
{
    double bytes = 0;
    struct job read = job_of(rows, read_head, SH_ROWS_RECORDED), decode = job_of(rows, decode_head, SH_ROWS_RECORDED);
    decode.block = encode(rows, &bytes);
    printf("\"sum_of_f32_rows\": %.3f, \"log8_decode\": %.3f, \"log8_bits_per_score\": %.3f, ", rate(&read, 1),
           rate(&decode, 1), 8 * bytes / ((double)rows->n_head * (double)rows->per_head));
    for (int h = 0; h < rows->n_head; h++)
        free(decode.block[h].blob);
    free(decode.block);
}

int main(int argc, char **argv)
{
    struct rows rows = {.n_token = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0,
                        .n_head = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0};
    if (rows.n_token < 100 || rows.n_token > 1 << 16 || rows.n_head < 2 || rows.n_head > 1024) {
        fprintf(stderr, "usage: replay_speed ROWS N_TOKEN N_HEAD\n");
        return 2;
    }
    rows.per_head = (size_t)rows.n_token * ((size_t)rows.n_token + 1) / 2;
    size_t count = rows.per_head * (size_t)rows.n_head;
    rows.score = xmalloc(count * sizeof *rows.score);
    FILE *f = fopen(argv[1], "rb");
    if (!f || fread(rows.score, sizeof *rows.score, count, f) != count) {
        fprintf(stderr, "%s: no %zu scores\n", argv[1], count);
        return 1;
    }
    fclose(f);
    printf("{\"n_token\": %d, \"heads\": %d, \"unit\": \"1e9 recorded scores/s\", ", rows.n_token, rows.n_head);
    reading(&rows);
    stacks(&rows);
    grids(&rows);
    heavy_hitters(&rows);
    threads(&rows);
    printf("}\n");
    free(rows.score);
    return sink_of_sums < 0;
}
