/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that another program recorded: tensors of safetensors or .npy files, found by their names.
 *
 * A pattern is a name with {sequence}, {layer} and {kind} in the place of a number, a number, and one of attn,
 * q, k, v. Attention is [heads, rows, keys], vectors are [heads, rows, d_head]. Dimensions before these
 * are those that the name does not give: layers, then sequences (a batch); one of a single element is skipped. An
 * index that neither gives is 0. Files stay mapped; all results point into them. */
#ifndef SH_TRACER_DUMP_H
#define SH_TRACER_DUMP_H

#include "src/model/weights.h"

enum sh_dump_kind { SH_DUMP_ATTN, SH_DUMP_Q, SH_DUMP_K, SH_DUMP_V, SH_N_DUMP_KIND };

struct sh_dump_part {                   /* one layer of one sequence                              */
    enum sh_dump_kind kind;
    int sequence, layer;                /* numbers in the file                                    */
    const struct sh_stored *tensor;     /* the tensor that contains it                            */
    const unsigned char *at;            /* [n_head, n_row, n_col], at any address                 */
    enum sh_type type;
    int n_head, n_row, n_col;
};

struct sh_dump_sequence {
    int number;                         /* number in the file                                     */
    int n_row, n_key;
};

struct sh_dump {
    struct sh_weights **file;           /* [n_file] */
    int n_file;
    struct sh_dump_part *part;          /* [n_part], by kind, sequence, layer                     */
    int n_part;
    struct sh_dump_sequence *sequence;  /* [n_seq], by number                                     */
    int n_seq, first_layer, last_layer, n_head;
    int n_kv_head, d_head;              /* sizes of the vectors; 0: there are none                */
    int has[SH_N_DUMP_KIND];            /* every layer of every sequence has it, or none          */
};

extern const char *const sh_dump_kinds[];       /* names by enum value: "attn", "q", … */

/* Pattern NULL: "s{sequence}.l{layer}.{kind}", or "s{sequence}.{kind}", or the one tensor there is. Every
 * sequence has all layers from the first to the last, all have as many heads. Close it in either case. */
int sh_dump_open(struct sh_dump *d, const char *const *path, int n_path, const char *pattern, struct sh_err *e);
void sh_dump_close(struct sh_dump *d);

/* NULL: none. */
const struct sh_dump_part *sh_dump_find(const struct sh_dump *d, enum sh_dump_kind kind, int sequence, int layer);

/* Numbers [from, from + n) of a part as floats. */
void sh_dump_read(const struct sh_dump_part *p, size_t from, size_t n, float *to);

/* Its pages may leave memory. */
void sh_dump_drop(const struct sh_dump_part *p);

#endif
