/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch computed on a fixture checkpoint: its ref.json and ref.safetensors (the formats are in
 * tests/golden/checkpoints/README). */
#ifndef TESTS_UNIT_REFERENCE_H
#define TESTS_UNIT_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

struct reference;

/* `name`: a folder of tests/golden/checkpoints, else of the shared fixtures; NULL when it is in neither.
 * Whatever is damaged ends the running test. */
struct reference *reference_open(const char *name);
void reference_close(struct reference *r);

const char *reference_folder(const struct reference *r);
int reference_count(const struct reference *r);                     /* sequences                  */
int reference_tokens(const struct reference *r, int sequence, const int32_t **tokens);      /* how many */

/* The tensor s<sequence>.<what> as n floats, or NULL when there is none; owned by the reference. */
const float *reference_tensor(struct reference *r, int sequence, const char *what, size_t n);

#endif
