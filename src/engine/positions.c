/* SPDX-License-Identifier: Apache-2.0 */
/* The turn is that of kernels/backend.h's rotary with halves paired, in the same order of
 * operations. */
#include "src/engine/rows.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/clones.h"

void sh_positions_leave(int *place, int n_slot, const int *slot, int n, int *scratch)
{
    if (!n)
        return;
    memset(scratch, 0, ((size_t)n_slot + 1) * sizeof *scratch);
    for (int i = 0; i < n; i++) {
        scratch[place[slot[i]]] = 1;
        place[slot[i]] = -1;
    }
    for (int i = 0, gone = 0; i <= n_slot; i++) {       /* how many older ones have left */
        gone += scratch[i];
        scratch[i] = gone;
    }
    for (int i = 0; i < n_slot; i++)
        if (place[i] >= 0)
            place[i] -= scratch[place[i]];
}

int sh_turn_new(struct sh_turn *t, const struct sh_rope *rope, int n_rot, int n, struct sh_err *e)
{
    size_t bytes = (size_t)n * (size_t)(n_rot / 2) * sizeof(float);
    *t = (struct sh_turn){.n_rot = n_rot, .n = n, .cosine = malloc(bytes + 1), .sine = malloc(bytes + 1)};
    if (!t->cosine || !t->sine)
        return sh_fail(e, "the rotary angles of %d positions do not fit into memory: %zu bytes", n, 2 * bytes);
    sh_rope_table(rope, n_rot, sh_rope_length(rope, n), 0, n, t->cosine, t->sine);
    return 0;
}

void sh_turn_free(struct sh_turn *t)
{
    free(t->cosine);
    free(t->sine);
    *t = (struct sh_turn){0};
}

SH_CLONES static void turn(const float *x, const float *restrict cosine, const float *restrict sine, int half,
                           float *to)
{
    for (int i = 0; i < half; i++) {
        float a = x[i], b = x[half + i];
        to[i] = a * cosine[i] - b * sine[i];
        to[half + i] = b * cosine[i] + a * sine[i];
    }
}

void sh_turn_rows(const struct sh_turn *t, const float *from, const int *place, int n, int d, float *to)
{
    size_t half = (size_t)t->n_rot / 2, width = (size_t)d;
    for (int j = 0; j < n; j++) {
        const float *x = from + (size_t)j * width;
        float *y = to + (size_t)j * width;
        if (place[j] >= 0)
            turn(x, t->cosine + (size_t)place[j] * half, t->sine + (size_t)place[j] * half, (int)half, y);
        if (x != y && place[j] >= 0)
            memcpy(y + t->n_rot, x + t->n_rot, (width - (size_t)t->n_rot) * sizeof *y);
        else if (x != y)
            memcpy(y, x, width * sizeof *y);
    }
}
