/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/common/text_source.h"

struct sh_tokenizer *sh_text_tokenizer(const char *path, int n_vocab, struct sh_err *e)
{
    struct sh_tokenizer *t = sh_tokenizer_open(path, e);
    if (!t || sh_tokenizer_size(t) <= n_vocab)
        return t;
    sh_fail(e, "%s: the tokenizer has %d tokens, more than the model's vocabulary of %d", path, sh_tokenizer_size(t),
            n_vocab);
    sh_tokenizer_free(t);
    return NULL;
}

static int open_model(struct sh_text_source *s, struct sh_err *e)
{
    if (!(s->model = sh_model_open(s->path, e)))
        return -1;
    sh_model_prune(s->model, s->prune);
    const struct sh_arch *a = sh_model_arch(s->model);
    if (s->length > a->max_pos)
        return sh_misused(e, "--length: found %d, expected at most the model's %d positions", s->length, a->max_pos);
    if (!s->text->n && !s->jsonl)
        return 0;
    return (s->tokenizer = sh_text_tokenizer(s->path, a->n_vocab, e)) ? 0 : -1;
}

int sh_texts_check_predicted(const struct sh_texts *s, const struct sh_arch *a, struct sh_err *e)
{
    for (int i = 0; i < s->n && (a->n_out || a->n_mute); i++) {
        const struct sh_trace_sequence *t = &s->sequence[i];
        for (int k = 1; k < t->n_tokens; k++) {
            int token = t->tokens[k];
            if (sh_arch_predicts(a, token))
                continue;
            if (a->n_out && token >= a->n_out)
                return sh_fail(e, "sequence %d, element %d: found token %d, expected at most %d: the output head has "
                               "no row for it", i + 1, k, token, a->n_out - 1);
            return sh_fail(e, "sequence %d, element %d: found token %d, expected none from %d to %d: the model never "
                           "predicts these parts of pictures", i + 1, k, token, a->mute, a->mute + a->n_mute - 1);
        }
    }
    return 0;
}

int sh_text_source_open(struct sh_text_source *s, struct sh_err *e)
{
    if (open_model(s, e))
        return -1;
    const struct sh_arch *a = sh_model_arch(s->model);
    s->texts = (struct sh_texts){.tokenizer = s->tokenizer, .length = s->length, .max_pos = a->max_pos,
                                 .n_vocab = a->n_vocab, .most = s->count, .least = s->least};
    int bad = 0;
    for (int i = 0; i < s->text->n && !bad; i++)
        bad = sh_texts_text(&s->texts, s->text->at[i], e);
    if (!bad && s->jsonl)
        bad = sh_texts_jsonl(&s->texts, s->jsonl, s->field, e);
    if (!bad && s->tokens)
        bad = sh_texts_tokens(&s->texts, s->tokens, e);
    if (!bad && !s->texts.n)
        bad = sh_fail(e, "%s: found no sequence, expected a text of at least %d token%s",
                      s->jsonl ? s->jsonl : s->tokens ? s->tokens : s->text->at[0], s->least > 1 ? s->least : 1,
                      s->least > 1 ? "s" : "");
    return bad ? -1 : sh_texts_check_predicted(&s->texts, a, e);
}

void sh_text_source_close(struct sh_text_source *s)
{
    sh_sequences_free(s->texts.sequence, s->texts.n);
    sh_tokenizer_free(s->tokenizer);
    sh_model_close(s->model);
    s->texts = (struct sh_texts){0};
    s->tokenizer = NULL;
    s->model = NULL;
}

int sh_text_source_longest(const struct sh_text_source *s)
{
    int longest = 0;
    for (int i = 0; i < s->texts.n; i++)
        longest = s->texts.sequence[i].n_tokens > longest ? s->texts.sequence[i].n_tokens : longest;
    return longest;
}

long long sh_text_source_tokens(const struct sh_text_source *s)
{
    long long n = 0;
    for (int i = 0; i < s->texts.n; i++)
        n += s->texts.sequence[i].n_tokens;
    return n;
}

struct sh_measured sh_text_source_measured(const struct sh_text_source *s)
{
    struct sh_measured m = {0};
    for (int i = 0; i < s->texts.n; i++)
        sh_measured_add(&m, s->texts.sequence[i].source, s->texts.sequence[i].tokens, s->texts.sequence[i].n_tokens);
    return m;
}
