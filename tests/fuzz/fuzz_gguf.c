/* SPDX-License-Identifier: Apache-2.0 */
/* One GGUF file as a model: its header, its metadata as a config, its tensors, all unpacked. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/coded.h"
#include "src/model/files/gguf.h"
#include "src/model/model.h"
#include "src/model/weights.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

/* Everything that the metadata point to is read. */
static unsigned read_values(const struct sh_gguf *g)
{
    unsigned sum = 0;
    for (size_t i = 0; i < g->n; i++) {
        struct sh_gguf_value *v = &g->values[i];
        for (size_t k = 0; k < v->n; k++) {
            if (v->item == SH_GGUF_STRING) {
                struct sh_gguf_text text = sh_gguf_string_at(v, k);
                for (size_t c = 0; c < text.bytes; c++)
                    sum += (unsigned char)text.at[c];
            } else if (v->item != SH_GGUF_ARRAY)
                sum += sh_gguf_real_at(v, k) > 0 ? 1u : (unsigned)sh_gguf_whole_at(v, k);
        }
    }
    return sum;
}

static unsigned read_numbers(const struct sh_stored *t)
{
    size_t rows = 1, cols = t->shape[t->rank - 1];
    unsigned sum = 0;
    for (int i = 0; i + 1 < t->rank; i++)
        rows *= t->shape[i];
    float *x = xcalloc(cols, sizeof *x);
    for (size_t row = 0; row < rows; row++) {
        sh_stored_rows(t, row, 1, x);
        for (size_t i = 0; i < cols; i++)
            sum += x[i] > 0;
    }
    free(x);
    return sum;
}

static unsigned read_tensors(const struct sh_weights *w)
{
    struct sh_err e;
    char shape[200];
    unsigned sum = 0;
    for (size_t i = 0; i < sh_weights_count(w); i++) {
        const struct sh_stored *t = sh_weights_at(w, i);
        enum sh_type type;
        sh_stored_type(t, &type, &e);
        for (size_t k = 0; k < t->bytes; k++)
            sum += t->at[k];
        sum += t->packed && t->bytes ? read_numbers(t) : 0;
        if (sh_weights_find(w, t->name) != t || strlen(sh_stored_shape(t, shape, sizeof shape)) >= sizeof shape)
            abort();
    }
    return sum;
}

static unsigned read_model(struct sh_model *m)
{
    struct sh_err e;
    unsigned sum = 0;
    for (int layer = -1; layer < sh_model_arch(m)->n_layer; layer++) {
        for (int role = layer < 0 ? 0 : SH_LAYER_ROLE; role < (layer < 0 ? SH_LAYER_ROLE : SH_N_ROLE); role++) {
            struct sh_tensor t;
            if (sh_model_tensor(m, (enum sh_role)role, layer, &t, &e) || !t.at)
                continue;
            const unsigned char *at = t.at;
            for (size_t k = 0; k < (size_t)t.rows * (size_t)t.cols * sh_type_bytes(t.type); k++)
                sum += at[k];
        }
        sh_model_drop(m, layer);
    }
    return sum + (unsigned)sh_model_fingerprint(m);
}

/* Sound is what opens as a model. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    unsigned sum = 0;
    scratch_clear();
    struct sh_weights *w = sh_weights_open(scratch_write("m.gguf", data, size), &e);
    if (w)
        sum = read_values(sh_weights_gguf(w)) + read_tensors(w);
    sh_weights_close(w);
    struct sh_model *m = sh_model_open(scratch_path("m.gguf"), &e);
    if (m)
        sum += read_model(m);
    fuzz_accepted += m != NULL && sum + 1 > 0;
    sh_model_close(m);
    return 0;
}
