/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/generate/prompts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/model/config/config.h"

enum { MOST = 1 << 22 };                 /* tokens of a prompt, where the model's positions set no limit */

static int read_text(struct sh_prompts *p, struct sh_err *e)
{
    int is_input = p->text && !strcmp(p->text, "-");
    size_t bytes = p->text ? strlen(p->text) : 0;
    char *whole = NULL;
    if ((p->file && !(whole = sh_file_read(p->file, SH_MOST_TEXT, &bytes, e))) ||
        (is_input && !(whole = sh_input_read(SH_MOST_TEXT, &bytes, e))))
        return -1;
    bytes -= is_input && bytes && whole[bytes - 1] == '\n';     /* of echo */
    size_t mark = whole ? sh_utf8_mark(whole, bytes) : 0;
    bytes -= mark;
    int bad = bytes ? sh_texts_add(&p->texts, "prompt", whole ? whole + mark : p->text, bytes, e)
                    : sh_misused(e, "the prompt is empty, expected at least one token of text");
    free(whole);
    return bad ? sh_err_prefix(e, "%s", p->file ? p->file : is_input ? "standard input" : "--prompt") : 0;
}

static int read_all(struct sh_prompts *p, const char *model_path, const struct sh_arch *a, struct sh_err *e)
{
    p->texts = (struct sh_texts){.tokenizer = p->tokenizer, .max_pos = MOST + 1, .n_vocab = a->n_vocab,
                                 .most = p->tokens && !p->count ? 1 : p->count};
    if (!p->tokens && sh_tokenizer_size(p->tokenizer) > a->n_vocab)
        return sh_fail(e, "%s: the tokenizer has %d tokens, more than the model's vocabulary of %d", model_path,
                       sh_tokenizer_size(p->tokenizer), a->n_vocab);
    if (!p->tokens && !p->jsonl)
        return read_text(p, e);
    if (p->tokens ? sh_texts_tokens(&p->texts, p->tokens, e) : sh_texts_jsonl(&p->texts, p->jsonl, p->field, e))
        return -1;
    return p->texts.n ? 0 : sh_fail(e, "%s: the prompt is empty, expected a JSON array of token ids", p->tokens);
}

static int check_lengths(const struct sh_prompts *p, const struct sh_arch *a, struct sh_err *e)
{
    int most = p->is_bounded ? a->max_pos : MOST;
    for (int i = 0; i < p->texts.n; i++) {
        const struct sh_trace_sequence *q = &p->texts.sequence[i];
        const char *name = p->texts.n > 1 ? q->source : "";
        if (q->n_tokens > most && p->is_bounded) {
            sh_misused(e, "%s%sthe prompt has %d tokens, more than the model's %d positions", name, *name ? ": " : "",
                       q->n_tokens, most);
            sh_hint(e, "use --positions cache with a --policy that evicts and a --budget for longer texts");
            return -1;
        }
        if (q->n_tokens > most)
            return sh_misused(e, "%s%sthe prompt has more than the limit of %d tokens", name, *name ? ": " : "", most);
    }
    return 0;
}

/* eos_token_id: a number, or a list of them. */
static int read_ends(struct sh_prompts *p, const char *model_path, int n_vocab, struct sh_err *e)
{
    struct sh_config *c = sh_config_open(model_path, e);
    char key[32] = "eos_token_id.0";
    int bad = !c, is_list = c && sh_config_has(c, key);
    for (int i = 0; !bad && i < (is_list ? n_vocab : 1); i++) {
        snprintf(key, sizeof key, is_list ? "eos_token_id.%d" : "eos_token_id", i);
        int id = -1;
        bad = sh_config_at_least(c, key, 0, n_vocab - 1, &id, e);
        if (id < 0)
            break;
        p->end = xreallocarray(p->end, (size_t)p->n_end + 1, sizeof *p->end);
        p->end[p->n_end++] = id;
    }
    sh_config_close(c);
    return bad ? -1 : 0;
}

int sh_prompts_open(struct sh_prompts *p, const char *model_path, const struct sh_arch *a, struct sh_err *e)
{
    struct sh_err ignored;
    if (!p->text + !p->file + !p->tokens + !p->jsonl != 3)
        return sh_misused(e, "generate requires one of --prompt TEXT, --prompt-file FILE, --jsonl FILE and "
                          "--tokens FILE");
    p->tokenizer = sh_tokenizer_open(model_path, p->tokens ? &ignored : e);
    if (!p->tokenizer && !p->tokens)
        return -1;
    if (read_all(p, model_path, a, e) || check_lengths(p, a, e))
        return -1;
    return p->wants_ends ? read_ends(p, model_path, a->n_vocab, e) : 0;
}

void sh_prompts_close(struct sh_prompts *p)
{
    sh_sequences_free(p->texts.sequence, p->texts.n);
    sh_tokenizer_free(p->tokenizer);
    free(p->end);
    p->end = NULL;
    p->n_end = 0;
    p->tokenizer = NULL;
    p->texts = (struct sh_texts){0};
}

int sh_prompts_is_end(const struct sh_prompts *p, int32_t token)
{
    for (int i = 0; i < p->n_end; i++)
        if (p->end[i] == token)
            return 1;
    return 0;
}
