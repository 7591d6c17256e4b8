/* SPDX-License-Identifier: Apache-2.0 */
/* Documents with lists of answers (words.h says how they begin): answers are tokens of their text, in order, and every
 * error names the file. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/app/eval/eval_job.h"
#include "tests/fuzz/words.h"
#include "tests/unit/scratch.h"

static void check(const struct sh_eval_answers *a, const struct sh_texts *t)
{
    int all = 0;
    if (a->texts != t->n)
        abort();
    for (int i = 0; i < a->texts; i++) {
        int before = 1;
        for (int k = 0; k < a->n[i]; k++) {
            const struct sh_eval_answer *answer = &a->of[i][k];
            if (answer->from < before || answer->to <= answer->from || answer->to > t->sequence[i].n_tokens ||
                answer->said < -1 || answer->said > answer->from)
                abort();
            before = answer->to;
        }
        all += a->n[i];
    }
    if (!all || all != a->all || a->cut < 0 || !sh_eval_answers_hash(a))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_text_source s = {.field = "text"};
    struct sh_eval_answers a = {0};
    fuzz_texts_asked(&data, &size, &s.texts);
    char *path = xstrdup(scratch_write("documents", data, size));
    s.jsonl = path;
    s.tokenizer = (struct sh_tokenizer *)s.texts.tokenizer;
    if (!sh_texts_jsonl(&s.texts, path, s.field, &e) && s.texts.n) {
        if (sh_eval_answers_read(&a, &s, "answers", &e)) {
            fuzz_names(&e, path);
        } else {
            check(&a, &s.texts);
            fuzz_accepted++;
        }
        sh_eval_answers_free(&a);
    }
    sh_sequences_free(s.texts.sequence, s.texts.n);
    free(path);
    return 0;
}
