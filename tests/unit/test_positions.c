/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: embeddings and rotary positions on every backend against double precision.
 *
 * Limits: 2^-22 of the magnitudes of what is added, that is four roundings to f32; a table's row alone,
 * scaled by 1, comes out as it is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"

enum { VOCABULARY = 61, POSITIONS = 150 };

struct embed_case {
    int n, width, gap, positions, seed;                 /* positions: 1 with a table of them      */
    enum sh_type type, position_type;
    float scale;
};

static void try_embed(const struct target *t, const struct embed_case *c, struct tally *all)
{
    void *table = host_normal(c->type, (size_t)(VOCABULARY * c->width), 1, 1);
    void *positions = host_normal(c->position_type, (size_t)(POSITIONS * c->width), 2, 1);
    int32_t *id = xcalloc((size_t)c->n, sizeof *id), *position = xcalloc((size_t)c->n, sizeof *position);
    struct matrix out = matrix_new(t, SH_F32, c->n, c->width, c->gap);
    struct tally tally = {0};
    for (int i = 0; i < c->n; i++)                      /* both ends of the table among them      */
        id[i] = i < 2 ? i * (VOCABULARY - 1) : (int32_t)(sh_rng(3, (uint64_t)i) % VOCABULARY);
    for (int i = 0; i < c->n; i++)
        position[i] = i < 2 ? (1 - i) * (POSITIONS - 1)
                            : (int32_t)(sh_rng(4 + (uint64_t)c->seed, (uint64_t)i) % POSITIONS);
    struct sh_embed a = {.out = out.m, .table = table, .id = id, .position_table = c->positions ? positions : NULL,
                         .type = c->type, .position_type = c->position_type, .position = position,
                         .scale = c->scale};
    t->b->embed(t->d, &a);
    matrix_get(t, &out);
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < c->width; j++) {
            size_t at = (size_t)id[i] * (size_t)c->width + (size_t)j;
            size_t place = (size_t)position[i] * (size_t)c->width + (size_t)j;
            double x = (double)c->scale * host_at(c->type, table, at);
            double p = c->positions ? host_at(c->position_type, positions, place) : 0;
            double limit = c->scale == 1 && !c->positions ? 0 : 0x1p-22 * (fabs(x) + fabs(p));
            compare(&tally, matrix_at(&out, i, j), x + p, limit);
        }
    int touched = matrix_gap_touched(&out);
    if (tally.wrong || touched)
        printf("# %d rows of %d, %s + %s (%d): %d wrong, %d bytes between rows\n", c->n, c->width,
               sh_type_name(c->type), sh_type_name(c->position_type), c->positions, tally.wrong, touched);
    CU_ASSERT(tally.wrong == 0 && touched == 0);
    all->worst = fmax(all->worst, tally.worst);
    matrix_free(t, &out);
    free(table);
    free(positions);
    free(id);
    free(position);
}

static void embeddings(const struct target *t)
{
    static const int counts[] = {1, 7, 33, 129}, widths[] = {1, 8, 40, 64, 129};
    struct tally all = {0};
    int turn = 0;
    for (int shape = 0; shape < 20; shape++)
        for (int types = 0; types < 9; types++, turn++) {
            struct embed_case c = {.n = counts[shape / 5], .width = widths[shape % 5], .gap = turn % 2 * 5,
                                   .type = (enum sh_type)(types / 3), .position_type = (enum sh_type)(types % 3),
                                   .positions = turn % 4 > 0, .seed = turn % 3,
                                   .scale = turn % 5 < 2 ? 1.0f : sqrtf((float)widths[shape % 5])};
            if (!t->small || turn % 5 == 0)
                try_embed(t, &c, &all);
        }
    if (!t->small)                                      /* more than is sent at once */
        try_embed(t, &(struct embed_case){.n = 1100, .width = 4099, .scale = 3}, &all);
    printf("# worst error: %.2f of the limit\n", all.worst);
}
EACH_BACKEND(embeddings)

struct rotary_case {
    int heads, d_head, n_rot, gap;
    const int *first;                                   /* NULL: each sequence begins at position 0 */
};

static const int lengths[] = {7, 1, 129, 33};
enum { N_SEQ = 4 };

