/* SPDX-License-Identifier: Apache-2.0 */
/* From a dump of attention to trace records: every row is checked, packed as a backend would pack it,
 * and passed to the recorder. One (sequence, layer) is in memory at a time, compressed. */
#ifndef SH_TRACER_IMPORT_H
#define SH_TRACER_IMPORT_H

#include "src/base/progress.h"
#include "src/tracer/dump.h"
#include "src/tracer/recorder.h"
#include "traces/writer.h"

enum sh_import_kind { SH_IMPORT_CAUSAL, SH_IMPORT_BIDIRECTIONAL, SH_IMPORT_CROSS };

extern const char *const sh_import_kinds[];             /* names by enum value, NULL ends */

struct sh_import {
    const struct sh_dump *dump;
    enum sh_import_kind kind;
    const int *window;                          /* [n_window], of layer l: window[l % n_window]; 0: none    */
    int n_window;
    double tolerance;                           /* how far the sum of a row may be from 1                   */
    const struct sh_trace_sequence *sequence;   /* [dump->n_seq]: rows after n_tokens are padding           */
    const unsigned char *done;                  /* [n_seq, layers]: recorded before                         */
    struct sh_recorder_options record;
    const char *vectors;                        /* any of "qkv" that the dump has, or ""                    */
    int n_threads;
    struct sh_progress *progress;               /* progress in sequences x layers                           */
};

/* Checks every wanted row: numbers >= 0 that sum to 1, and 0 where the mask forbids attention; writer NULL: does no
 * more. -1: e names the first bad row. */
int sh_import(const struct sh_import *m, struct sh_writer *writer, struct sh_err *e);

#endif
