/* SPDX-License-Identifier: Apache-2.0 */
/* See words.h. */
#include "tests/fuzz/words.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/scratch.h"

static const char tokenizer[] =
    "{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 0, \"content\": \"<s>\", \"special\": true}, "
    "{\"id\": 1, \"content\": \"<unk>\", \"special\": true}], \"normalizer\": null, "
    "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}, "
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", "
    "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {\"<s>\": "
    "{\"id\": \"<s>\", \"ids\": [0], \"tokens\": [\"<s>\"]}}}, \"decoder\": {\"type\": \"ByteLevel\"}, "
    "\"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"fuse_unk\": false, \"byte_fallback\": false, "
    "\"vocab\": {\"<s>\": 0, \"<unk>\": 1, \"a\": 2, \"b\": 3, \"c\": 4, \"ab\": 5, \"abc\": 6, \"\\u0120\": 7, "
    "\"\\u0120a\": 8, \"1\": 9, \"2\": 10, \"\\u00c3\": 11, \"\\u00a9\": 12, \"bc\": 13, \"\\u010a\": 14}, "
    "\"merges\": [\"a b\", \"ab c\", \"\\u0120 a\", \"b c\"]}}";

static const struct sh_tokenizer *words(void)
{
    static struct sh_tokenizer *t;
    struct sh_err e;
    if (t)
        return t;
    scratch_write("tokenizer.json", tokenizer, sizeof tokenizer - 1);
    t = sh_tokenizer_open(scratch_folder(), &e);
    if (!t || sh_tokenizer_size(t) != FUZZ_WORDS || !sh_tokenizer_start(t, NULL)) {
        printf("# %s\n", t ? "the tokenizer is not what it should be" : e.text);
        abort();
    }
    return t;
}

static int digit(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : 0;
}

char fuzz_texts_asked(const uint8_t **data, size_t *size, struct sh_texts *t)
{
    struct fuzz_part asked = fuzz_until('\n', data, size);
    *t = (struct sh_texts){.tokenizer = words(), .max_pos = FUZZ_POSITIONS, .n_vocab = FUZZ_WORDS};
    if (asked.bytes < 4)
        return 0;
    t->length = digit(asked.at[1]);
    t->least = digit(asked.at[2]);
    t->most = digit(asked.at[3]);
    return (char)asked.at[0];
}

void fuzz_texts_check(const struct sh_texts *t)
{
    if (t->most && t->n > t->most)
        abort();
    for (int i = 0; i < t->n; i++) {
        const struct sh_trace_sequence *q = &t->sequence[i];
        if (q->n_tokens < 1 || q->n_tokens < t->least || q->n_tokens > (t->length ? t->length : t->max_pos))
            abort();
        for (int k = 0; k < q->n_tokens; k++)
            if (q->tokens[k] < 0 || q->tokens[k] >= t->n_vocab)
                abort();
    }
}
