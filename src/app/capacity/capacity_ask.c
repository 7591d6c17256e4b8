/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/capacity/capacity_ask.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/policy/budget.h"
#include "src/base/mem.h"
#include "src/base/read_number.h"

int sh_capacity_split(const char *option, const char *text, struct sh_capacity_words *out, struct sh_err *e)
{
    out->n = 0;
    for (const char *at = text;;) {
        size_t n = strcspn(at, ",");
        if (!n)
            return sh_misused(e, "%s: \"%.80s\" has an empty item", option, text);
        if (n >= SH_CAPACITY_WORD)
            return sh_misused(e, "%s: found an item of %zu characters, expected at most %d", option, n,
                              SH_CAPACITY_WORD - 1);
        if (out->n == SH_CAPACITY_MOST)
            return sh_misused(e, "%s: found too many items, expected at most %d", option, SH_CAPACITY_MOST);
        memcpy(out->at[out->n], at, n);
        out->at[out->n++][n] = '\0';
        if (!at[n])
            return 0;
        at += n + 1;
    }
}

static int whole(const char *option, const char *text, size_t n, uint64_t max, uint64_t *out, struct sh_err *e)
{
    long long x = 0;
    const char *end = n && *text >= '0' && *text <= '9' ? sh_whole(text, &x) : NULL;
    if (end != text + n || (uint64_t)x > max)
        return sh_misused(e, "%s: found \"%.*s\", expected a whole number up to %llu", option,
                          (int)(n < 40 ? n : 40), text, (unsigned long long)max);
    *out = (uint64_t)x;
    return 0;
}

int sh_capacity_kv(const char *word, struct sh_kv_rule *r, struct sh_err *e)
{
    char keys[SH_CAPACITY_WORD];
    size_t n = strcspn(word, "+");
    snprintf(keys, sizeof keys, "%.*s", (int)n, word);
    if (sh_kv_type_parse(keys, &r->k, e) || sh_kv_type_parse(word[n] ? word + n + 1 : keys, &r->v, e))
        return sh_err_prefix(e, "--kv");
    return 0;
}

/* Numbers separated by slashes: one per layer. */
static int budget_list(const char *word, const struct sh_kv_shape *s, struct sh_kv_rule *r, uint64_t **layers,
                       struct sh_err *e)
{
    int n = 0;
    uint64_t *to = xcalloc((size_t)s->f.layers, sizeof *to);
    for (const char *at = word;; n++) {
        size_t len = strcspn(at, "/");
        uint64_t x = 0;
        if (n < s->f.layers && whole("--budget", at, len, SH_KV_MOST_TOKENS, &x, e)) {
            free(to);
            return -1;
        }
        if (n < s->f.layers)
            to[n] = x;
        at += len;
        if (!*at++)
            break;
    }
    if (++n != s->f.layers) {
        free(to);
        return sh_misused(e, "--budget: found %d numbers, expected one per layer: %s has %d%s", n, s->f.name,
                          s->f.layers, n == 2 ? " (a share has no slash: 1/5 is 0.2)" : "");
    }
    r->budget = SH_BUDGET_LAYERS;
    r->layers = *layers = to;
    return 0;
}

/* "A-B": a straight line from the first layer to the last, rounded to whole tokens. */
static int pyramid(const char *word, const struct sh_kv_shape *s, struct sh_kv_rule *r, uint64_t **layers,
                   struct sh_err *e)
{
    size_t n = strcspn(word, "-");
    const char *end = word[n] ? word + n + 1 : "";
    uint64_t first = 0, last = 0;
    if (whole("--budget pyramid", word, n, SH_KV_MOST_TOKENS, &first, e) ||
        whole("--budget pyramid", end, strlen(end), SH_KV_MOST_TOKENS, &last, e))
        return -1;
    uint64_t *to = xcalloc((size_t)s->f.layers, sizeof *to);
    double steps = s->f.layers > 1 ? s->f.layers - 1 : 1;
    for (int i = 0; i < s->f.layers; i++)
        to[i] = (uint64_t)llround((double)first + ((double)last - (double)first) * i / steps);
    r->budget = SH_BUDGET_LAYERS;
    r->layers = *layers = to;
    return 0;
}

