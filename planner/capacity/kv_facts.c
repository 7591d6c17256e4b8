/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a catalogue of models. See kv_shape.h. */
#include "planner/capacity/kv_shape.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"

enum kind { NUMBER, SWITCH, WORD, COUNT };        /* an int, one that is 1, a text, a long long           */

#define KEY(name, min, max, kind) {#name, offsetof(struct sh_kv_facts, name), min, max, kind}
#define INT(name, min, max) KEY(name, min, max, NUMBER)
#define FLAG(name) KEY(name, 0, 1, SWITCH)

static const struct { const char *key; size_t field; int min, max; enum kind kind; } keys[] = {
    INT(layers, 1, 10000), INT(hidden, 1, 10000000), INT(heads, 1, 100000), INT(kv_heads, 1, 100000),
    INT(head_dim, 1, 100000), INT(ffn, 1, 100000000), INT(vocab, 1, 100000000), INT(max_pos, 1, 1000000000),
    INT(norms, 0, 16), INT(positions, 0, 1000000000), INT(embed_width, 1, 10000000), INT(window, 1, 1000000000),
    INT(experts, 1, 65536), INT(used, 1, 65536), INT(expert_ffn, 1, 100000000), INT(shared_ffn, 0, 100000000),
    INT(dense_first, 0, 10000), INT(moe_every, 1, 10000), INT(moe_offset, 0, 10000), INT(latent, 1, 1000000),
    INT(rope_dim, 0, 100000), INT(nope_dim, 0, 100000), INT(v_dim, 1, 100000), INT(q_latent, 0, 1000000),
    INT(index_dim, 1, 100000), INT(index_heads, 1, 100000), INT(index_topk, 1, 1000000000), INT(index_pool, 1, 100000),
    INT(pool, 1, 1000000), INT(wide_pool, 1, 1000000), INT(o_rank, 1, 1000000), INT(o_groups, 1, 100000),
    INT(latent_ffn, 1, 10000000), INT(ssm, 1, 6), INT(ssm_inner, 1, 10000000), INT(ssm_heads, 1, 100000),
    INT(ssm_head_dim, 1, 100000), INT(ssm_state, 1, 100000), INT(ssm_groups, 1, 100000), INT(ssm_conv, 1, 1000),
    INT(ssm_rank, 1, 1000000), INT(ssm_key_heads, 1, 100000), INT(ssm_key_dim, 1, 100000), FLAG(ssm_bare),
    FLAG(ssm_unnormed), FLAG(ssm_own_decays), FLAG(ssm_wide_gate),
    INT(global_kv_heads, 1, 100000), INT(global_head_dim, 1, 100000), INT(window_heads, 1, 100000), FLAG(gated),
    FLAG(tied), FLAG(qkv_bias), FLAG(o_bias), FLAG(mlp_bias), FLAG(head_bias), FLAG(router_bias), FLAG(sinks),
    FLAG(qk_norm), FLAG(qk_norm_wide), FLAG(query_gate), FLAG(head_gate),
    FLAG(embed_norm), FLAG(post_norm), FLAG(shared_gate), FLAG(keys_are_values), FLAG(cached_once), FLAG(router_scale),
    KEY(family, 0, SH_FACTS_NAME, WORD), KEY(pattern, 0, SH_FACTS_PATTERN, WORD), KEY(published, 0, 48, WORD),
    KEY(published_experts, 0, 48, WORD), KEY(published_attention, 0, 48, WORD),
    KEY(layer_more, 0, 0, COUNT), KEY(vectors_more, 0, 0, COUNT), KEY(ends_more, 0, 0, COUNT),
    KEY(vision, 0, 0, COUNT), KEY(parameters, 0, 0, COUNT)};

enum { N_KEY = sizeof keys / sizeof *keys };

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
    for (int i = 0; i < N_KEY; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "\n%s", keys[i].key);
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

/* N_KEY: norm; above: there is none. */
static int number_of(const char *key)
{
    int i = 0;
    while (i < N_KEY && strcmp(key, keys[i].key))
        i++;
    return i + (i == N_KEY && strcmp(key, "norm"));
}

/* One "key=value" or flag. */
static int set(struct sh_kv_facts *f, const char *key, const char *value, struct sh_err *e)
{
    long long x;
    int i = number_of(key), n;
    if (i >= N_KEY)
        return i == N_KEY ? norm_kind(f, value, e) : unknown(key, e);
    void *at = (char *)f + keys[i].field;
    switch (keys[i].kind) {
    case SWITCH:
        *(int *)at = 1;
        return *value ? sh_fail(e, "%s: found a value, expected none", key) : 0;
    case WORD:
        n = snprintf(at, (size_t)keys[i].max, "%s", value);
        return n >= 1 && n < keys[i].max
            ? 0 : sh_fail(e, "%s: found %d letters, expected 1 to %d", key, n, keys[i].max - 1);
    case COUNT: return number(key, value, 1, 1000000000000000LL, at, e);
    case NUMBER: break;
    }
    if (number(key, value, keys[i].min, keys[i].max, &x, e))
        return -1;
    *(int *)at = (int)x;
    return 0;
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
    char word[SH_FACTS_PATTERN + 16], none[1] = "", seen[N_KEY + 1] = {0};
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
        int key = number_of(word);
        if (key <= N_KEY && seen[key]++)
            return sh_fail(e, "%s: %s: %s: found twice", at, f.name, word);
        if (set(&f, word, is ? is : none, e))
            return sh_err_prefix(e, "%s: %s", at, f.name);
    }
    if (got < 0)
        return sh_err_prefix(e, "%s", at);
    *out = f;
    return 0;
}
