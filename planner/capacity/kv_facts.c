/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a catalogue of models. See kv_shape.h. */
#include "planner/capacity/kv_shape.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"

#define F(field) offsetof(struct sh_kv_facts, field)

static const struct { const char *key; size_t field; int min, max; } numbers[] = {
    {"layers", F(layers), 1, 10000}, {"hidden", F(hidden), 1, 10000000}, {"heads", F(heads), 1, 100000},
    {"kv_heads", F(kv_heads), 1, 100000}, {"head_dim", F(head_dim), 1, 100000}, {"ffn", F(ffn), 1, 100000000},
    {"vocab", F(vocab), 1, 100000000}, {"max_pos", F(max_pos), 1, 1000000000}, {"norms", F(norms), 0, 16},
    {"positions", F(positions), 0, 1000000000}, {"embed_width", F(embed_width), 1, 10000000},
    {"window", F(window), 1, 1000000000}, {"experts", F(experts), 1, 65536}, {"used", F(used), 1, 65536},
    {"expert_ffn", F(expert_ffn), 1, 100000000}, {"shared_ffn", F(shared_ffn), 0, 100000000},
    {"dense_first", F(dense_first), 0, 10000}, {"moe_every", F(moe_every), 1, 10000},
    {"moe_offset", F(moe_offset), 0, 10000}, {"latent", F(latent), 1, 1000000}, {"rope_dim", F(rope_dim), 0, 100000},
    {"nope_dim", F(nope_dim), 0, 100000}, {"v_dim", F(v_dim), 1, 100000}, {"q_latent", F(q_latent), 0, 1000000},
    {"index_dim", F(index_dim), 1, 100000}, {"index_heads", F(index_heads), 1, 100000},
    {"index_topk", F(index_topk), 1, 1000000000}, {"latent_ffn", F(latent_ffn), 1, 10000000},
    {"ssm", F(ssm), 1, 3}, {"ssm_inner", F(ssm_inner), 1, 10000000}, {"ssm_heads", F(ssm_heads), 1, 100000},
    {"ssm_head_dim", F(ssm_head_dim), 1, 100000}, {"ssm_state", F(ssm_state), 1, 100000},
    {"ssm_groups", F(ssm_groups), 1, 100000}, {"ssm_conv", F(ssm_conv), 1, 1000}, {"ssm_rank", F(ssm_rank), 1, 1000000},
    {"ssm_key_heads", F(ssm_key_heads), 1, 100000}, {"global_kv_heads", F(global_kv_heads), 1, 100000},
    {"global_head_dim", F(global_head_dim), 1, 100000}};

static const struct { const char *key; size_t field; } flags[] = {
    {"gated", F(gated)}, {"tied", F(tied)}, {"qkv_bias", F(qkv_bias)}, {"o_bias", F(o_bias)},
    {"mlp_bias", F(mlp_bias)}, {"head_bias", F(head_bias)}, {"router_bias", F(router_bias)}, {"sinks", F(sinks)},
    {"qk_norm", F(qk_norm)}, {"qk_norm_wide", F(qk_norm_wide)}, {"query_gate", F(query_gate)},
    {"embed_norm", F(embed_norm)}, {"post_norm", F(post_norm)}, {"shared_gate", F(shared_gate)},
    {"keys_are_values", F(keys_are_values)},
    {"router_scale", F(router_scale)}};

static const struct { const char *key; size_t field, bytes; } words[] = {
    {"family", F(family), SH_FACTS_NAME}, {"pattern", F(pattern), SH_FACTS_PATTERN},
    {"published", F(published), 48}, {"published_experts", F(published_experts), 48}};

static const struct { const char *key; size_t field; } counts[] = {
    {"vision", F(vision)}, {"parameters", F(parameters)}};

#define LENGTH(list) (sizeof(list) / sizeof *(list))

/* Zeros and the defaults of models.txt. */
static void begin(struct sh_kv_facts *f)
{
    memset(f, 0, sizeof *f);
    f->norms = 2;
    f->moe_every = 1;
    snprintf(f->pattern, sizeof f->pattern, "G");
}