/* What element i of a head at this position becomes; *size: the magnitudes of what is added. */
static double turned(const struct rotary_case *c, const struct matrix *x, int row, int head, int i,
                     const struct matrix *cosines, const struct matrix *sines, int position, double *size)
{
    int half = c->n_rot / 2, first = head * c->d_head;
    double own = matrix_at(x, row, first + i);
    *size = 0;                                          /* after n_rot nothing changes */
    if (i >= c->n_rot)
        return own;
    int pair = i % half, second = i >= half;
    double other = matrix_at(x, row, first + (second ? i - half : i + half));
    double a = own * matrix_at(cosines, position, pair), b = other * matrix_at(sines, position, pair);
    *size = fabs(a) + fabs(b);
    return second ? a + b : a - b;
}

static void try_rotary(const struct target *t, const struct rotary_case *c, const int *start, struct tally *all)
{
    int rows = start[N_SEQ];
    struct matrix x = matrix_new(t, SH_F32, rows, c->heads * c->d_head, c->gap);
    struct matrix cosines = matrix_new(t, SH_F32, POSITIONS, c->n_rot / 2, 0);
    struct matrix sines = matrix_new(t, SH_F32, POSITIONS, c->n_rot / 2, 0);
    struct tally tally = {0};
    matrix_normal(t, &x, 4, 1);
    matrix_normal(t, &cosines, 5, 1);                   /* any numbers: scaled tables are no circle either */
    matrix_normal(t, &sines, 6, 1);
    struct sh_rotary a = {.x = x.m, .d_head = c->d_head, .n_rot = c->n_rot, .cos = cosines.m.at,
                          .sin = sines.m.at, .n_seq = N_SEQ, .start = start, .first = c->first};
    t->b->rotary(t->d, &a);
    struct matrix found = x;
    found.host = xmalloc((size_t)rows * x.m.stride * sizeof(float));
    matrix_get(t, &found);
    for (int s = 0; s < N_SEQ; s++)
        for (int row = start[s]; row < start[s + 1]; row++)
            for (int i = 0; i < c->heads * c->d_head; i++) {
                int position = row - start[s] + (c->first ? c->first[s] : 0);
                double size, y = turned(c, &x, row, i / c->d_head, i % c->d_head, &cosines, &sines, position, &size);
                compare(&tally, matrix_at(&found, row, i), y, 0x1p-22 * size);
            }
    int touched = matrix_gap_touched(&found);
    if (tally.wrong || touched)
        printf("# %d heads of %d, %d turn: %d wrong, %d bytes between rows\n", c->heads, c->d_head, c->n_rot,
               tally.wrong, touched);
    CU_ASSERT(tally.wrong == 0 && touched == 0);
    all->worst = fmax(all->worst, tally.worst);
    free(found.host);
    matrix_free(t, &x);
    matrix_free(t, &cosines);
    matrix_free(t, &sines);
}

static void rotary(const struct target *t)
{
    static const int shape[][3] = {{4, 8, 8}, {1, 40, 10}, {2, 64, 64}, {3, 80, 32}, {1, 2, 2}, {2, 128, 128},
                                   {1, 256, 64}, {2, 7, 6}};            /* heads, d_head, n_rot   */
    static const int first[N_SEQ] = {0, 149, 21, 3};
    struct tally all = {0};
    int start[N_SEQ + 1] = {0};
    for (int s = 0; s < N_SEQ; s++)
        start[s + 1] = start[s] + (t->small && lengths[s] > 40 ? 40 : lengths[s]);
    for (int i = 0; i < 8; i++)
        for (int gap = 0; gap <= 3; gap += 3) {
            struct rotary_case c = {.heads = shape[i][0], .d_head = shape[i][1], .n_rot = shape[i][2], .gap = gap,
                                    .first = i % 2 ? first : NULL};
            try_rotary(t, &c, start, &all);
        }
    printf("# worst error: %.2f of the limit\n", all.worst);
}
EACH_BACKEND(rotary)

/* Asked by the leak checker: it looks into the thread-local memory of modules that were closed, and crashes there.
 * Nothing of this program is reached only from such memory. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "use_tls=0";
}

int main(void)
{
    static const struct tap_test tests[] = {
        LIST_BACKENDS("embed: tables of all types, positions, scale", embeddings),
        LIST_BACKENDS("rotary: halves and neighbours, whole heads and parts, several sequences", rotary),
        {0}};
    return tap_run("positions", tests);
}
