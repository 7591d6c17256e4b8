/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights in groups (packed_group.h). */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cpu/packed_lanes.h"
#include "kernels/cpu/variant.h"
#include "src/base/mem.h"
#include "src/base/team.h"

#ifdef __AVX2__

struct grouping {
    const struct sh_packed *p;
    unsigned char *to;
};

/* A field of 16 blocks, `byte` bytes into them. */
static inline void put_field(enum sh_packing format, const unsigned char *const *from, int byte, size_t bytes,
                             unsigned char *block)
{
    unsigned char *to = block + GROUP_ROWS * group_place(format, byte);
    for (int k = 0; k < GROUP_ROWS; k++)
        memcpy(to + (size_t)k * bytes, from[k] + byte, bytes);
}

/* A word of 16 blocks. */
static lane_ints word_of_rows(const unsigned char *const *from, int byte)
{
    int32_t word[GROUP_ROWS];
    for (int k = 0; k < GROUP_ROWS; k++)
        memcpy(&word[k], from[k] + byte, sizeof *word);
    return ints_load(word);
}

/* Codes of 16 blocks that a group has in another order. */
static void put_codes(enum sh_packing format, const unsigned char *const *from, unsigned char *block)
{
    const struct lanes_at rows = {.is_group = 0};
    struct group_codes codes = group_codes(format);
    struct pieces p = pieces_of(format);
    struct lane_words w = {.at = &rows};
    for (int i = 0; i < p.n * WORDS; i++)
        w.word[i] = word_of_rows(from, p.at + 4 * i);
    if (has_fifths(format))
        w.fifths = word_of_rows(from, fifths_byte(format));
    for (int run = 0; run < sh_packing_shape(format).elements / RUN; run++) {
        lane_ints c[GROUPS];
        for (int g = 0; g < GROUPS; g++)
            c[g] = codes_of(format, &w, run, g);
        put_group_codes(codes.bits, c, block + GROUP_ROWS * (codes.place + run * 4 * codes.bits));
    }
}

static void put_group(void *arg, int group)
{
    const struct grouping *g = arg;
    const struct sh_packed *p = g->p;
    struct sh_packing_shape s = sh_packing_shape(p->format);
    struct group_codes codes = group_codes(p->format);
    const unsigned char *block[GROUP_ROWS], *scale[GROUP_ROWS];
    int blocks = p->cols / s.elements, is_apart = p->format == SH_PACKED_MXFP4_APART;
    /* Of the checkpoint's block: what is left over from whole words is its beginning or its end. */
    int own = s.bytes, words = own / 4, rest = own % 4, first = group_place(p->format, own - rest) ? rest : 0;
    int bytes = group_bytes(p->format);
    unsigned char *to = g->to + (size_t)group * GROUP_ROWS * (size_t)blocks * (size_t)bytes, *made = NULL;
    size_t row_bytes = (size_t)blocks * (size_t)own;
    if (p->blocks) {
        int left = p->rows - group * GROUP_ROWS;
        made = xmalloc(GROUP_ROWS * row_bytes);
        p->blocks(p->from, group * GROUP_ROWS, left < GROUP_ROWS ? left : GROUP_ROWS, made);
    }
    for (int k = 0; k < GROUP_ROWS; k++) {
        int row = group * GROUP_ROWS + k < p->rows ? group * GROUP_ROWS + k : p->rows - 1;
        int at = made ? row - group * GROUP_ROWS : sh_packed_row(p, row);
        block[k] = (made ? made : p->at) + (size_t)at * row_bytes;
        scale[k] = is_apart ? p->apart + (size_t)at * (size_t)blocks : NULL;
    }
    for (int i = 0; i < blocks; i++, to += GROUP_ROWS * bytes) {
        for (int k = 0; k < GROUP_ROWS && is_apart; k++)
            to[k] = scale[k][i];
        if (rest)
            put_field(p->format, block, first ? 0 : own - rest, (size_t)rest, to);
        for (int w = 0; w < words; w++)
            if (first + 4 * w < codes.first || first + 4 * w >= codes.first + codes.bytes)
                put_field(p->format, block, first + 4 * w, 4, to);
        if (codes.bits)
            put_codes(p->format, block, to);
        for (int k = 0; k < GROUP_ROWS; k++)
            block[k] += own;
    }
    free(made);
}

/* Whole huge pages where the system has them, the rest in small ones: processors read ahead within a page. */
static unsigned char *room_for(size_t bytes)
{
    enum { HUGE_PAGE = 2 << 20, LINE = 64 };
    void *at;
    if (posix_memalign(&at, bytes < HUGE_PAGE ? LINE : HUGE_PAGE, bytes + LINE))
        return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE)
        madvise(at, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return at;
}

unsigned char *CPU_NAME(cpu_grouped)(const struct sh_packed *p, int n_threads)
{
    if (!sh_packed_may_settle(p->format))
        return NULL;
    size_t groups = ((size_t)p->rows + GROUP_ROWS - 1) / GROUP_ROWS;
    size_t blocks = (size_t)(p->cols / sh_packing_shape(p->format).elements);
    size_t bytes = groups * GROUP_ROWS * blocks * (size_t)group_bytes(p->format);
    unsigned char *to = room_for(bytes);
    if (to)
        sh_team_each(n_threads, (int)groups, put_group, &(struct grouping){p, to});
    return to;
}

#endif
