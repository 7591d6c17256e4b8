/* SPDX-License-Identifier: Apache-2.0 */
/* See generate_job.h: the texts as they are written, and their cost. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/commands.h"
#include "src/cli/generate_job.h"

/* ---- the texts ---- */

/* Tokens of the text that are shown; an end token is not. */
static int n_shown(const struct sh_written *t)
{
    return t->n_made - t->at_end;
}

/* The text that continues the prompt, in whole characters and with the leading space of its first word; malloc'ed. A
 * stream shows the same, piece by piece. */
static char *text_of(const struct sh_generate_job *w, const struct sh_written *t, size_t *bytes)
{
    struct sh_text_stream stream;
    char *text = NULL;
    *bytes = 0;
    sh_text_stream_begin(&stream, w->prompts.tokenizer, t->prompt, (size_t)t->n_prompt);
    for (int i = 0, n = n_shown(t); i <= n; i++) {
        size_t more;
        char *piece = i < n ? sh_text_stream_add(&stream, t->made[i], &more) : sh_text_stream_rest(&stream, &more);
        text = xreallocarray(text, *bytes + more + 1, 1);
        memcpy(text + *bytes, piece, more + 1);
        *bytes += more;
        free(piece);
    }
    sh_text_stream_end(&stream);
    return text;
}

/* Prints ids if there is no tokenizer. */
static void show_token(struct sh_generate_job *w, const struct sh_written *t)
{
    size_t bytes;
    int32_t token = t->made[t->n_made - 1];
    if (n_shown(t) < t->n_made)
        return;
    if (!w->prompts.tokenizer) {
        printf("%s%d", t->n_made > 1 ? " " : "", token);
    } else {
        char *text = sh_text_stream_add(&w->stream, token, &bytes);
        fwrite(text, 1, bytes, stdout);
        free(text);
    }
    fflush(stdout);
}

static void show_text(const struct sh_generate_job *w, const struct sh_written *t)
{
    size_t bytes;
    int n = n_shown(t);
    printf("== %s\n", t->name);
    for (int i = 0; i < n && !w->prompts.tokenizer; i++)
        printf("%s%d", i ? " " : "", t->made[i]);
    if (w->prompts.tokenizer) {
        char *text = text_of(w, t, &bytes);
        fwrite(text, 1, bytes, stdout);
        free(text);
    }
    putchar('\n');
}

static int is_done(const struct sh_written *t)
{
    return t->n_made == t->most || t->at_end;
}

/* Texts in the order of their prompts, whichever ends first. */
static void show_done(struct sh_generate_job *w)
{
    while (w->n_shown < w->n && is_done(&w->text[w->n_shown]))
        show_text(w, &w->text[w->n_shown++]);
    fflush(stdout);
}

void sh_generate_show_begin(struct sh_generate_job *w)
{
    double most = 0;
    w->goes_out = sh_common_format(w->common) == SH_OUT_TEXT;
    for (int i = 0; i < w->n; i++)
        most += w->text[i].most;
    if (w->prompts.tokenizer && !w->is_many)
        sh_text_stream_begin(&w->stream, w->prompts.tokenizer, w->text->prompt, (size_t)w->text->n_prompt);
    if (w->is_many)
        sh_progress_begin(&w->progress, "writing", "tokens", most, w->common->quiet);
}

void sh_generate_show_token(void *work, int text)
{
    struct sh_generate_job *w = work;
    const struct sh_written *t = &w->text[text];
    if (w->goes_out && !w->is_many)
        show_token(w, t);
    if (w->goes_out && w->is_many && text == w->n_shown && is_done(t))
        show_done(w);
    w->done += is_done(t) ? t->most - t->n_made + 1 : 1;
    if (w->is_many)
        sh_progress_at(&w->progress, w->done, "");
}

int sh_generate_show_stops(void *work)
{
    const struct sh_generate_job *w = work;
    return w->goes_out && ferror(stdout);
}

