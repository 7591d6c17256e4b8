/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of a warp meet: each brings a value and waits until all lanes of its mask are there with the
 * same mask, for the same thing. Lanes outside the mask are not involved. */
#include "tests/emu/block.h"

namespace emu {

static const char *collective_name(Collective kind)
{
    static const char *const name[] = {"__syncwarp",      "__shfl_sync",   "__shfl_up_sync", "__shfl_down_sync",
                                       "__shfl_xor_sync", "__ballot_sync", "__any_sync",     "__all_sync"};
    return name[kind];
}

const char *waits_in(unsigned thread)
{
    return collective_name(block.warp[thread / WARP].kind[thread % WARP]);
}

static unsigned lowest(unsigned lanes)
{
    return (unsigned)__builtin_ctz(lanes);
}

static void check_same(const Warp &w, unsigned own, unsigned other)
{
    if (w.mask[other] == w.mask[own] && w.kind[other] == w.kind[own])
        return;
    unsigned first = running.thread / WARP * WARP;
    const Site &here = block.thread[first + own].site, &there = block.thread[first + other].site;
    fail("%s (%s:%d) of lanes %08x: thread %u waits in %s (%s:%d) of lanes %08x", collective_name(w.kind[own]), here.file,
         here.line, w.mask[own], first + other, collective_name(w.kind[other]), there.file, there.line, w.mask[other]);
}

static void check_mask(const Warp &w, unsigned mask, Collective kind, Site site)
{
    const char *name = collective_name(kind);
    unsigned warp = running.thread / WARP, left = block.n - warp * WARP, missing = left < WARP ? mask >> left : 0;
    if (!(mask >> running.thread % WARP & 1))
        fail("%s (%s:%d): the mask %08x leaves its own lane out", name, site.file, site.line, mask);
    if (missing)
        fail("%s (%s:%d): the mask %08x names lanes that the block of %u threads does not have", name, site.file, site.line,
             mask, block.n);
    if (mask & w.gone)
        fail("%s (%s:%d): the mask %08x names thread %u, which has returned", name, site.file, site.line, mask,
             warp * WARP + lowest(mask & w.gone));
}

/* After __syncwarp each lane knows what the others had done. */
static void share_clocks(unsigned first, unsigned mask)
{
    uint32_t known[WARP] = {};
    for (unsigned left = mask; left; left &= left - 1) {
        const uint32_t *clock = running.clock[first + lowest(left)];
        for (int l = 0; l < WARP; l++)
            known[l] = known[l] > clock[l] ? known[l] : clock[l];
    }
    for (unsigned left = mask; left; left &= left - 1) {
        unsigned lane = lowest(left);
        memcpy(running.clock[first + lane], known, sizeof known);
        running.clock[first + lane][lane]++;
    }
}

static unsigned votes_of(const Warp &w, unsigned mask)
{
    unsigned votes = 0;
    for (unsigned left = mask; left; left &= left - 1)
        votes |= (unsigned)(w.value[lowest(left)] != 0) << lowest(left);
    return votes;
}

static void give_results(Warp &w, unsigned own)
{
    Collective kind = w.kind[own];
    unsigned mask = w.mask[own], votes = kind >= BALLOT ? votes_of(w, mask) : 0;
    for (unsigned left = mask; left; left &= left - 1) {
        unsigned to = lowest(left);
        check_same(w, own, to);
        if (kind == SYNCWARP || kind >= BALLOT)
            w.result[to] = votes;
        else if (mask >> w.from[to] & 1)
            w.result[to] = w.value[w.from[to]];
        else {
            unsigned thread = running.thread / WARP * WARP + to;
            const Site &site = block.thread[thread].site;
            fail("%s (%s:%d): thread %u reads lane %d, which the mask %08x leaves out", collective_name(kind), site.file,
                 site.line, thread, w.from[to], mask);
        }
    }
}

uint64_t collect(Collective kind, unsigned mask, uint64_t value, int from, Site site)
{
    unsigned warp = running.thread / WARP, own = running.thread % WARP, bit = 1u << own;
    Warp &w = block.warp[warp];
    w.kind[own] = kind;
    w.mask[own] = mask;
    w.value[own] = value;
    w.from[own] = from;
    block.thread[running.thread].site = site;
    check_mask(w, mask, kind, site);
    unsigned here = w.waiting & mask;
    if (here)                           /* the others are compared when all are here */
        check_same(w, own, lowest(here));
    if ((here | bit) != mask) {
        w.waiting |= bit;
        wait_for_others(AT_WARP);
        return w.result[own];
    }
    give_results(w, own);
    if (kind == SYNCWARP)
        share_clocks(warp * WARP, mask);
    w.waiting &= ~mask;
    make_ready(warp, mask & ~bit);
    return w.result[own];
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
    const Warp &w = block.warp[running.thread / WARP];
    for (unsigned left = w.waiting; left; left &= left - 1) {
        unsigned lane = lowest(left), other = running.thread / WARP * WARP + lane;
        const Site &site = block.thread[other].site;
        if (w.mask[lane] >> running.thread % WARP & 1)
            fail("it returns, and thread %u waits for it in %s (%s:%d)", other, collective_name(w.kind[lane]), site.file,
                 site.line);
    }
}

}
