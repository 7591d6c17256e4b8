/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity.h. */

#include <math.h>

#include "planner/capacity/capacity.h"

#define GIB 0x1p30

/* Bytes that sampling holds for each logit: 16- and 32-bit logits, a sorted copy with 64-bit indices, probabilities,
 * their sums and masks. Seven of the eight posted activation peaks give 38.2 to 38.5. */
static const double sampling_bytes = 38.35;

/* The kernels of microscaled formats pad an expert's width to a multiple of it. */
enum { PADDED_WIDTH = 256 };

static double widest_layer(const struct sh_capacity_ask *a)
{
    const struct sh_kv_facts *f = &a->shape->f;
    const struct sh_kv_layer most = sh_kv_shape_most(a->shape);
    double heads = (double)(most.heads + f->kv_heads) * (a->shape->d_k + a->shape->d_v);
    double plain = most.ffn * (f->gated ? 3.0 : 2.0);
    double experts = f->used * (f->expert_ffn * 3.0 + f->hidden) + f->shared_ffn * 3.0;
    return fmax(heads, fmax(plain, experts)) / a->tp + 2.0 * f->hidden;
}

/* Activation peak of one forward pass: the widest layer's intermediate values or what sampling holds, whichever is
 * more, and the hidden states. Bytes of one GPU. */
static double activations(const struct sh_capacity_ask *a, double tokens, double sampled)
{
    const struct sh_kv_facts *f = &a->shape->f;
    double layer = tokens * widest_layer(a) * 2;
    double sampling = sampled * (f->head_rows ? f->head_rows : f->vocab) * sampling_bytes;
    return fmax(layer, sampling) + tokens * f->hidden * 2;
}

/* Bytes that padding adds to the experts of one GPU. */
static double padding(const struct sh_capacity_ask *a, int stage)
{
    const struct sh_kv_facts *f = &a->shape->f;
    struct sh_capacity_stage g;
    if (!f->experts || a->weights.experts.bits != 4 || a->weights.experts.whole_file)
        return 0;
    sh_split_stage(a, stage, 1, &g);
    double padded = ceil((double)f->expert_ffn / PADDED_WIDTH) * PADDED_WIDTH;
    double here = ceil((double)f->experts / a->ep) / f->experts;
    return (double)g.parts.bytes[SH_PART_EXPERTS] * here / a->tp * (padded / f->expert_ffn - 1);
}

int sh_server_terms(const struct sh_capacity_ask *a, const struct sh_server *s, int stage,
                    struct sh_server_term out[SH_SERVER_TERMS])
{
    const struct sh_kv_facts *f = &a->shape->f;
    int n = 0, large = (double)a->memory >= 70 * GIB && !s->is_a100;
    double sampled = s->sampled ? (double)s->sampled : large ? 1024 : 256;
    double tokens = s->at_once ? (double)s->at_once : large ? 8192 : 2048;
    double hidden = ((double)a->memory - s->visible) * a->util;
    double peak = activations(a, tokens, sampled);
    double rotary = f->positions ? 0 : 2.0 * f->max_pos * f->head_dim;
    /* With the number of sequences that a server samples for, the formula is accurate to a tenth; without it, they may
     * be fewer. */
    double least = s->sampled ? 0.9 * peak : 0.6 * peak;
    if (f->vision && !s->sampled)
        least = 0.9 * activations(a, tokens, fmin(sampled, 256));
    double pad = padding(a, stage);
    out[n++] = (struct sh_server_term){"not shown to programs",
        s->visible > 0 ? "the driver's total minus what CUDA reports, times --util" :
                         "five other GPUs: 0.23 to 0.71 GiB",
        s->visible > 0 ? hidden : 0.2 * GIB * a->util, s->visible > 0 ? hidden : 0.8 * GIB * a->util};
    out[n++] = (struct sh_server_term){"activation peak",
        f->vision ? "vLLM's warm-up with 256 to 1024 sequences; fewer in the one published log of a model with images"
        : s->sampled ? "vLLM's warm-up: 38.35 bytes for each logit of --max-seqs sequences, +-10 %"
                     : "vLLM's warm-up: 38.35 bytes for each logit of 256 or 1024 sequences, -40 % +10 %",
        least, 1.1 * peak};
    out[n++] = (struct sh_server_term){"CUDA context, libraries, NCCL",
        a->tp > 1 ? "published logs, two GPUs: 0.54 and 0.55 GiB"
                  : "published logs, one GPU: 0.13 and 0.14 GiB; 0.33 on others",
        (a->tp > 1 ? 0.5 : 0.1) * GIB, (a->tp > 1 ? 0.7 : 0.35) * GIB};
    out[n++] = (struct sh_server_term){"CUDA graphs",
        "published logs of vLLM since 0.21, which counts them: 0.2 to 0.4 GiB; older ones do not", 0, 0.5 * GIB};
    if (rotary > 0)
        out[n++] = (struct sh_server_term){"rotary table", "max_pos * head_dim * 2 bytes, where a runtime keeps one",
                                           0, rotary};
    if (pad > 0)
        out[n++] = (struct sh_server_term){"padding of experts",
                                           "widths in multiples of 256: gpt-oss pads 2880 to 3072",
                                           0.93 * pad, 1.03 * pad};
    return n;
}
