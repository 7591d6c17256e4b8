/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a GGUF model as the config.json that its family's tables read (config.h). Values are copied; one that
 * cannot be honoured is refused with the name of its key, as is an unknown architecture. The tensors tell whether there
 * are biases, an output head of its own and frequency factors. */
#ifndef SH_MODEL_FILES_GGUF_CONFIG_H
#define SH_MODEL_FILES_GGUF_CONFIG_H

#include <jansson.h>

#include "src/base/err.h"
#include "src/model/families/family.h"
#include "src/model/files/gguf.h"
#include "src/model/weights.h"

/* `path`: the (first) file. A new object; *names, another one, gives the file's key for each of its keys. NULL: e says
 * why. */
json_t *sh_gguf_config(const char *path, json_t **names, struct sh_err *e);

/* ---- what the files gguf_….c of the config share ---- */

enum { SH_GGUF_MOST_LAYERS = 10000 };

/* The config under construction. Keys are named without the architecture: "block_count" for "llama.block_count". */
struct sh_gguf_maker {
    const struct sh_gguf *g;
    const struct sh_weights *w;
    const struct sh_gguf_form *form;        /* of the file's family                               */
    const char *arch;                       /* of the file: the form's, or its mixed_arch         */
    int64_t n_layer, n_head, d_model, d_head;   /* 0: not known                                   */
    int64_t local_head;                     /* BY_LAYER: the width of heads in layers with a window */
    json_t *root, *names;
    struct sh_err *e;
    char key[160];
};

/* "<arch>.<name>", valid until the next call. */
const char *sh_gguf_key(struct sh_gguf_maker *m, const char *name);
int sh_gguf_has(struct sh_gguf_maker *m, const char *name);

/* Sets root[hub] to value and takes ownership of it; later messages about it name the file's key. */
void sh_gguf_put(struct sh_gguf_maker *m, const char *hub, const char *name, json_t *value);

/* -1 with what was found under the key. */
int sh_gguf_cannot(struct sh_gguf_maker *m, const char *name, const char *expected);

/* A value of 0 or more; *out is unchanged if it is absent. A list with the same number for all layers is accepted; of
 * one of heads or widths in an UNEVEN form it is the largest. */
int sh_gguf_count(struct sh_gguf_maker *m, const char *name, int64_t *out);
int sh_gguf_number(struct sh_gguf_maker *m, const char *name, double *out);

/* gguf_items.c: one item of the form. */
int sh_gguf_put_item(struct sh_gguf_maker *m, const struct sh_gguf_item *item);
int sh_gguf_has_tensor(const struct sh_gguf_maker *m, const char *name);
/* The tensor, in whose name '#' is the number of the first layer that has it; NULL: none has. */
const struct sh_stored *sh_gguf_first(const struct sh_gguf_maker *m, const char *name, int64_t layers);

/* gguf_rope.c: the base, the rotated share of a head, and scaling. */
int sh_gguf_put_rope(struct sh_gguf_maker *m);
/* Does the file have factors of frequencies for short texts and for long ones? */
int sh_gguf_is_long(const struct sh_gguf_maker *m);

/* gguf_by_layer.c: heads, feed-forward widths and rotation where layers with a window differ from others. The heads
 * come first. */
int sh_gguf_put_two_heads(struct sh_gguf_maker *m);
int sh_gguf_put_two_ropes(struct sh_gguf_maker *m);
/* UNEVEN: lists of heads and widths whose numbers differ. */
int sh_gguf_is_uneven(const struct sh_gguf_maker *m, const char *name);
int sh_gguf_put_uneven(struct sh_gguf_maker *m);
/* The KV heads of layers without a window, if layers with one have twice as many. */
int sh_gguf_put_kv_by_kind(struct sh_gguf_maker *m);

#endif
