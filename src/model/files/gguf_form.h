/* SPDX-License-Identifier: Apache-2.0 */
/* How GGUF files describe the models of a family: llama.cpp's name for it, the config.json key for each of its
 * keys, and what else such files may contain (gguf_config.h). */
#ifndef SH_MODEL_FILES_GGUF_FORM_H
#define SH_MODEL_FILES_GGUF_FORM_H

enum sh_gguf_trait {
    SH_GGUF_ROTARY = 1,                     /* rotary positions                                   */
    SH_GGUF_SHARE = 2,                      /* … that may cover only a part of each head          */
    SH_GGUF_HEAD = 4,                       /* the head width is independent of the model width   */
    SH_GGUF_WINDOW = 8,                     /* every layer may have a window                      */
    SH_GGUF_CAPS = 16,                      /* Gemma: caps, its own scale, windows by a pattern   */
    SH_GGUF_LOCAL_BASE = 32,                /* windowed layers have a rotary base of their own    */
    SH_GGUF_FACTORS = 64,                   /* rope_freqs.weight may scale the frequencies        */
    SH_GGUF_ALIBI = 128,
    SH_GGUF_QKV_BIAS = 256,                 /* q, k and v have biases, the product after attention none */
    SH_GGUF_IN_PAIRS = 512                  /* rows of q and k are in another order (gguf_family.h) */
};

struct sh_gguf_item {                       /* a key that is taken over as it is                  */
    const char *name, *hub;                 /* without the architecture prefix; in config.json    */
    enum { SH_GGUF_COUNT, SH_GGUF_NUMBER, SH_GGUF_FLAG } kind;
    int optional;
};
#define SH_GGUF_COUNT_ITEM(gguf, json) {.name = gguf, .hub = json, .kind = SH_GGUF_COUNT}
#define SH_GGUF_COUNT_ITEMS(layers, width, ff, heads, positions) \
    SH_GGUF_COUNT_ITEM("block_count", layers), SH_GGUF_COUNT_ITEM("embedding_length", width), \
    SH_GGUF_COUNT_ITEM("feed_forward_length", ff), SH_GGUF_COUNT_ITEM("attention.head_count", heads), \
    SH_GGUF_COUNT_ITEM("context_length", positions)
#define SH_GGUF_NUMBER_ITEM(gguf, json) {.name = gguf, .hub = json, .kind = SH_GGUF_NUMBER}

struct sh_gguf_form {
    const char *arch;                       /* general.architecture                               */
    const struct sh_gguf_item *items;       /* ends with name == NULL                             */
    unsigned traits;                        /* enum sh_gguf_trait                                 */
    int period;                             /* CAPS: each so many layers one without a window     */
    int large;                              /* CAPS: so many layers has the one that scales by the model's width */
    int window, cap, head_cap;              /* CAPS: the defaults                                 */
    const char *share_key, *base_key;       /* config.json's names for them                       */
    const char *windowed_type;              /* WINDOW: model_type of files with one; NULL: the family's */
};

#endif
