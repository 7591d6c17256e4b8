/* SPDX-License-Identifier: Apache-2.0 */
/* See task.h: the prompts of an item. */
#include "src/engine/task.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok_text.h"

static int characters(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += (*text & 0xC0) != 0x80;
    return n;
}

static void add_text(struct sh_text *to, const char *text)
{
    sh_text_add(to, text, strlen(text));
}

/* The start tokens and the ids of text[0 .. bytes). */
static int encode(const struct sh_tokenizer *t, const char *text, size_t bytes, struct sh_ids *ids, struct sh_err *e)
{
    const int32_t *start;
    for (int i = 0, n = sh_tokenizer_start(t, &start); i < n; i++)
        sh_ids_add(ids, start[i]);
    return sh_tokenizer_encode(t, text, bytes, 0, ids, e);
}

static int make_choice(struct sh_task_choice *c, const char *examples, const char *context, const char *choice,
                       const struct sh_tokenizer *t, int max_pos, struct sh_err *e)
{
    struct sh_text text = {0};
    struct sh_ids all = {0}, before = {0};
    add_text(&text, examples);
    add_text(&text, context);
    sh_text_add(&text, "", 1);
    size_t cut = (size_t)sh_task_trimmed(text.at);
    text.n--;
    add_text(&text, " ");
    add_text(&text, choice);
    int bad = encode(t, text.at, text.n, &all, e) || encode(t, text.at, cut, &before, e);
    free(text.at);
    free(before.at);
    c->ids = all.at;
    c->n = (int)all.n;
    c->n_context = (int)before.n;
    c->characters = characters(choice);
    if (bad)
        return -1;
    int drop = c->n > max_pos + 1 ? c->n - max_pos - 1 : 0;
    c->is_cut = drop > 0;
    memmove(c->ids, c->ids + drop, (size_t)(c->n -= drop) * sizeof *c->ids);
    if ((c->n_context -= drop) < 1 || c->n_context >= c->n)
        return sh_fail(e, "%d tokens, %d of them before the choice: the model has only %d positions", c->n + drop,
                       c->n_context + drop, max_pos);
    return 0;
}

static char *make_examples(const struct sh_task_item *shots, int n_shot)
{
    struct sh_text text = {0};
    for (int i = 0; i < n_shot; i++) {
        add_text(&text, shots[i].context[shots[i].gold]);
        add_text(&text, " ");
        add_text(&text, shots[i].choice[shots[i].gold]);
        add_text(&text, "\n\n");
    }
    sh_text_add(&text, "", 1);
    return text.at;
}

int sh_task_prompt_make(struct sh_task_prompt *p, const struct sh_task_item *item, const struct sh_task_item *shots,
                        int n_shot, const struct sh_tokenizer *t, int max_pos, struct sh_err *e)
{
    char *examples = make_examples(shots, n_shot);
    int bad = 0;
    *p = (struct sh_task_prompt){.n = item->n, .gold = item->gold, .line = item->line};
    for (int i = 0; i < item->n && !bad; i++) {
        struct sh_task_choice *c = &p->choice[i];
        if (make_choice(c, examples, item->context[i], item->choice[i], t, max_pos, e))
            bad = sh_err_prefix(e, "line %d: choice %d", item->line, i);
        p->longest = c->n - 1 > p->longest ? c->n - 1 : p->longest;
    }
    free(examples);
    return bad;
}

void sh_task_prompt_free(struct sh_task_prompt *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->choice[i].ids);
    *p = (struct sh_task_prompt){0};
}
