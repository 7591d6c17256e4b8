/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of a GGUF file's tensors (capacity_names.h). Names are those of the GGUF specification. */
#include <stdlib.h>
#include <string.h>

#include "src/app/capacity/capacity_names.h"
#include "src/base/mem.h"
#include "src/model/files/gguf_tensors.h"

/* The part of a layer that a tensor belongs to, by its name after "blk.N.". */
static int layer_part(const char *name)
{
    if (strstr(name, "norm"))
        return SH_PART_NORM;
    if (!strncmp(name, "ffn_gate_inp", 12) || !strncmp(name, "exp_probs", 9))
        return SH_PART_ROUTER;
    if (strncmp(name, "ffn_", 4))
        return SH_PART_MIX;
    return strstr(name, "_exps") ? SH_PART_EXPERTS : strstr(name, "_shexp") ? SH_PART_SHARED : SH_PART_FEED;
}

/* The part of a tensor; -1: unknown. *row: its layer; `layers`: before the layers; layers + 1: after them. */
static int place(const char *name, int layers, int *row)
{
    static const struct { const char *name; int part, is_after; } ends[] = {
        {"token_embd.", SH_PART_EMBED, 0}, {"token_embd_norm.", SH_PART_NORM, 0},
        {"position_embd.", SH_PART_POSITIONS, 0}, {"rope_freqs.", SH_PART_NORM, 0},
        {"rope_factors_", SH_PART_NORM, 0}, {"output_norm.", SH_PART_NORM, 1},
        {"output.", SH_PART_HEAD, 1}};
    if (!strncmp(name, "blk.", 4)) {
        char *end;
        long n = strtol(name + 4, &end, 10);
        *row = (int)n;
        return end == name + 4 || *end != '.' || n < 0 || n >= layers ? -1 : layer_part(end + 1);
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!strncmp(name, ends[i].name, strlen(ends[i].name))) {
            *row = layers + ends[i].is_after;
            return ends[i].part;
        }
    return -1;
}

static int add_up(const struct sh_weights *w, struct sh_kv_shape *s, struct sh_err *e)
{
    for (size_t i = 0; i < sh_weights_count(w); i++) {
        const struct sh_stored *t = sh_weights_at(w, i);
        int row = 0, part = place(t->name, s->f.layers, &row);
        if (part < 0)
            return sh_fail(e, "%s: unknown tensor '%s'", t->file, t->name);
        s->stored[row][part] += t->bytes;
    }
    return 0;
}

int sh_capacity_stored(const char *path, struct sh_kv_shape *s, struct sh_err *e)
{
    char *file = NULL;
    if (sh_gguf_path(path, &file, e))
        return -1;
    if (!file)
        return 0;
    struct sh_weights *w = sh_weights_open(file, e);
    free(file);
    s->stored = w ? xcalloc((size_t)s->f.layers + 2, sizeof *s->stored) : NULL;
    int bad = !w || add_up(w, s, e);
    sh_weights_close(w);
    return bad ? -1 : 0;
}