/* "0.2", "4096", "4+2044", "64/32/...", "pyramid:96-32". A list's numbers go to *layers (for free()). */
static int budget(const char *word, const struct sh_kv_shape *s, struct sh_kv_rule *r, uint64_t **layers,
                  struct sh_err *e)
{
    char *end;
    size_t plus = strcspn(word, "+");
    uint64_t recent = 0;
    if (!strncmp(word, "pyramid:", 8))
        return pyramid(word + 8, s, r, layers, e);
    if (strchr(word, '/'))
        return budget_list(word, s, r, layers, e);
    if (strchr(word, '.') && !strpbrk(word, "kKM")) {
        r->budget = SH_BUDGET_SHARE;
        r->share = strtod(word, &end);
        if (end == word || *end || !(r->share > 0) || r->share > 1)
            return sh_misused(e, "--budget: found \"%.40s\", expected a fraction above 0, at most 1.0, or a whole "
                              "number of tokens", word);
        return 0;
    }
    r->budget = SH_BUDGET_TOKENS;
    if (whole("--budget", word, plus, SH_KV_MOST_TOKENS, &r->tokens, e) ||
        (word[plus] && whole("--budget", word + plus + 1, strlen(word + plus + 1), SH_KV_MOST_TOKENS, &recent, e)))
        return -1;
    r->tokens += recent;
    return r->tokens ? 0 : sh_misused(e, "--budget: found 0 tokens, expected at least 1");
}

static int windows(const char *word, struct sh_kv_rule *r, struct sh_err *e)
{
    static const char *const names[] = {"model", "ignore", "vllm:", "llama:"};
    for (int i = 0; i < 4; i++) {
        size_t n = strlen(names[i]);
        r->windows = (enum sh_windows)i;
        if (i < 2 && !strcmp(word, names[i]))
            return 0;
        if (i >= 2 && !strncmp(word, names[i], n))
            return whole("--windows", word + n, strlen(word + n), SH_KV_MOST_TOKENS, &r->in_flight, e);
    }
    return sh_misused(e, "--windows: found \"%.40s\", expected model, ignore, vllm:TOKENS or llama:TOKENS (TOKENS "
                      "in flight)", word);
}

/* One spelling of each: results of 20% and 0.2, 4k and 4096, fp8 and f8 are the same. */
static int spell(struct sh_capacity_settings *s, struct sh_err *e)
{
    struct sh_kv_rule r = {0};
    for (int i = 0; i < s->kv.n; i++) {
        char *word = s->kv.at[i];
        if (sh_capacity_kv(word, &r, e))
            return -1;
        if (strlen(word) < SH_KV_TYPE_NAME)
            snprintf(word, SH_CAPACITY_WORD, strchr(word, '+') ? "%s+%s" : "%s", r.k.name, r.v.name);
    }
    for (int i = 0; i < s->budget.n; i++) {
        char *word = s->budget.at[i];
        struct sh_budget b;
        int n = 0;
        struct sh_err none;
        if (word[strspn(word, "0123456789")] && !strstr(word, "..") && !sh_budget_parse(word, &b, &n, &none))
            sh_budget_text(&b, word);
    }
    return 0;
}

int sh_capacity_settings(const struct sh_capacity_args *a, struct sh_capacity_settings *out, struct sh_err *e)
{
    uint64_t tp;
    *out = (struct sh_capacity_settings){.util = a->util >= 0 ? a->util : a->reserve >= 0 ? 1 - a->reserve : 1};
    if (a->util >= 0 && a->reserve >= 0)
        return sh_misused(e, "--util and --reserve cannot be combined: --util is 1 - reserve");
    if (a->util == 0)
        return sh_misused(e, "--util: found 0, expected more than 0");
    if (sh_capacity_split("--kv", a->kv, &out->kv, e) || sh_capacity_split("--tp", a->tp, &out->tp, e) ||
        (a->budget && sh_capacity_split("--budget", a->budget, &out->budget, e)) ||
        spell(out, e))
        return -1;
    for (int i = 0; i < out->tp.n && strcmp(a->tp, "auto"); i++)
        if (whole("--tp", out->tp.at[i], strlen(out->tp.at[i]), 1024, &tp, e) ||
            (!tp && sh_misused(e, "--tp: found 0, expected 1 to 1024")))
            return -1;
    if (!strcmp(a->tp, "auto") && !a->batch)
        return sh_misused(e, "--tp auto requires --batch N");
    if (a->policy_state && (a->state || !a->has_plan))
        return a->state ? sh_misused(e, "--state and --policy-state cannot be combined: expected one of them")
                        : sh_misused(e, "--policy-state requires --plan FILE or measured budgets (--db FILE; of "
                                          "simulate --quality-db FILE), which name the policy");
    if (a->policy_state && a->budget)
        return sh_misused(e, "--policy-state cannot be combined with --budget, which names no policy: use --state "
                             "BYTES");
    if (!a->budget && !a->has_plan && (a->headroom || a->state))
        return sh_misused(e, "%s requires --budget", a->headroom ? "--headroom" : "--state");
    return 0;
}

int sh_capacity_odd_heads(const struct sh_kv_shape *s, int tp)
{
    int odd = s->f.heads % tp ? s->f.heads : 0;
    for (int i = 0; i < s->f.layers && !odd; i++)
        odd = s->layer[i].heads % tp ? s->layer[i].heads : 0;
    return odd;
}