int sh_generate_show_end(struct sh_generate_job *w, int bad, struct sh_err *e)
{
    size_t bytes = 0;
    if (w->is_many)
        sh_progress_end(&w->progress);
    for (; w->goes_out && w->is_many && bad && w->n_shown < w->n; w->n_shown++)
        if (w->text[w->n_shown].n_made)         /* unfinished, or finished after an unfinished one */
            show_text(w, &w->text[w->n_shown]);
    if (w->goes_out && !w->is_many && w->text->n_made) {
        char *text = w->prompts.tokenizer ? sh_text_stream_rest(&w->stream, &bytes) : NULL;
        if (bytes)
            fwrite(text, 1, bytes, stdout);
        free(text);
        putchar('\n');
    }
    sh_text_stream_end(&w->stream);
    if (w->goes_out && (fflush(stdout) || ferror(stdout)) && !bad)
        return sh_output_failed("the text ", 0, e);
    return bad;
}

/* ---- the cost ---- */

struct figures {
    size_t all_bytes, activation_bytes;
    long long n_prompt, n_made;         /* tokens of all texts                                    */
    double prompt_rate, rate;           /* tokens a second                                        */
};

static struct figures take_figures(const struct sh_generate_job *w)
{
    const struct sh_resident *r = w->live.resident;
    struct figures f = {.all_bytes = sh_cache_bytes_sum(&w->writing.bytes),
                        .activation_bytes = sh_activations_bytes(r->arch, r->setup.rows, w->live.dtype)};
    for (int i = 0; i < w->n; i++) {
        f.n_prompt += w->text[i].n_prompt;
        f.n_made += w->text[i].n_made;
    }
    f.prompt_rate = (double)w->writing.n_read / w->writing.prompt_s;
    f.rate = (double)(f.n_made - w->n) / w->writing.made_s;     /* a text's first token comes with its prompt */
    return f;
}

/* How a text's prompt was read. */
static const char *way(const struct sh_generate_job *w, const struct sh_written *t, char text[64])
{
    if (w->live.prefill_mode == SH_PREFILL_BLOCKS && t->shape.block < t->n_prompt)
        snprintf(text, 64, "in blocks of %d", t->shape.block);
    else
        snprintf(text, 64, "%s", w->live.prefill_mode == SH_PREFILL_STREAM ? "token by token" : "as one block");
    return text;
}

static const char *stopped(const struct sh_generate_job *w, const struct sh_written *t)
{
    return t->at_end ? "end" : t->most < w->a->max_tokens ? "positions" : "length";
}

static double per_pair(double sum, const struct sh_row_likeness *l)
{
    return sum / (double)l->pairs;                      /* NaN without a pair */
}

static void tell_repetition(const struct sh_written *t)
{
    fprintf(stderr, "shears: rep-4 %.4f, distinct-1 %.4f, distinct-2 %.4f, longest repeat %d tokens; "
            "row similarity %.4f (chance %.4f)\n", sh_repetition(t->made, t->n_made, 4),
            sh_distinct(t->made, t->n_made, 1), sh_distinct(t->made, t->n_made, 2),
            sh_longest_repeat(t->made, t->n_made), per_pair(t->likeness.sum, &t->likeness),
            per_pair(t->likeness.chance, &t->likeness));
}

static void tell_one(const struct sh_generate_job *w, const struct figures *f)
{
    char text[64];
    const struct sh_written *t = w->text;
    fprintf(stderr, "shears: prompt of %d tokens read %s at %.1f tokens/s; %d tokens written",
            t->n_prompt, way(w, t, text), f->prompt_rate, t->n_made);
    if (t->n_made > 1)
        fprintf(stderr, " at %.1f tokens/s", f->rate);
    fprintf(stderr, "; cache %zu bytes, %.1f of %d tokens per head kept at the end, at most %d\n", f->all_bytes,
            w->writing.kept, w->writing.length, w->writing.peak);
    if (w->a->repetition)
        tell_repetition(t);
}

static void tell_many(const struct sh_generate_job *w, const struct figures *f)
{
    fprintf(stderr, "shears: %d prompt%s of %lld tokens read at %.1f tokens/s; %lld tokens written", w->n,
            w->n == 1 ? "" : "s", f->n_prompt, f->prompt_rate, f->n_made);
    if (f->n_made > w->n)
        fprintf(stderr, " at %.1f tokens/s", f->rate);
    fprintf(stderr, ", at most %d text%s at once; cache %zu bytes, at most %d tokens per head\n",
            w->writing.at_once, w->writing.at_once == 1 ? "" : "s", f->all_bytes, w->writing.peak);
}

