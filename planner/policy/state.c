/* SPDX-License-Identifier: Apache-2.0 */
/* See state.h. */
#include "planner/policy/state.h"

#include <stdint.h>
#include <string.h>

#include "src/base/mem.h"

#define SCORE_ARRAY(of_kind, bytes)                                                           \
    {{.pointer = offsetof(struct sh_score_state, score), .element = sizeof(float),            \
      .kind = of_kind, .resident = bytes}, {0}}
const struct sh_array sh_score_kept[] = SCORE_ARRAY(SH_PER_SLOT, sizeof(float));
const struct sh_array sh_score_derived[] = SCORE_ARRAY(SH_PER_SLOT_UNCLEARED, 0);

enum { LINE = 128 };                    /* bytes that arrays are padded to: 32 slots of 4 bytes */

static size_t padded(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static size_t rows_of(const struct sh_array *a, const struct sh_policy_head *h)
{
    return a->rows ? a->rows(h) : 1;
}

/* Elements of a row. */
static size_t row_of(const struct sh_array *a, const struct sh_policy_head *h)
{
    if (a->kind == SH_PER_CHANNEL || a->kind == SH_CHANNEL_SCRATCH)
        return (size_t)h->d_head;
    return a->kind == SH_PER_SLOT_BITS ? ((size_t)h->capacity + 31) / 32 : (size_t)h->capacity;
}

static size_t elements(const struct sh_array *a, const struct sh_policy_head *h)
{
    return rows_of(a, h) * row_of(a, h);
}

static void *array(const void *s, const struct sh_array *a)
{
    void *at;
    memcpy(&at, (const char *)s + a->pointer, sizeof at);
    return at;
}

size_t sh_state_bytes(const struct sh_policy *p, const struct sh_policy_head *h)
{
    size_t bytes = padded(p->state_bytes);
    for (const struct sh_array *a = p->arrays; a && a->kind; a++)
        bytes += padded(elements(a, h) * a->element);
    return bytes;
}

/* No books are kept where nothing is decided. */
size_t sh_state_resident_bytes(const struct sh_policy *p, const struct sh_policy_head *h)
{
    size_t bytes = 0;
    for (const struct sh_array *a = p->arrays; a && a->kind; a++)
        bytes += elements(a, h) * a->resident;
    return p->keeps_all && p->keeps_all(h->knob, h->layer) ? 0 : bytes;
}

size_t sh_state_of_head(const struct sh_policy_spec *p, int layer, int n_layer, int d_head, int kept, int n_token)
{
    struct sh_policy_head h = {.policy = p->policy, .knob = p->knob, .layer = layer, .n_layer = n_layer, .budget = kept,
                               .capacity = kept, .n_token = n_token, .d_head = d_head};
    return sh_state_resident_bytes(p->policy, &h);
}

/* An array without rows: NULL. */
static void place(void *s, const struct sh_policy *p, const struct sh_policy_head *h)
{
    char *next = (char *)s + padded(p->state_bytes);
    for (const struct sh_array *a = p->arrays; a && a->kind; a++) {
        size_t n = elements(a, h);
        void *at = rows_of(a, h) ? next : NULL;
        memcpy((char *)s + a->pointer, &at, sizeof at);
        next += padded(n * a->element);
    }
}

void *sh_state_new(const struct sh_policy *p, const struct sh_policy_head *h)
{
    return p->state_bytes ? xaligned(sh_state_bytes(p, h)) : NULL;
}

void sh_state_restart(void *s, const struct sh_policy *p, const struct sh_policy_head *h)
{
    if (!s)
        return;
    memset(s, 0, sh_state_bytes(p, h));
    place(s, p, h);
}

static __attribute__((noinline)) void clear_rows(void *s, const struct sh_array *a, const struct sh_policy_head *h,
                                                 int slot)
{
    for (; a->kind == SH_PER_SLOT; a++)
        for (size_t i = 0, n = rows_of(a, h); i < n; i++)
            memset((char *)array(s, a) + (i * (size_t)h->capacity + (size_t)slot) * a->element, 0, a->element);
}

/* Fast for what most policies have: single rows of 4 bytes. */
void sh_state_clear(void *s, const struct sh_policy *p, const struct sh_policy_head *h, int slot)
{
    const struct sh_array *a = p->arrays;
    for (; a && a->kind == SH_PER_SLOT && a->element == sizeof(float) && !a->rows; a++)
        memset((float *)array(s, a) + slot, 0, sizeof(float));
    if (a && a->kind == SH_PER_SLOT)
        clear_rows(s, a, h, slot);
}

/* One row of elements by slot. What stays free is left as it is. */
static void move_row(char *to, const char *from, size_t element, const struct sh_move *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->from[i] >= 0) {
            char *at = to + (size_t)i * element;
            const char *old = from + (size_t)m->from[i] * element;
            if (element == sizeof(uint32_t))            /* constant sizes: no calls */
                memcpy(at, old, sizeof(uint32_t));
            else
                memcpy(at, old, sizeof(uint64_t));
        }
}

static void move_bits(uint32_t *to, const uint32_t *from, const struct sh_move *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->from[i] >= 0)
            to[i / 32] |= (from[m->from[i] / 32] >> (m->from[i] % 32) & 1) << (i % 32);
}

static void move_array(const struct sh_array *a, struct sh_state_end to, struct sh_state_end from,
                       const struct sh_move *m)
{
    char *now = array(to.s, a), *old = array(from.s, a);
    size_t n = rows_of(a, to.h), wide = row_of(a, to.h) * a->element, was = row_of(a, from.h) * a->element;
    for (size_t i = 0; i < n; i++, now += wide, old += was)
        if (a->kind == SH_PER_CHANNEL)
            memcpy(now, old, wide);
        else if (a->kind == SH_PER_SLOT_BITS)
            move_bits((uint32_t *)now, (uint32_t *)old, m);
        else
            move_row(now, old, a->element, m);
}

void sh_state_move(const struct sh_policy *p, struct sh_state_end to, struct sh_state_end from, const struct sh_move *m)
{
    if (!to.s)
        return;
    sh_state_restart(to.s, p, to.h);
    memcpy(to.s, from.s, p->state_bytes);
    place(to.s, p, to.h);
    for (const struct sh_array *a = p->arrays; a && a->kind; a++)
        if (a->kind != SH_SLOT_SCRATCH && a->kind != SH_CHANNEL_SCRATCH)
            move_array(a, to, from, m);
}
