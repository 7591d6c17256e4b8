/* SPDX-License-Identifier: Apache-2.0 */
/* src/model/coded_blocks.h: which coded matrices have blocks, and codes and scales that are not finite. (test_coded.c
 * compares the blocks' numbers.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/coded_blocks.h"
#include "tests/tap.h"
#include "tests/unit/coded_folder.h"

static struct sh_err e;

static void packings(void)
{
    static const struct { const char *folder, *name; enum sh_packing wanted; } matrices[] = {
        {"blocks_awq", "a", SH_PACKED_INT4_128}, {"blocks_awq", "b", SH_PACKED_INT4_128},
        {"blocks_gptq", "a", SH_PACKED_INT4_32}, {"blocks_gptq", "b", SH_PACKED_INT4_32},
        {"blocks_gptq", "c", SH_PACKED_INT4_32}, {"blocks_gptq8", "a", SH_PACKED_INT8_128},
        {"blocks_gptq8", "b", SH_PACKED_OTHER}, {"blocks_compressed", "a", SH_PACKED_INT4_128},
        {"blocks_compressed", "b", SH_PACKED_INT4_32}, {"blocks_compressed", "c", SH_PACKED_INT8_128},
        {"blocks_compressed", "d", SH_PACKED_INT8_128}, {"blocks_compressed", "e", SH_PACKED_OTHER},
        {"gptq", "a", SH_PACKED_OTHER}, {"fp8", "a", SH_PACKED_OTHER},
        {"blocks_fp8", "a", SH_PACKED_E4M3_128}, {"blocks_fp8", "b", SH_PACKED_E5M2_128},
        {"blocks_fp8_rows", "a", SH_PACKED_E4M3_128}, {"blocks_nvfp4", "a", SH_PACKED_FP4_128},
        {"blocks_nvfp4_packed", "a", SH_PACKED_FP4_128}, {"nvfp4", "a", SH_PACKED_OTHER},
        {"blocks_bnb", "a", SH_PACKED_NF4_64}, {"blocks_bnb", "b", SH_PACKED_NF4_64},
        {"blocks_bnb", "c", SH_PACKED_OTHER}, {"blocks_fp8_short", "a", SH_PACKED_E4M3_32},
        {"blocks_fp8_short", "b", SH_PACKED_OTHER}, {"blocks_fp8_short", "c", SH_PACKED_E4M3_32},
        {"blocks_fp8_short", "d", SH_PACKED_OTHER}, {"blocks_bitnet", "a", SH_PACKED_TQ2_0},
        {"blocks_bitnet", "b", SH_PACKED_INT8_128}, {"blocks_bitnet", "c", SH_PACKED_OTHER},
        {"blocks_bitnet_divides", "a", SH_PACKED_INT8_128}, {"blocks_bitnet_divides", "b", SH_PACKED_TQ2_0},
        {"blocks_bnb8", "a", SH_PACKED_INT8_128}, {"blocks_bnb8", "b", SH_PACKED_OTHER},
        {"blocks_gptq2", "a", SH_PACKED_INT4_128}, {"blocks_gptq2", "b", SH_PACKED_INT4_32},
        {"blocks_gptq3", "a", SH_PACKED_INT4_128}, {"blocks_gptq3", "b", SH_PACKED_INT4_32}};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        char *config = xstrdup(coded_golden(matrices[i].folder, "config.json")), name[20];
        struct sh_weights *w = coded_joined(config, coded_golden(matrices[i].folder, "model.safetensors"), &e);
        snprintf(name, sizeof name, "%s.weight", matrices[i].name);
        CU_ASSERT_FATAL(w != NULL && sh_weights_find(w, name) != NULL);
        CU_ASSERT(sh_weights_find(w, name)->coded->packing == matrices[i].wanted);
        sh_weights_close(w);
        free(config);
    }
}

/* Bytes of a piece with others put in are found in their row, and only there. */
static void find_in_row(const struct sh_coded *of, enum sh_piece piece, size_t at, unsigned bytes, size_t row)
{
    struct sh_coded c = *of;
    struct sh_stored changed = *of->piece[piece];
    unsigned char *all = xmalloc(changed.bytes);
    memcpy(all, changed.at, changed.bytes);
    all[at] = (unsigned char)bytes;
    if (bytes > 255)
        all[at + 1] = (unsigned char)(bytes >> 8);
    changed.at = all;
    c.piece[piece] = &changed;
    CU_ASSERT(!sh_coded_is_finite(&c, 0, c.rows) && !sh_coded_is_finite(&c, row, 1));
    CU_ASSERT(sh_coded_is_finite(&c, 0, row) && sh_coded_is_finite(&c, row + 1, c.rows - row - 1));
    free(all);
}

static void not_finite(void)
{
    static const struct {
        const char *folder, *name;
        enum sh_piece piece;
        size_t at;
        unsigned bytes;
        size_t row;
    } all[] = {
        {"blocks_fp8", "a.weight", SH_PIECE_CODES, 5 * 384 + 77, 0xff, 5},
        {"blocks_fp8", "b.weight", SH_PIECE_CODES, 9 * 256 + 255, 0x7c, 9},
        {"blocks_awq", "a.weight", SH_PIECE_SCALES, 2 * (2 * 24 + 7), 0x7c00, 7},
        {"blocks_compressed", "c.weight", SH_PIECE_SCALES, 2 * (3 * 2 + 1), 0x7fc0, 3},
        {"blocks_nvfp4", "a.weight", SH_PIECE_SCALES, 4 * 24 + 3, 0x7f, 4},
        {"blocks_bnb", "a.weight", SH_PIECE_SCALES, 4 * (6 * 3 + 1) + 2, 0x7f80, 6},
        {"blocks_fp8_short", "a.weight", SH_PIECE_CODES, 3 * 160 + 159, 0x7f, 3}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *config = xstrdup(coded_golden(all[i].folder, "config.json"));
        struct sh_weights *w = coded_joined(config, coded_golden(all[i].folder, "model.safetensors"), &e);
        const struct sh_stored *t = w ? sh_weights_find(w, all[i].name) : NULL;
        CU_ASSERT_FATAL(t != NULL);
        CU_ASSERT(sh_coded_is_finite(t->coded, 0, t->coded->rows));
        find_in_row(t->coded, all[i].piece, all[i].at, all[i].bytes, all[i].row);
        sh_weights_close(w);
        free(config);
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"which matrices have blocks", packings}, {"numbers that are not finite are found", not_finite}, {NULL, NULL}};
    return tap_run("blocks of coded matrices", tests);
}