static int number(const char *key, const char *value, long long min, long long max, long long *out, struct sh_err *e)
{
    char *end;
    errno = 0;
    long long x = strtoll(value, &end, 10);
    if (end == value || *end || errno || x < min || x > max)
        return sh_fail(e, "%s: found \"%.40s\", expected a whole number from %lld to %lld", key, value, min, max);
    *out = x;
    return 0;
}

static int unknown(const char *key, struct sh_err *e)
{
    char all[2048] = "norm";
#define NAMES(list) \
    for (size_t i = 0; i < LENGTH(list); i++) \
        snprintf(all + strlen(all), sizeof all - strlen(all), "\n%s", list[i].key)
    NAMES(numbers);
    NAMES(flags);
    NAMES(words);
    NAMES(counts);
#undef NAMES
    sh_fail(e, "unknown key \"%.40s\"", key);
    return sh_hint_near(e, key, strlen(key), all, "");
}

static int norm_kind(struct sh_kv_facts *f, const char *value, struct sh_err *e)
{
    static const char *const names[] = {"rms", "layer", "scale"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(value, names[i])) {
            f->norm = i;
            return 0;
        }
    return sh_fail(e, "norm: found \"%.40s\", expected rms, layer or scale", value);
}

/* One "key=value" or flag. */
static int set(struct sh_kv_facts *f, const char *key, const char *value, struct sh_err *e)
{
    long long x;
    for (size_t i = 0; i < LENGTH(numbers); i++)
        if (!strcmp(key, numbers[i].key)) {
            if (number(key, value, numbers[i].min, numbers[i].max, &x, e))
                return -1;
            *(int *)((char *)f + numbers[i].field) = (int)x;
            return 0;
        }
    for (size_t i = 0; i < LENGTH(flags); i++)
        if (!strcmp(key, flags[i].key)) {
            *(int *)((char *)f + flags[i].field) = 1;
            return *value ? sh_fail(e, "%s: found a value, expected none", key) : 0;
        }
    for (size_t i = 0; i < LENGTH(words); i++)
        if (!strcmp(key, words[i].key)) {
            int n = snprintf((char *)f + words[i].field, words[i].bytes, "%s", value);
            return n < 1 || (size_t)n >= words[i].bytes
                       ? sh_fail(e, "%s: found %d letters, expected 1 to %zu", key, n, words[i].bytes - 1) : 0;
        }
    for (size_t i = 0; i < LENGTH(counts); i++)
        if (!strcmp(key, counts[i].key))
            return number(key, value, 1, 1000000000000000LL, (long long *)((char *)f + counts[i].field), e);
    return !strcmp(key, "norm") ? norm_kind(f, value, e) : unknown(key, e);
}

int sh_row_word(const char **at, char *to, size_t bytes, struct sh_err *e)
{
    *at += strspn(*at, " \t");
    size_t n = strcspn(*at, " \t|\r\n");
    if (n >= bytes)
        return sh_fail(e, "found a word of %zu letters, expected at most %zu", n, bytes - 1);
    memcpy(to, *at, n);
    to[n] = '\0';
    *at += n;
    return n > 0;
}

int sh_kv_facts_row(const char *row, const char *at, struct sh_kv_facts *out, struct sh_err *e)
{
    struct sh_kv_facts f;
    char word[SH_FACTS_PATTERN + 16], none[1] = "";
    const char *rest = row;
    begin(&f);
    int got = sh_row_word(&rest, word, sizeof word, e);
    if (got <= 0 || strlen(word) >= sizeof f.name || strchr(word, '='))
        return got < 0 ? sh_err_prefix(e, "%s", at) : sh_fail(e, "%s: expected a name at the beginning", at);
    snprintf(f.name, sizeof f.name, "%.*s", (int)sizeof f.name - 1, word);
    while ((got = sh_row_word(&rest, word, sizeof word, e)) > 0) {
        char *is = strchr(word, '=');
        if (is)
            *is++ = '\0';
        if (set(&f, word, is ? is : none, e))
            return sh_err_prefix(e, "%s: %s", at, f.name);
    }
    if (got < 0)
        return sh_err_prefix(e, "%s", at);
    *out = f;
    return 0;
}
