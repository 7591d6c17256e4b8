/* SPDX-License-Identifier: Apache-2.0 */
/* See prompt.h. */
#include "src/cli/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/model/config.h"
#include "src/tracer/texts.h"

static int encode(struct sh_prompt *p, const char *text, size_t bytes, struct sh_err *e)
{
    int32_t start = sh_tokenizer_bos(p->tokenizer);
    if (!bytes)
        return sh_misused(e, "the prompt is empty: expected at least one token of text");
    if (start >= 0) {
        p->ids = (struct sh_ids){xmalloc(sizeof start), 1, 1};
        p->ids.at[0] = start;
    }
    return sh_tokenizer_encode(p->tokenizer, text, bytes, 0, &p->ids, e);
}

static int read_ids(struct sh_prompt *p, const struct sh_arch *a, struct sh_err *e)
{
    struct sh_texts t = {.max_pos = a->max_pos, .n_vocab = a->n_vocab, .most = 1};
    int bad = sh_texts_tokens(&t, p->tokens, e);
    if (!bad && !t.n)
        bad = sh_fail(e, "%s: the prompt is empty: expected a JSON array of token ids", p->tokens);
    for (int i = 0; !bad && i < t.sequence[0].n_tokens; i++) {
        p->ids.at = xreallocarray(p->ids.at, p->ids.n + 1, sizeof *p->ids.at);
        p->ids.at[p->ids.n++] = t.sequence[0].tokens[i];
    }
    p->ids.cap = p->ids.n;
    sh_sequences_free(t.sequence, t.n);
    return bad;
}

static int read_text(struct sh_prompt *p, const struct sh_arch *a, const char *model_path, struct sh_err *e)
{
    size_t bytes = p->text ? strlen(p->text) : 0;
    char *whole = NULL;
    if (sh_tokenizer_size(p->tokenizer) > a->n_vocab)
        return sh_fail(e, "%s: the tokenizer has %d tokens, the model's vocabulary %d", model_path,
                       sh_tokenizer_size(p->tokenizer), a->n_vocab);
    if (p->file && !(whole = sh_file_read(p->file, SH_MOST_TEXT, &bytes, e)))
        return -1;
    int bad = encode(p, whole ? whole : p->text, bytes, e);
    free(whole);
    return bad ? sh_err_prefix(e, "%s", p->file ? p->file : "--prompt") : 0;
}

/* eos_token_id: a number, or a list of them. */
static int read_ends(struct sh_prompt *p, const char *model_path, int n_vocab, struct sh_err *e)
{
    struct sh_config *c = sh_config_open(model_path, e);
    char key[] = "eos_token_id.0";
    int bad = !c, is_list = c && sh_config_has(c, key);
    for (int i = 0; !bad && i < 8; i++) {
        key[13] = (char)('0' + i);
        int id = -1;
        bad = sh_config_at_least(c, is_list ? key : "eos_token_id", 0, n_vocab - 1, &id, e);
        if (id < 0 || (!is_list && i))
            break;
        p->end[p->n_end++] = id;
    }
    sh_config_close(c);
    return bad ? -1 : 0;
}

int sh_prompt_open(struct sh_prompt *p, const char *model_path, const struct sh_arch *a, struct sh_err *e)
{
    struct sh_err why;
    if (!p->text + !p->file + !p->tokens != 2)
        return sh_misused(e, "a prompt is needed: one of --prompt TEXT, --prompt-file FILE and --tokens FILE");
    p->tokenizer = sh_tokenizer_open(model_path, &why);
    if (!p->tokenizer && !p->tokens) {
        *e = why;
        return -1;
    }
    if (p->tokens ? read_ids(p, a, e) : read_text(p, a, model_path, e))
        return -1;
    if (p->is_bounded && p->ids.n > (size_t)a->max_pos)
        return sh_misused(e, "the prompt has %zu tokens, the model knows %d positions", p->ids.n, a->max_pos);
    return read_ends(p, model_path, a->n_vocab, e);
}

void sh_prompt_close(struct sh_prompt *p)
{
    sh_tokenizer_free(p->tokenizer);
    free(p->ids.at);
    p->tokenizer = NULL;
    p->ids = (struct sh_ids){0};
}

int sh_prompt_is_end(const struct sh_prompt *p, int32_t token)
{
    for (int i = 0; i < p->n_end; i++)
        if (p->end[i] == token)
            return 1;
    return 0;
}
