/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of a warp meet: each brings a value and waits until all lanes of its mask are there with the
 * same mask, for the same thing. Lanes outside the mask are not involved. */
#include "tests/emu/block.h"

namespace emu {

const char *collective_name(Collective kind)
{
    static const char *const name[] = {"__syncwarp",      "__shfl_sync",   "__shfl_up_sync", "__shfl_down_sync",
                                       "__shfl_xor_sync", "__ballot_sync", "__any_sync",     "__all_sync"};
    return name[kind];
}

static void check_same(const Thread *own, const Thread *other)
{
    if (other->mask != own->mask || other->kind != own->kind)
        fail("%s (%s:%d) of lanes %08x: thread %td waits in %s (%s:%d) of lanes %08x", collective_name(own->kind),
             own->site.file, own->site.line, own->mask, other - block.thread, collective_name(other->kind),
             other->site.file, other->site.line, other->mask);
}

static void check_mask(const Thread *own, unsigned warp)
{
    const char *name = collective_name(own->kind);
    unsigned left = block.n - warp * WARP, missing = left < WARP ? own->mask >> left : 0;
    if (!(own->mask >> running.thread % WARP & 1))
        fail("%s (%s:%d): the mask %08x leaves its own lane out", name, own->site.file, own->site.line, own->mask);
    if (missing)
        fail("%s (%s:%d): the mask %08x names lanes that the block of %u threads does not have", name, own->site.file,
             own->site.line, own->mask, block.n);
    if (own->mask & block.gone[warp])
        fail("%s (%s:%d): the mask %08x names thread %u, which has returned", name, own->site.file, own->site.line,
             own->mask, warp * WARP + (unsigned)__builtin_ctz(own->mask & block.gone[warp]));
}

/* After __syncwarp each lane knows what the others had done. */
static void share_clocks(unsigned first, unsigned mask)
{
    uint32_t known[WARP] = {};
    for (unsigned left = mask; left; left &= left - 1) {
        const uint32_t *clock = running.clock[first + (unsigned)__builtin_ctz(left)];
        for (int l = 0; l < WARP; l++)
            known[l] = known[l] > clock[l] ? known[l] : clock[l];
    }
    for (unsigned left = mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        memcpy(running.clock[first + lane], known, sizeof known);
        running.clock[first + lane][lane]++;
    }
}

static void give_results(Thread *lane, const Thread *own)
{
    unsigned votes = 0;
    for (unsigned left = own->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        check_same(own, &lane[l]);
        votes |= (unsigned)(lane[l].value != 0) << l;
    }
    for (unsigned left = own->mask; left; left &= left - 1) {
        Thread *to = &lane[__builtin_ctz(left)];
        if (own->kind == SYNCWARP || own->kind >= BALLOT)
            to->result = votes;
        else if (own->mask >> to->from & 1)
            to->result = lane[to->from].value;
        else
            fail("%s (%s:%d): thread %td reads lane %d, which the mask %08x leaves out", collective_name(own->kind),
                 to->site.file, to->site.line, to - block.thread, to->from, own->mask);
    }
}

uint64_t collect(Collective kind, unsigned mask, uint64_t value, int from, Site site)
{
    unsigned warp = running.thread / WARP, bit = 1u << running.thread % WARP;
    Thread *own = &block.thread[running.thread], *lane = &block.thread[warp * WARP];
    own->kind = kind;
    own->mask = mask;
    own->value = value;
    own->from = from;
    own->site = site;
    check_mask(own, warp);
    unsigned here = block.waiting[warp] & mask;
    if (here)                           /* the others are compared when all are here */
        check_same(own, &lane[__builtin_ctz(here)]);
    if ((here | bit) != mask) {
        block.waiting[warp] |= bit;
        wait_for_others(AT_WARP);
        return own->result;
    }
    give_results(lane, own);
    if (kind == SYNCWARP)
        share_clocks(warp * WARP, mask);
    block.waiting[warp] &= ~mask;
    make_ready(warp, mask & ~bit);
    return own->result;
}

int shuffle_from(Collective kind, int operand, int width, Site site)
{
    int lane = (int)(running.thread % WARP), first = lane & ~(width - 1), from = lane;
    if (width < 1 || width > WARP || width & (width - 1))
        fail("%s (%s:%d): a width of %d", collective_name(kind), site.file, site.line, width);
    if (kind == SHUFFLE)
        return first + (operand & (width - 1));
    if (kind == SHUFFLE_UP)
        from = lane - operand < first ? lane : lane - operand;
    else if (kind == SHUFFLE_DOWN)
        from = lane + operand >= first + width ? lane : lane + operand;
    else
        from = (lane ^ operand) >= first + width ? lane : lane ^ operand;
    return from;
}

void check_lanes_left()
{
    unsigned warp = running.thread / WARP;
    for (unsigned left = block.waiting[warp]; left; left &= left - 1) {
        const Thread *other = &block.thread[warp * WARP + (unsigned)__builtin_ctz(left)];
        if (other->mask >> running.thread % WARP & 1)
            fail("it returns, and thread %td waits for it in %s (%s:%d)", other - block.thread,
                 collective_name(other->kind), other->site.file, other->site.line);
    }
}

}
