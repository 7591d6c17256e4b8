/* SPDX-License-Identifier: Apache-2.0 */
/* sh_model_check_finite. NaN and infinity are the numbers whose exponent bits are all ones; adding
 * one at the lowest exponent bit then carries into the sign's place. The whole tensor is tested
 * that way with plain integer operations; only a bad one is searched for the place. */
#include <math.h>
#include <stdatomic.h>

#include "src/base/team.h"
#include "src/model/model.h"

typedef uint32_t word32 __attribute__((may_alias));
typedef uint16_t word16 __attribute__((may_alias));

static int any_bad32(const word32 *at, size_t n)
{
    uint32_t carry = 0;
    for (size_t i = 0; i < n; i++)
        carry |= (at[i] & 0x7f800000u) + 0x00800000u;
    return carry >> 31 != 0;
}

/* exponent: the mask of the exponent bits; lowest: its lowest bit. */
static int any_bad16(const word16 *at, size_t n, uint16_t exponent, uint16_t lowest)
{
    uint16_t carry = 0;
    for (size_t i = 0; i < n; i++)
        carry = (uint16_t)(carry | (uint16_t)((at[i] & exponent) + lowest));
    return carry >> 15 != 0;
}

enum { PIECE = 1 << 16 };               /* elements that a thread looks at together */

struct looked_at {
    const struct sh_tensor *t;
    size_t n;
    atomic_int is_bad;
};

static void look_at(void *arg, int piece)
{
    struct looked_at *l = arg;
    size_t first = (size_t)piece * PIECE, n = l->n - first < PIECE ? l->n - first : PIECE;
    int bad = 0;
    switch (l->t->type) {
    case SH_F32: bad = any_bad32((const word32 *)l->t->at + first, n); break;
    case SH_F16: bad = any_bad16((const word16 *)l->t->at + first, n, 0x7c00, 0x0400); break;
    case SH_BF16: bad = any_bad16((const word16 *)l->t->at + first, n, 0x7f80, 0x0080); break;
    }
    if (bad)
        atomic_store(&l->is_bad, 1);
}

static int any_bad(const struct sh_tensor *t, size_t n)
{
    struct looked_at l = {.t = t, .n = n};
    sh_team_each(0, (int)((n + PIECE - 1) / PIECE), look_at, &l);
    return atomic_load(&l.is_bad);
}

static float element(const struct sh_tensor *t, size_t i)
{
    if (t->type == SH_F32)
        return sh_from_bits(((const word32 *)t->at)[i]);
    uint16_t half = ((const word16 *)t->at)[i];
    return t->type == SH_F16 ? sh_f16_to_f32(half) : sh_bf16_to_f32(half);
}

int sh_model_check_finite(const struct sh_tensor *t, struct sh_err *e)
{
    size_t n = t->at ? (size_t)t->rows * (size_t)t->cols : 0, i = 0;
    if (!any_bad(t, n))
        return 0;
    while (i + 1 < n && isfinite(element(t, i)))
        i++;
    return sh_fail(e,
                   "tensor '%s': element %zu (row %zu, column %zu) is %g, expected finite numbers",
                   t->name, i, i / (size_t)t->cols, i % (size_t)t->cols, (double)element(t, i));
}