void sh_generate_tell(const struct sh_generate_job *w)
{
    struct figures f = take_figures(w);
    int at_positions = 0, evicts = (w->a->budget || w->a->plan) && strcmp(w->policy.policy->name, "full") != 0;
    (w->is_many ? tell_many : tell_one)(w, &f);
    if (w->live.prefill_mode != SH_PREFILL_STREAM)
        fprintf(stderr, "shears: while %s read, blocks took %zu bytes in addition to the cache, activations %zu\n",
                w->is_many ? "prompts were" : "the prompt was", w->writing.block_bytes, f.activation_bytes);
    for (int i = 0; i < w->n; i++)
        at_positions += !strcmp(stopped(w, &w->text[i]), "positions");
    if (!at_positions)
        return;
    fputs("shears: ", stderr);
    if (w->is_many)
        fprintf(stderr, "%d of them ", at_positions);
    fprintf(stderr, "stopped at the model's %d positions; use --positions cache%s to continue\n",
            w->live.resident->arch->max_pos, evicts ? "" : ", a --policy that evicts and a --budget");
}

/* The text as shown; a NUL, which would end a C string, becomes U+FFFD. */
static void put_text(struct sh_out *o, const struct sh_generate_job *w, const struct sh_written *t)
{
    size_t bytes, n = 0;
    if (!w->prompts.tokenizer) {
        sh_out_text(o, "text", "text", NULL);
        return;
    }
    char *text = text_of(w, t, &bytes);
    char *safe = xmalloc(3 * bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        if (text[i])
            safe[n++] = text[i];
        else
            for (const char *mark = "\xEF\xBF\xBD"; *mark; mark++)
                safe[n++] = *mark;
    safe[n] = '\0';
    sh_out_text(o, "text", "text", safe);
    free(safe);
    free(text);
}

static void put_repetition(struct sh_out *o, const struct sh_written *t)
{
    sh_out_real(o, "rep_4", "rep-4", sh_repetition(t->made, t->n_made, 4), 4);
    sh_out_real(o, "distinct_1", "distinct-1", sh_distinct(t->made, t->n_made, 1), 4);
    sh_out_real(o, "distinct_2", "distinct-2", sh_distinct(t->made, t->n_made, 2), 4);
    sh_out_int(o, "longest_repeat_tokens", "longest repeat", sh_longest_repeat(t->made, t->n_made));
    sh_out_real(o, "row_likeness", "row similarity", per_pair(t->likeness.sum, &t->likeness), 4);
    sh_out_real(o, "row_likeness_chance", "chance", per_pair(t->likeness.chance, &t->likeness), 4);
}

static void put_ids(struct sh_out *o, const struct sh_generate_job *w, const struct sh_written *t)
{
    sh_out_list(o, "ids", "tokens");
    sh_out_compact(o);
    for (int i = 0; i < t->n_made; i++) {
        sh_out_item(o);
        sh_out_int(o, "id", "id", t->made[i]);
        sh_out_text(o, "piece", "piece",
                    w->prompts.tokenizer ? sh_tokenizer_piece(w->prompts.tokenizer, t->made[i]) : NULL);
    }
    sh_out_end(o);
}

/* What was asked for. */
static void put_settings(struct sh_out *o, const struct sh_generate_job *w)
{
    char knobs[SH_POLICY_TEXT];
    sh_out_text(o, "model", "model", sh_model_name(w->live.model));
    sh_out_text(o, "backend", "backend", w->live.devices.backend->name);
    sh_out_text(o, "dtype", "dtype", w->a->live.dtype);
    sh_out_text(o, "policy", "policy", w->policy.policy->name);
    sh_out_text(o, "knobs", "knobs", sh_policy_knobs(&w->policy, knobs));
    if (w->a->plan)
        sh_out_text(o, "plan", "plan", basename(w->a->plan));
    sh_out_real(o, "budget_tokens", "budget", w->writing.budget, 1);
    sh_out_int(o, "kv_bits", "bits", w->live.format.bits);
    sh_out_int(o, "prefill", "prefill", w->live.prefill);
    sh_out_text(o, "prefill_mode", "prompt", w->a->live.prefill_mode);
}

static void put_positions(struct sh_out *o, const struct sh_generate_job *w)
{
    sh_out_text(o, "positions", "positions", w->live.positions == SH_POSITIONS_CACHE ? "cache" : "original");
}

static void put_cost(struct sh_out *o, const struct sh_generate_job *w, const struct figures *f)
{
    sh_out_real(o, "prompt_tokens_per_s", "prompt tokens/s", f->prompt_rate, 1);
    sh_out_real(o, "tokens_per_s", "tokens/s", f->rate, 1);
    sh_out_int(o, "kv_bytes", "cache bytes", (long long)f->all_bytes);
    sh_live_put_peak(o, &w->live.devices);
    sh_out_int(o, "kv_policy_bytes", "  policy state", (long long)w->writing.bytes.policy);
    sh_out_int(o, "prompt_block_bytes", "prompt blocks, in addition", (long long)w->writing.block_bytes);
    sh_out_int(o, "activation_bytes", "activations", (long long)f->activation_bytes);
}

static void put_one(struct sh_out *o, const struct sh_generate_job *w, const struct figures *f)
{
    char text[64];
    const struct sh_written *t = w->text;
    sh_out_int(o, "prefill_block", "tokens per block", t->shape.block);
    sh_out_text(o, "stream", "prompt read", way(w, t, text));
    put_positions(o, w);
    sh_out_int(o, "prompt_tokens", "prompt tokens", t->n_prompt);
    sh_out_int(o, "generated_tokens", "tokens written", t->n_made);
    sh_out_text(o, "stopped", "stopped by", stopped(w, t));
    put_text(o, w, t);
    put_cost(o, w, f);
    sh_out_real(o, "kept_tokens", "kept at the end", w->writing.kept, 1);
    sh_out_int(o, "peak_tokens", "kept, at most", w->writing.peak);
    if (w->a->repetition)
        put_repetition(o, t);
    put_ids(o, w, t);
}

static void put_many(struct sh_out *o, const struct sh_generate_job *w, const struct figures *f)
{
    char text[64];
    put_positions(o, w);
    sh_out_int(o, "n_texts", "texts", w->n);
    sh_out_int(o, "batch", "texts at once, at most", w->writing.at_once);
    sh_out_int(o, "prompt_tokens", "prompt tokens", f->n_prompt);
    sh_out_int(o, "generated_tokens", "tokens written", f->n_made);
    put_cost(o, w, f);
    sh_out_int(o, "peak_tokens", "kept, at most", w->writing.peak);
    sh_out_list(o, "texts", "texts");
    for (int i = 0; i < w->n; i++) {
        const struct sh_written *t = &w->text[i];
        sh_out_item(o);
        sh_out_text(o, "source", "source", t->name);
        sh_out_int(o, "prompt_tokens", "prompt tokens", t->n_prompt);
        sh_out_text(o, "stream", "prompt read", way(w, t, text));
        sh_out_int(o, "generated_tokens", "tokens written", t->n_made);
        sh_out_text(o, "stopped", "stopped by", stopped(w, t));
        if (w->a->repetition)
            put_repetition(o, t);
        put_text(o, w, t);
        put_ids(o, w, t);
    }
    sh_out_end(o);
}

/* Is the name in the comma-separated list? */
static int asks_for(const char *columns, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = columns; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, n) && (!at[n] || at[n] == ','))
            return 1;
    return 0;
}

int sh_generate_report(const struct sh_generate_job *w, struct sh_err *e)
{
    struct figures f = take_figures(w);
    struct sh_out *o = sh_out_new();
    put_settings(o, w);
    (w->is_many ? put_many : put_one)(o, w, &f);
    sh_timing_put(o, &w->timing);
    if (w->is_many && (asks_for(w->common->columns, "id") || asks_for(w->common->columns, "piece")))
        sh_out_show(o, "ids");          /* one row per token instead of per text */
    return sh_common_write(w->common, o, 0, e);
}
