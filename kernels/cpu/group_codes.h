/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of 3, 5 and 6 bits in a group (packed_group.h), in an order that takes few operations to undo: bytes of words
 * begin with codes that only have to be masked, or shifted and masked; what is left of each byte has parts of the
 * others. A run of 32 codes is 4 times as many bytes as a code has bits. Lanes are as in packed_lanes.h: c[g] has codes
 * 4 g to 4 g + 3 of a run, as bytes. */
#ifndef SH_KERNELS_CPU_GROUP_CODES_H
#define SH_KERNELS_CPU_GROUP_CODES_H

#include "kernels/cpu/lanes.h"
#include "kernels/packed.h"

#ifdef __AVX2__

/* Codes that a group has in another order than blocks. */
struct group_codes {
    int bits;                           /* of a code; 0: the format has none                      */
    int first, bytes;                   /* of a block                                             */
    int place;                          /* of a block in a group: of the first word, of one row   */
};

static inline __attribute__((always_inline)) struct group_codes group_codes(enum sh_packing format)
{
    switch (format) {
    case SH_PACKED_Q5_0: return (struct group_codes){5, 2, 20, 2};
    case SH_PACKED_Q5_1: return (struct group_codes){5, 4, 20, 4};
    case SH_PACKED_Q5_K: return (struct group_codes){5, 16, 160, 16};
    case SH_PACKED_Q6_K: return (struct group_codes){6, 0, 192, 18};
    case SH_PACKED_Q3_K: return (struct group_codes){3, 0, 96, 14};
    default: return (struct group_codes){0, 0, 0, 0};
    }
}

/* Word i of 16 rows. */
LANE lane_ints group_word(const unsigned char *at, int i)
{
    return ints_load(at + LANES * 4 * i);
}

/* 6 bits: three words have four codes. */
LANE lane_ints group_code_of_6(const unsigned char *run, int g)
{
    const unsigned char *at = run + LANES * 12 * (g / 4);
    lane_ints last;
    if (g % 4 < 3)
        return masked(group_word(at, g % 4), 0x3f);
    last = ints_or(masked(group_word(at, 0), 0xc0), moved(group_word(at, 1), 6, 4, 0x30));
    return ints_right(ints_or(last, moved(group_word(at, 2), 6, 2, 0x0c)), 2);
}

LANE void put_codes_of_6(const lane_ints c[8], lane_ints word[6])
{
    for (int i = 0; i < 6; i++)
        word[i] = ints_or(c[i / 3 * 4 + i % 3], moved(c[i / 3 * 4 + 3], 4 - i % 3 * 2, 6, 0xc0));
}

/* 5 bits: five words have five codes in their lower bits. The three upper bits of the first word and two of the second
 * are one more, those of the third and the fourth word another; the bits that are left are the last one. */
LANE lane_ints group_code_of_5(const unsigned char *run, int g)
{
    lane_ints high, low;
    if (g < 5)
        return masked(group_word(run, g), 0x1f);
    if (g < 7) {
        high = masked(group_word(run, 2 * (g - 5)), 0xe0);
        low = moved(group_word(run, 2 * (g - 5) + 1), 6, 3, 0x18);
    } else {
        high = ints_or(masked(group_word(run, 4), 0xe0), moved(group_word(run, 1), 5, 4, 0x10));
        low = moved(group_word(run, 3), 5, 3, 0x08);
    }
    return ints_right(ints_or(high, low), 3);
}

LANE void put_codes_of_5(const lane_ints c[8], lane_ints word[5])
{
    for (int i = 0; i < 2; i++) {
        word[2 * i] = ints_or(c[2 * i], moved(c[5 + i], 2, 5, 0xe0));
        word[2 * i + 1] = ints_or(ints_or(c[2 * i + 1], moved(c[5 + i], 0, 6, 0xc0)), moved(c[7], 1 - i, 5, 0x20));
    }
    word[4] = ints_or(c[4], moved(c[7], 2, 5, 0xe0));
}

/* 3 bits: three words have two codes each, and in the two upper bits the bits of two more. */
LANE lane_ints group_code_of_3(const unsigned char *run, int g)
{
    lane_ints low;
    if (g < 6)
        return moved(group_word(run, g % 3), g / 3 * 3, 0, 7);
    low = g == 6 ? moved(group_word(run, 2), 7, 5, 0x20) : moved(group_word(run, 2), 6, 5, 0x20);
    return ints_right(ints_or(masked(group_word(run, g - 6), 0xc0), low), 5);
}

LANE void put_codes_of_3(const lane_ints c[8], lane_ints word[3])
{
    for (int i = 0; i < 3; i++)
        word[i] = ints_or(c[i], ints_left(c[3 + i], 3));
    for (int i = 0; i < 2; i++) {
        word[i] = ints_or(word[i], moved(c[6 + i], 1, 6, 0xc0));
        word[2] = ints_or(word[2], i ? moved(c[7], 0, 6, 0x40) : moved(c[6], 0, 7, 0x80));
    }
}

/* c[g] of a run of so many bits. */
LANE lane_ints group_code(int bits, const unsigned char *run, int g)
{
    return bits == 3 ? group_code_of_3(run, g) : bits == 5 ? group_code_of_5(run, g) : group_code_of_6(run, g);
}

/* A run, from all of its codes. */
LANE void put_group_codes(int bits, const lane_ints c[8], unsigned char *run)
{
    lane_ints word[6];
    if (bits == 3)
        put_codes_of_3(c, word);
    else if (bits == 5)
        put_codes_of_5(c, word);
    else
        put_codes_of_6(c, word);
    for (int i = 0; i < bits; i++)
        ints_store(run + LANES * 4 * i, word[i]);
}

#endif
#endif
