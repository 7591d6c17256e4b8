/* SPDX-License-Identifier: Apache-2.0 */
/* The layer-major sweep: one layer's weights are loaded, all sequences go through it, their attention
 * is recorded, the weights are dropped. Weights are read once per run however many sequences there
 * are, and memory holds one layer (two where the device has its own memory: the next one is on its way
 * while this one computes), the activations of one chunk of sequences and the hidden states.
 *
 * Several devices share the sequences: each sweeps the layers over its own chunks.
 *
 * There is no KV cache and no output head: a trace needs neither. The result of a sequence does not
 * depend on which layers of it are recorded, so a resumed sweep, which only recomputes the layers it
 * finds done, continues bit by bit. */
#ifndef SH_TRACER_SWEEP_H
#define SH_TRACER_SWEEP_H

#include "kernels/backend.h"
#include "src/base/progress.h"
#include "src/model/model.h"
#include "src/tracer/recorder.h"
#include "traces/writer.h"

/* One process of several that hold neighbouring layers of one model, each its own range [first, last] all at
 * once: a chunk of sequences comes in from the one before, goes through these layers, and goes on to the
 * next. Weights are then read once by all together. */
struct sh_sweep_link {
    int first, last;                            /* layers held here                                     */
    /* The hidden states of a chunk, [rows, sh_arch_row] f32: from the process before (not asked for when first is
     * 0), to the next process (not when last is the last layer that is traced). -1: e says why. */
    int (*take)(void *to, float *rows, size_t bytes, struct sh_err *e);
    int (*give)(void *to, const float *rows, size_t bytes, struct sh_err *e);
    void *to;
};

struct sh_sweep {
    const struct sh_backend *backend;
    struct sh_dev *const *device;               /* [n_device], all of this backend */
    int n_device;
    struct sh_model *model;
    const char *model_path;                     /* path as the user gave it, for errors */
    enum sh_type dtype;
    int weight_bits;                            /* bits of matrices on the device: 16 (as dtype), or codes of 8 or 4 */
    int first_layer, last_layer;                /* recorded, inclusive; those before are computed only  */
    const struct sh_trace_sequence *sequence;   /* [n] */
    int n, first_sequence;                      /* first_sequence: number of sequence[0] within the run */
    const unsigned char *done;                  /* [n, last_layer - first_layer + 1]: recorded before   */
    struct sh_recorder_options record;
    const char *vectors;                        /* any of "qkv", or ""                                  */
    size_t memory_bytes;                        /* what the hidden states may take before they spill, and what */
                                                /* experts of a layer may take in memory before they go */
    const char *spill_folder;
    struct sh_writer *writer;
    struct sh_progress *progress;               /* progress in tokens x layers                          */
    int n_threads;                              /* threads of a device, as it was opened                */
    struct sh_stages *stages;                   /* NULL: time is not measured                           */
    const struct sh_sweep_link *link;           /* NULL: all layers are here; else one device, `done` is ignored */
};

/* What the sweep will take at its peak, before anything is allocated. */
struct sh_sweep_needs {
    size_t layer_bytes, activation_bytes, hidden_bytes; /* of weights (but experts) and activations on a device, */
                                                /* and in memory                                        */
    size_t device_bytes;                        /* bytes in all, of a device with its own memory; else 0 */
    int rows;                                   /* tokens that go through a layer together, at most     */
    int layers_at_once;                         /* 2: the next is loaded while this one computes        */
    size_t expert_room;                         /* room for a layer's experts; those beyond it do not stay      */
    int spills;                                 /* the hidden states go to a temporary file             */
    int stay;                                   /* a device keeps its chunks' hidden states between layers */
};

/* -1 when a device is too small: e says how much it needs. */
int sh_sweep_needs(const struct sh_sweep *s, struct sh_sweep_needs *out, struct sh_err *e);

/* 0, or -1. After Ctrl-C: -1 with what to do in the hint; what was pushed is whole. */
int sh_sweep_run(const struct sh_sweep *s, struct sh_err *e);

#endif
