/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/packed_group.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/team.h"

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

static void put_group(void *arg, int group)
{
    const struct grouping *g = arg;
    const struct sh_packed *p = g->p;
    struct sh_packing_shape s = sh_packing_shape(p->format);
    const unsigned char *block[GROUP_ROWS], *scale[GROUP_ROWS];
    int blocks = p->cols / s.elements, is_apart = p->format == SH_PACKED_MXFP4_APART;
    /* Of the checkpoint's block; small ones begin with what is no word, others end with it. */
    int own = s.bytes, words = own / 4, rest = own % 4, first = blocks * 32 == p->cols ? rest : 0;
    int bytes = group_bytes(p->format);
    unsigned char *to = g->to + (size_t)group * GROUP_ROWS * (size_t)blocks * (size_t)bytes;
    for (int k = 0; k < GROUP_ROWS; k++) {
        int row = group * GROUP_ROWS + k, at = sh_packed_row(p, row < p->rows ? row : p->rows - 1);
        block[k] = p->at + (size_t)at * (size_t)blocks * (size_t)own;
        scale[k] = is_apart ? p->apart + (size_t)at * (size_t)blocks : NULL;
    }
    for (int i = 0; i < blocks; i++, to += GROUP_ROWS * bytes) {
        for (int k = 0; k < GROUP_ROWS && is_apart; k++)
            to[k] = scale[k][i];
        if (rest)
            put_field(p->format, block, first ? 0 : own - rest, (size_t)rest, to);
        for (int w = 0; w < words; w++)
            put_field(p->format, block, first + 4 * w, 4, to);
        for (int k = 0; k < GROUP_ROWS; k++)
            block[k] += own;
    }
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

unsigned char *cpu_grouped(const struct sh_packed *p, int n_threads)
{
    if (!sh_packed_is_code(p->format))
        return NULL;
    size_t groups = ((size_t)p->rows + GROUP_ROWS - 1) / GROUP_ROWS;
    size_t blocks = (size_t)(p->cols / sh_packing_shape(p->format).elements);
    size_t bytes = groups * GROUP_ROWS * blocks * (size_t)group_bytes(p->format);
    unsigned char *to = room_for(bytes);
    if (to)
        sh_team_each(n_threads, (int)groups, put_group, &(struct grouping){p, to});
    return to;
}