int sh_capacity_divides(const struct sh_kv_shape *s, int tp, struct sh_err *e)
{
    int states = sh_kv_shape_states(s) && s->f.ssm >= 2 ? s->f.ssm_heads : 0;
    int heads = sh_capacity_odd_heads(s, tp), odd = heads ? heads : states % tp ? states : 0;
    if (!odd)
        return 0;
    sh_misused(e, "%s: %d heads are not divisible by --tp %d", s->f.name, odd, tp);
    return sh_hint(e, "servers refuse such a shape; --uneven computes it anyway");
}

static int fill_rule(const struct sh_capacity_args *a, const struct sh_capacity_question *q, struct sh_kv_rule *r,
                     uint64_t **layers, struct sh_err *e)
{
    if (a->prefix > 0 && a->length > 0 && a->prefix >= a->length)
        return sh_misused(e, "--shared-prefix: found %lld, expected less than the %lld tokens of a sequence",
                          a->prefix, a->length);
    *r = (struct sh_kv_rule){.page = (uint64_t)a->page, .headroom = (uint64_t)a->headroom,
                             .prefix = (uint64_t)a->prefix, .state = (uint64_t)a->state};
    if (sh_capacity_kv(q->kv, r, e) || windows(a->windows, r, e))
        return -1;
    if (q->budget && budget(q->budget, q->shape, r, layers, e))
        return sh_hint(e, "fractions have a decimal point or %%: 0.2, 20%%; token counts have neither: 4096, 4k, "
                       "4+2044 (sinks+recent), 64/32/... (each layer), pyramid:96-32");
    return 0;
}

/* By default as published, or as stored in the file that was read. */
static int weights(const char *word, const struct sh_kv_shape *s, struct sh_weight_types *t, struct sh_err *e)
{
    t->stored = !word && s->stored;
    if (!word)
        return sh_weight_types_published(&s->f, t, e);
    if (sh_kv_type_parse(word, &t->matrices, e))
        return sh_err_prefix(e, "--weights");
    t->experts = t->attention = t->matrices;
    return 0;
}

static int attention(const char *word, struct sh_weight_types *t, struct sh_err *e)
{
    if (sh_kv_type_parse(word, &t->attention, e))
        return sh_err_prefix(e, "--weights-attention");
    return t->stored ? sh_misused(e, "--weights-attention cannot be combined with the formats of a file: "
                                  "add --weights TYPE") : 0;
}

enum { LORA_RANK = 16 };                /* unless --lora-rank says otherwise */

int sh_capacity_ask_fill(const struct sh_capacity_args *a, const struct sh_capacity_settings *t,
                         const struct sh_capacity_question *q, struct sh_capacity_ask *out, uint64_t **layers,
                         struct sh_err *e)
{
    const struct sh_gpu *b = q->board;
    struct sh_capacity_ask k = {.shape = q->shape, .draft = q->draft, .tp = q->tp, .pp = (int)a->pp,
                                .ep = (int)a->ep, .util = t->util, .overhead = a->overhead,
                                .length = (uint64_t)a->length, .batch = (uint64_t)a->batch,
                                .chunk = (uint64_t)a->chunk,
                                .lora = {(uint64_t)a->lora, (uint64_t)(a->lora_rank ? a->lora_rank : LORA_RANK)}};
    *layers = NULL;
    if (a->lora_rank && !a->lora)
        return sh_misused(e, "--lora-rank requires --lora N");
    if (a->lora && sh_lora_suits(q->shape, e))
        return -1;
    if (weights(a->weights, q->shape, &k.weights, e) ||
        (a->weights_attention && attention(a->weights_attention, &k.weights, e)) ||
        fill_rule(a, q, &k.rule, layers, e) || (q->draft && weights(NULL, q->draft, &k.draft_weights, e)))
        return -1;
    if (a->link && !(b->link > 0) && q->tp * k.pp * k.ep > 1)
        return sh_misused(e, "--link: the link bandwidth of %s is unknown", b->name),
               sh_hint(e, "omit --link, or set link= in the row of a --gpus FILE");
    k.memory = a->memory ? a->memory : sh_gpu_bytes(b);
    k.bandwidth = a->bandwidth > 0 ? a->bandwidth : b->gbps * 1e9 / b->dies;
    /* Products of f8 operands, if the weights have 8 bits and the board has the instructions, else of f16. */
    k.peak = a->flops > 0 ? a->flops : (k.weights.matrices.f8_math && b->f8 > 0 ? b->f8 : b->f16) * 1e12 / b->dies;
    k.link = a->link ? b->link * 1e9 / 2 : 0;
    *out = k;
    return 0;
}

struct sh_server sh_capacity_server(const struct sh_capacity_args *a, const struct sh_gpu *b)
{
    return (struct sh_server){.sampled = (uint64_t)a->sampled, .at_once = (uint64_t)a->chunk,
                              .visible = a->memory ? (double)a->memory : b->visible * 0x1p30 / b->dies,
                              .is_a100 = !strncasecmp(b->name, "A100", 4)};
}
