/* SPDX-License-Identifier: Apache-2.0 */
/* What this program itself holds (capacity_show.h). */
#include <stdio.h>

#include "src/cli/capacity_show.h"

static void term(struct sh_out *o, const char *name, uint64_t bytes, const char *how)
{
    sh_out_item(o);
    sh_out_text(o, "term", "term", name);
    sh_out_int(o, "bytes", "bytes", (long long)bytes);
    sh_out_real(o, "gib", "GiB", (double)bytes / 0x1p30, 3);
    sh_out_text(o, "how", "how", how);
}

static void terms(struct sh_out *o, const struct sh_capacity_own *w)
{
    char how[SH_CAPACITY_WORD + 96];
    sh_out_list(o, "terms", "memory of this program, CPU, products in f32");
    term(o, "weights", w->weights, "as the next two terms");
    term(o, "  mapped", w->mapped, "codes of the file, shared with other processes, not copied");
    term(o, "  copied", w->copied, "in another order or type");
    snprintf(how, sizeof how, "keys and values in %s, positions", w->kv);
    term(o, "cache per token", w->token, how);
    snprintf(how, sizeof how, "%llu tokens, within windows and the budget", (unsigned long long)w->length);
    term(o, "cache per sequence", w->sequence, how);
    snprintf(how, sizeof how, "%llu sequence%s", (unsigned long long)w->batch, w->batch == 1 ? "" : "s");
    term(o, "cache", w->cache, how);
    snprintf(how, sizeof how, "of %d tokens together, their hidden states, and logits", w->rows);
    term(o, "activations", w->activations, how);
    term(o, "own memory", w->most, "copied + cache + activations");
    sh_out_end(o);
}

void sh_capacity_show_own(struct sh_out *o, const struct sh_capacity_own *w)
{
    sh_out_text(o, "model", "model", w->model);
    sh_out_text(o, "engine", "engine", SH_CAPACITY_OWN);
    sh_out_int(o, "length", "tokens of a sequence", (long long)w->length);
    sh_out_int(o, "batch", "sequences", (long long)w->batch);
    terms(o, w);
    sh_out_list(o, "weights", "weights in memory, by format");
    for (int i = 0; i < w->n_format; i++) {
        const struct sh_kept_format *f = &w->format[i];
        sh_out_item(o);
        sh_out_text(o, "format", "format", f->name);
        sh_out_int(o, "parameters", "parameters", (long long)f->parameters);
        sh_out_int(o, "bytes", "bytes", (long long)f->bytes);
        sh_out_int(o, "mapped_bytes", "mapped", (long long)f->mapped);
        sh_out_int(o, "copied_bytes", "copied", (long long)(f->bytes - f->mapped));
    }
    sh_out_end(o);
    sh_out_note(o, "Scratch of products and attention and the program itself come on top; a policy's state where "
                "--state says it.");
}
