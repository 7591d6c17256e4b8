/* SPDX-License-Identifier: Apache-2.0 */
/* Some sequences through all layers of a model on a backend, with everything that comes out kept on the
 * host. */
#ifndef TESTS_UNIT_PASS_H
#define TESTS_UNIT_PASS_H

#include "src/model/layers/layer.h"
#include "tests/unit/backends.h"

enum { MOST_SEQ = 8, MOST_LAYER = 32 };

struct pass {
    const struct sh_arch *arch;
    int n_seq, start[MOST_SEQ + 1];
    float *hidden[MOST_LAYER + 1];                      /* [layer]: its input, all sequences; the */
                                                        /* last is the output                     */
    float *rows[MOST_LAYER][MOST_SEQ];                  /* [head][query][key <= query]; keys that */
                                                        /* a window hides are 0                   */
    int layer, disorder, filled[MOST_SEQ * 16];
};

/* Where it runs ends the running test when it fails. NULL: the test has been skipped. */
struct pass *pass_run(enum which on, struct sh_model *m, const int32_t *const tokens[], const int *lengths, int n_seq,
                      enum sh_type dtype);
void pass_free(struct pass *p);

/* The rows of one layer again, from p->hidden[layer], as attention_only asks; hidden: what the device holds
 * after it, [all tokens, d_model]. */
void pass_attention_only(enum which on, struct pass *p, struct sh_model *m, int layer, float *hidden);

int pass_length(const struct pass *p, int sequence);
size_t pass_states(const struct pass *p);               /* numbers of all hidden states           */
size_t pass_triangle(int n);                            /* scores of n rows                       */

#endif
