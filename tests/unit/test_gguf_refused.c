/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files that lie about themselves, and models that are not what the program can run: each is refused with
 * what was found and what was expected. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/mem.h"
#include "src/model/config/config.h"
#include "src/model/files/gguf.h"
#include "src/model/model.h"
#include "src/model/weights.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

/* ---- a file, piece by piece ---- */

static struct { unsigned char at[1 << 20]; size_t n; } file;

static void put(const void *at, size_t n)
{
    CU_ASSERT_FATAL(n <= sizeof file.at - file.n);
    memcpy(file.at + file.n, at, n);
    file.n += n;
}

static void u32(uint32_t x)
{
    put(&x, sizeof x);
}

static void u64(uint64_t x)
{
    put(&x, sizeof x);
}

static void text(const char *s)
{
    u64(strlen(s));
    put(s, strlen(s));
}

static void begin(uint32_t version, uint64_t n_tensor, uint64_t n_value)
{
    file.n = 0;
    put("GGUF", 4);
    u32(version);
    u64(n_tensor);
    u64(n_value);
}

static void key(const char *name, enum sh_gguf_kind kind)
{
    text(name);
    u32(kind);
}

static void number(const char *name, uint32_t x)
{
    key(name, SH_GGUF_U32);
    u32(x);
}

static void real(const char *name, float x)
{
    key(name, SH_GGUF_F32);
    put(&x, sizeof x);
}

static void word(const char *name, const char *x)
{
    key(name, SH_GGUF_STRING);
    text(x);
}

static void array(const char *name, enum sh_gguf_kind item, uint64_t n)
{
    key(name, SH_GGUF_ARRAY);
    u32(item);
    u64(n);
}

/* Dimensions of 0 end the list. */
static void tensor(const char *name, uint64_t x, uint64_t y, uint32_t type, uint64_t offset)
{
    text(name);
    u32(y ? 2 : 1);
    u64(x);
    if (y)
        u64(y);
    u32(type);
    u64(offset);
}

/* Filling up to the data and `bytes` of data. */
static void data(size_t bytes)
{
    static const unsigned char zero[1 << 19];
    put(zero, (32 - file.n % 32) % 32 + bytes);
}

static int refused(const char *part)
{
    const char *path = scratch_write("m.gguf", file.at, file.n);
    snprintf(e.text, sizeof e.text, "(accepted)");
    struct sh_weights *w = sh_weights_open(path, &e);
    sh_weights_close(w);
    return tap_says(e.text, part) && !w && strstr(e.text, path) == e.text;
}

static int accepted(void)
{
    struct sh_weights *w = sh_weights_open(scratch_write("m.gguf", file.at, file.n), &e);
    sh_weights_close(w);
    return w ? 1 : tap_says(e.text, "(accepted)");
}

/* ---- headers ---- */

static void headers(void)
{
    file.n = 0;
    CU_ASSERT(refused("not a GGUF file: its 0 bytes"));
    put("GGML and more that is long enough", 32);
    CU_ASSERT(refused("not a GGUF file"));
    begin(3, 0, 0);
    CU_ASSERT(accepted());
    file.n = 23;
    CU_ASSERT(refused("not a GGUF file: its 23 bytes"));
    begin(1, 0, 0);
    CU_ASSERT(refused("GGUF version 1"));
    begin(4, 0, 0);
    CU_ASSERT(refused("found GGUF version 4"));
    begin(0x03000000, 0, 0);
    CU_ASSERT(refused("found a big-endian GGUF file"));
    begin(3, 0, UINT64_MAX);
    CU_ASSERT(refused("found 18446744073709551615 values, expected at most 0 in a file of 24 bytes"));
    begin(3, (uint64_t)1 << 60, 0);
    data(1000);
    CU_ASSERT(refused("found 1152921504606846976 tensors, expected at most 42"));
    begin(3, 0, 70000);
    data(500000);
    CU_ASSERT(refused("found 70000 values, expected at most"));
}

/* ---- metadata ---- */

static void keys(void)
{
    begin(3, 0, 1);
    u64(UINT64_MAX);
    data(64);
    CU_ASSERT(refused("key 0 extends past the end of the file"));
    begin(3, 0, 1);
    number("", 1);
    CU_ASSERT(refused("key 0: found 0 characters, expected 1 to"));
    begin(3, 0, 1);
    number("a\nb", 1);
    CU_ASSERT(refused("key 0: found 'a?b', expected plain ASCII"));
    begin(3, 0, 2);
    number("twice", 1);
    number("twice", 2);
    CU_ASSERT(refused("key 'twice': found a duplicate"));
    begin(3, 0, 1);
    key("k", (enum sh_gguf_kind)13);
    u64(0);
    CU_ASSERT(refused("key 'k': found the kind 13, expected 0 to 12"));
    begin(3, 0, 1);
    key("k", SH_GGUF_U64);
    u32(1);
    CU_ASSERT(refused("key 'k': its value extends past the end of the file"));
    begin(3, 0, 1);
    key("flag", SH_GGUF_BOOL);
    put("\2", 1);
    CU_ASSERT(refused("key 'flag': found a boolean of 2"));
    begin(3, 0, 1);
    key("word", SH_GGUF_STRING);
    u64(1000);
    data(64);
    CU_ASSERT(refused("key 'word': its value extends past"));
}

static void arrays(void)
{
    clock_t start = clock();
    begin(3, 0, 1);
    array("bomb", SH_GGUF_STRING, (uint64_t)1 << 60);
    data(64);
    CU_ASSERT(refused("key 'bomb': found an array of 1152921504606846976 elements of kind string, expected at most "));
    begin(3, 0, 1);
    array("wide", SH_GGUF_U64, (uint64_t)1 << 61);          /* whose bytes would be 0 in 64 bits */
    data(64);
    CU_ASSERT(refused("key 'wide': found an array of 2305843009213693952 elements of kind u64"));
    begin(3, 0, 1);
    array("strange", (enum sh_gguf_kind)99, 1);
    data(64);
    CU_ASSERT(refused("found an array of elements of kind 99"));
    begin(3, 0, 1);
    array("cut", SH_GGUF_STRING, 3);
    text("one");
    u64(500);
    data(32);
    CU_ASSERT(refused("key 'cut': its value extends past the end"));
    begin(3, 0, 1);
    array("deep", SH_GGUF_ARRAY, 1);
    for (int i = 0; i < 6; i++) {
        u32(SH_GGUF_ARRAY);
        u64(1);
    }
    data(64);
    CU_ASSERT(refused("key 'deep': found nested arrays"));
    begin(3, 0, 1);
    array("flags", SH_GGUF_BOOL, 3);
    put("\1\0\7", 3);
    CU_ASSERT(refused("key 'flags': found a boolean of 7"));
    CU_ASSERT(clock() - start < CLOCKS_PER_SEC);            /* nothing was counted or allocated on its word */
}

/* ---- tensors ---- */

static void table(void)
{
    begin(3, 1, 0);
    u64(UINT64_MAX - 3);
    data(64);
    CU_ASSERT(refused("tensor 0: its name extends past the end"));
    begin(3, 1, 0);
    tensor("", 8, 0, 0, 0);
    data(32);
    CU_ASSERT(refused("tensor 0: found a name of 0 characters"));
    begin(3, 1, 0);
    tensor("\033[2J", 8, 0, 0, 0);
    data(32);
    CU_ASSERT(refused("tensor 0: found the name '?[2J', expected plain ASCII"));
    begin(3, 1, 0);
    text("w");
    u32(5);
    data(64);
    CU_ASSERT(refused("tensor 'w': found 5 dimensions, expected 1 to 4"));
    begin(3, 1, 0);
    text("w");
    u32(0);
    data(64);
    CU_ASSERT(refused("tensor 'w': found 0 dimensions"));
    begin(3, 1, 0);
    tensor("w", 0, 0, 0, 0);
    data(64);
    CU_ASSERT(refused("tensor 'w': found a dimension of 0"));
    begin(3, 1, 0);
    tensor("w", (uint64_t)1 << 33, (uint64_t)1 << 33, 0, 0);
    data(64);
    CU_ASSERT(refused("shape [8589934592, 8589934592] has more elements than any file"));
    begin(3, 1, 0);
    tensor("w", UINT64_MAX, 0, 8, 0);
    data(64);
    CU_ASSERT(refused("has more elements than any file"));
    begin(3, 1, 0);
    tensor("w", 48, 2, 8, 0);
    data(64);
    CU_ASSERT(refused("found shape [2, 48], expected a row length that is a multiple of 32"));
    begin(3, 1, 0);
    tensor("wide_enough", 8, 0, 0, 0);
    file.n -= 12;
    CU_ASSERT(refused("tensor 'wide_enough': the file ends"));
}

static void places(void)
{
    begin(3, 1, 0);
    tensor("w", 8, 2, 0, 0);
    data(63);
    CU_ASSERT(refused("tensor 'w': found its 64 bytes at offset 0, expected them within the 63 bytes of data"));
    begin(3, 1, 0);
    tensor("w", 8, 2, 0, 64);
    data(64);
    CU_ASSERT(refused("found its 64 bytes at offset 64, expected them within the 64 bytes"));
    begin(3, 1, 0);
    tensor("w", 8, 2, 0, (uint64_t)0 - 32);
    data(64);
    CU_ASSERT(refused("at offset 18446744073709551584"));
    begin(3, 1, 0);
    tensor("w", 8, 2, 0, 8);
    data(128);
    CU_ASSERT(refused("found its data at offset 8, expected a multiple of general.alignment, which is 32"));
    begin(3, 2, 0);
    tensor("a", 16, 0, 0, 0);
    tensor("b", 16, 0, 0, 32);
    data(128);
    CU_ASSERT(refused("tensor 'b': its data overlap the data of tensor 'a'"));
    begin(3, 2, 0);
    tensor("a", 8, 0, 0, 0);
    tensor("a", 8, 0, 0, 32);
    data(64);
    CU_ASSERT(refused("tensor 'a': found a duplicate"));
    begin(3, 1, 1);
    number("general.alignment", 24);
    tensor("w", 8, 0, 0, 0);
    data(64);
    CU_ASSERT(refused("key 'general.alignment': found 24, expected a power of two"));
    begin(3, 1, 1);
    number("general.alignment", 0);
    tensor("w", 8, 0, 0, 0);
    data(64);
    CU_ASSERT(refused("key 'general.alignment': found 0, expected a whole number from 1"));
    begin(3, 1, 1);
    word("general.alignment", "32");
    tensor("w", 8, 0, 0, 0);
    data(64);
    CU_ASSERT(refused("key 'general.alignment': found '32', expected a whole number"));
}

/* A format that is not read is no mistake until its numbers are wanted. */
static void formats(void)
{
    enum sh_type type;
    begin(3, 3, 0);
    tensor("a", 32, 0, 9, 0);
    tensor("b", 7, 0, 77, 96);
    tensor("c", 32, 0, 2, 128);
    data(160);
    struct sh_weights *w = sh_weights_open(scratch_write("m.gguf", file.at, file.n), &e);
    CU_ASSERT_FATAL(w != NULL && sh_weights_count(w) == 3);
    CU_ASSERT(sh_stored_type(sh_weights_find(w, "a"), &type, &e) == -1 &&
              tap_says(e.text, "tensor 'a': found dtype Q8_1, expected F32, F16 or BF16, Q4_0"));
    CU_ASSERT(sh_stored_type(sh_weights_find(w, "b"), &type, &e) == -1 &&
              tap_says(e.text, "found dtype type 77, expected"));
    CU_ASSERT(sh_stored_type(sh_weights_find(w, "c"), &type, &e) == 0 && type == SH_F32);
    sh_weights_close(w);
}

/* ---- split models ---- */

static int split_refused(uint32_t no, uint32_t count, const char *name, const char *part)
{
    begin(3, 0, 2);
    number("split.no", no);
    number("split.count", count);
    struct sh_weights *w = sh_weights_open(scratch_write(name, file.at, file.n), &e);
    sh_weights_close(w);
    return !w && tap_says(e.text, part);
}

static void splits(void)
{
    CU_ASSERT(split_refused(0, 2, "m.gguf", "key 'split.count': found 2"));
    CU_ASSERT(split_refused(0, 2, "m-00001-of-00003.gguf", "-00001-of-00002.gguf"));
    CU_ASSERT(split_refused(0, 4000000000, "m-00001-of-00002.gguf", "'split.count': found 4000000000"));
    CU_ASSERT(split_refused(0, 2, "m-00001-of-00002.gguf", "m-00002-of-00002.gguf: cannot be opened"));
    begin(3, 0, 2);
    number("split.no", 1);
    number("split.count", 3);
    scratch_write("m-00002-of-00002.gguf", file.at, file.n);
    CU_ASSERT(split_refused(0, 2, "m-00001-of-00002.gguf", "'split.count': found 3, expected the number of files"));
    begin(3, 1, 2);
    number("split.no", 1);
    number("split.count", 2);
    tensor("w", 8, 0, 0, 0);
    data(32);
    scratch_write("m-00002-of-00002.gguf", file.at, file.n);
    begin(3, 1, 2);
    number("split.no", 0);
    number("split.count", 2);
    tensor("w", 8, 0, 0, 0);
    data(32);
    CU_ASSERT(sh_weights_open(scratch_write("m-00001-of-00002.gguf", file.at, file.n), &e) == NULL &&
              tap_says(e.text, "tensor 'w': found a duplicate in "));
    scratch_clear();
}

/* ---- models ---- */

/* What a model is made to say besides, and what must come of it. */
struct claim { const char *key; enum { NONE, WORD, NUMBER, REAL, FLAG, LIST, LONG } kind; const char *word; double x;
               const char *says; };

static void say(const struct claim *c)
{
    unsigned char flag = c->x != 0;
    switch (c->kind) {
    case WORD: word(c->key, c->word); break;
    case NUMBER: number(c->key, (uint32_t)c->x); break;
    case REAL: real(c->key, (float)c->x); break;
    case FLAG: key(c->key, SH_GGUF_BOOL); put(&flag, 1); break;
    case LIST: array(c->key, SH_GGUF_U32, 2); u32(4); u32((uint32_t)c->x); break;
    case LONG: array(c->key, SH_GGUF_U32, 3); u32(2); u32(2); u32((uint32_t)c->x); break;
    case NONE: break;
    }
}

/* Metadata of a sound model of 2 layers, but for the claim, which stands in place of a key of that name, and an
 * embedding; sh_config_open's word about it. */
static const char *config_says(const char *arch, const struct claim *claim, struct sh_arch *a)
{
    static const struct { const char *name; float x; } usual[] = {
        {"block_count", 2}, {"embedding_length", 32}, {"feed_forward_length", 48}, {"context_length", 64},
        {"attention.head_count", 4}, {"attention.head_count_kv", 2}, {"attention.layer_norm_rms_epsilon", 1e-5f}};
    enum { N = sizeof usual / sizeof *usual };
    int other = 0, is_arch = !strcmp(claim->key, "general.architecture");
    char name[N][80];
    for (int i = 0; i < N; i++) {
        snprintf(name[i], sizeof name[i], "%s.%s", arch, usual[i].name);
        other += !strcmp(name[i], claim->key);
    }
    begin(3, 1, (uint64_t)(N + !is_arch + (claim->kind != NONE) - other));
    if (!is_arch)
        word("general.architecture", arch);
    for (int i = 0; i < N; i++) {
        if (!strcmp(name[i], claim->key))
            continue;
        if (usual[i].x < 1)
            real(name[i], usual[i].x);
        else
            number(name[i], (uint32_t)usual[i].x);
    }
    say(claim);
    tensor("token_embd.weight", 32, 64, 0, 0);
    data(32 * 64 * 4);
    snprintf(e.text, sizeof e.text, "(accepted)");
    struct sh_config *c = sh_config_open(scratch_write("m.gguf", file.at, file.n), &e);
    if (c)
        sh_config_arch(c, a, &e);
    sh_config_close(c);
    return e.text;
}

static void claims(void)
{
    static const struct claim cases[] = {
        {"llama.x", NONE, NULL, 0, "(accepted)"},
        {"general.architecture", NONE, NULL, 0, "key 'general.architecture': found nothing, expected one of llama"},
        {"general.architecture", WORD, "mamba9", 0, "found 'mamba9', expected one of llama qwen2"},
        {"general.architecture", NUMBER, NULL, 5, "key 'general.architecture': found 5, expected a string"},
        {"general.type", WORD, "adapter", 0, "key 'general.type': found 'adapter', expected model"},
        {"general.quantization_version", NUMBER, NULL, 1, "found 1, expected a whole number from 2 to 2"},
        {"llama.block_count", NONE, NULL, 0, "key 'llama.block_count' is missing"},
        {"llama.block_count", NUMBER, NULL, 0, "key 'llama.block_count': found 0, expected a whole number from 1"},
        {"llama.block_count", NUMBER, NULL, 4e9, "key 'llama.block_count': found 4000000000"},
        {"llama.attention.head_count", NUMBER, NULL, 5, "expected a divisor of embedding_length"},
        {"llama.attention.head_count_kv", NUMBER, NULL, 3, "found 3, expected a divisor of 'llama.attention"},
        {"llama.attention.head_count_kv", LIST, NULL, 4, "(accepted)"},
        {"llama.attention.head_count_kv", LIST, NULL, 2, "an array of 2 elements of kind u32, expected the same"},
        {"llama.attention.key_length", NUMBER, NULL, 6, "'llama.attention.value_length': found nothing, expected"},
        {"llama.expert_count", NUMBER, NULL, 8, "(accepted)"},
        {"llama.expert_count", NUMBER, NULL, 1e6, "key 'llama.expert_count': found 1000000, expected a whole number"},
        {"llama.expert_gating_func", NUMBER, NULL, 2, "key 'llama.expert_gating_func' is not supported"},
        {"qwen2.expert_count", NUMBER, NULL, 8, "key 'qwen2.expert_count': found 8, expected 0"},
        {"qwen3moe.x", NONE, NULL, 0, "key 'qwen3moe.expert_count' is missing"},
        {"deepseek2.x", NONE, NULL, 0, "key 'deepseek2.attention.kv_lora_rank' is missing"},
        {"deepseek2.attention.kv_lora_rank", NUMBER, NULL, 16, "key 'deepseek2.attention.key_length"},
        {"glm4.nextn_predict_layers", NUMBER, NULL, 2, "found 2, expected fewer than block_count"},
        {"glm4.nextn_predict_layers", NUMBER, NULL, 1, "(accepted)"},
        {"gemma3n.x", NONE, NULL, 0, "key 'gemma3n.altup.num_inputs' is missing"},
        {"qwen3next.x", NONE, NULL, 0, "key 'qwen3next.expert_count' is missing"},
        {"minicpm3.x", NONE, NULL, 0, "key 'minicpm3.attention.q_lora_rank' is missing"},
        {"llama.hidden_activation", WORD, "silu", 0, "key 'llama.hidden_activation' is not supported"},
        {"bitnet.hidden_activation", WORD, "nonsense", 0, "key 'bitnet.hidden_activation': found"},
        {"llama.swiglu_clamp_exp", REAL, NULL, 2, "key 'llama.swiglu_clamp_exp' is not supported"},
        {"glm4.rope.dimension_sections", WORD, "x", 0, "expected a list of whole numbers"},
        {"hunyuan-dense.attention.sliding_window", NUMBER, NULL, 8, "found 8, expected 0"},
        {"llama.expert_count", NUMBER, NULL, 0, "(accepted)"},
        {"llama.attention.causal", FLAG, NULL, 0, "key 'llama.attention.causal': found false, expected 1"},
        {"llama.attention.causal", FLAG, NULL, 1, "(accepted)"},
        {"llama.attention.temperature_length", NUMBER, NULL, 9,
         "key 'llama.attention.temperature_length'"},
        {"llama.embedding_scale", REAL, NULL, 12, "key 'llama.embedding_scale': found 12, expected 1"},
        {"llama.attention.scale", REAL, NULL, 0.5, "key 'llama.attention.scale': found 0.5, expected 1 / sqrt"},
        {"llama.rope.scaling.type", WORD, "longrope", 0, "found 'longrope', expected none, linear or yarn"},
        {"llama.rope.dimension_count", NUMBER, NULL, 4, "'llama.rope.dimension_count': found 4, expected the"},
        {"llama.rope.freq_base", REAL, NULL, -1, "key 'llama.rope.freq_base': found -1, expected a number above 1"},
        {"llama.rope.scaling.yarn_attn_factor", REAL, NULL, 1.5, "found 1.5, expected 1"},
        {"llama.attn_logit_softcapping", REAL, NULL, 50, "'llama.attn_logit_softcapping': found 50, expected 0"},
        {"llama.attention.sliding_window_pattern", NUMBER, NULL, 2, "sliding_window_pattern': found 2"},
        {"llama.vision.image_size", NUMBER, NULL, 9, "(accepted)"},
        {"qwen2.attention.sliding_window", NUMBER, NULL, 8, "'qwen2.attention.sliding_window': found 8, expected 0"},
        {"qwen3.rope.dimension_count", NUMBER, NULL, 4, "(accepted)"},
        {"qwen3.rope.dimension_count", NUMBER, NULL, 3, "found 3 rotary elements in a head of 8"},
        {"gemma3.attention.sliding_window_pattern", REAL, NULL, 2, "found 2, expected a whole number"}};
    struct sh_arch a;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arch[40];
        size_t n = strcspn(cases[i].key, ".");
        snprintf(arch, sizeof arch, "%.*s", (int)n, strncmp(cases[i].key, "general", 7) ? cases[i].key : "llama.");
        arch[strcspn(arch, ".")] = '\0';
        config_says(arch, &cases[i], &a);
        CU_ASSERT(tap_says(e.text, cases[i].says));
    }
}

/* Layers, as "wg": windowed, global. */
static void windows(void)
{
    struct sh_arch a;
    config_says("llama", &(struct claim){"llama.attention.sliding_window", NUMBER, NULL, 8, ""}, &a);
    CU_ASSERT(tap_says(e.text, "(accepted)"));
    CU_ASSERT(sh_arch_window(&a, 0) == 8 && sh_arch_window(&a, 1) == 8);
    config_says("gemma2", &(struct claim){"gemma2.attention.sliding_window", NUMBER, NULL, 8, ""}, &a);
    CU_ASSERT(sh_arch_window(&a, 0) == 8 && sh_arch_window(&a, 1) == 0 && a.softcap == 50 && a.head_softcap == 30);
    config_says("gemma3", &(struct claim){"gemma3.attention.sliding_window", NUMBER, NULL, 8, ""}, &a);
    CU_ASSERT(sh_arch_window(&a, 0) == 8 && sh_arch_window(&a, 1) == 8 && a.softcap == 0 && a.local_rope.base == 10000);
    config_says("gemma3", &(struct claim){"gemma3.attention.sliding_window", NUMBER, NULL, 0, ""}, &a);
    CU_ASSERT(sh_arch_window(&a, 0) == 0 && sh_arch_window(&a, 1) == 0);
    config_says("phi3", &(struct claim){"phi3.attention.sliding_window", NUMBER, NULL, 0, ""}, &a);
    CU_ASSERT(sh_arch_window(&a, 0) == 0);
    config_says("qwen3", &(struct claim){"qwen3.rope.dimension_count", NUMBER, NULL, 6, ""}, &a);
    CU_ASSERT(a.n_rot == 6 && a.d_head == 8);
    /* Numbers after those of the model's layers are of none. */
    config_says("deci", &(struct claim){"deci.attention.head_count_kv", LONG, NULL, 8, ""}, &a);
    CU_ASSERT(tap_says(e.text, "(accepted)") && a.n_layer == 2 && a.n_kv_head == 2);
}

static int factors_refused(uint32_t type, uint64_t n, const float *by, const char *part)
{
    begin(3, 2, 8);
    word("general.architecture", "llama");
    number("llama.block_count", 1);
    number("llama.embedding_length", 32);
    number("llama.feed_forward_length", 48);
    number("llama.context_length", 64);
    number("llama.attention.head_count", 4);
    number("llama.vocab_size", 64);
    real("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    tensor("token_embd.weight", 32, 1, 0, 0);
    tensor("rope_freqs.weight", n, 0, type, 128);
    data(128);
    put(by, 16);
    data(16);
    struct sh_config *c = sh_config_open(scratch_write("m.gguf", file.at, file.n), &e);
    sh_config_close(c);
    return !c && tap_says(e.text, part);
}

static void factors(void)
{
    static const float odd[] = {1, 3, 1, 8}, below[] = {0.5f, 1, 1, 1};
    CU_ASSERT(factors_refused(0, 4, odd, "'rope_freqs.weight': "));
    CU_ASSERT(factors_refused(0, 4, below, "found 0.5, expected numbers from 1"));
    CU_ASSERT(factors_refused(0, 3, odd, "found F32 of shape [3], expected F32 of shape [4]"));
    CU_ASSERT(factors_refused(1, 4, odd, "found F16 of shape [4], expected F32"));
}

static void missing_tensors(void)
{
    struct sh_arch a;
    struct claim none = {"llama.x", NONE, NULL, 0, ""};
    config_says("llama", &none, &a);
    CU_ASSERT(sh_model_open(scratch_path("m.gguf"), &e) == NULL &&
              tap_says(e.text, "tensor 'output_norm.weight' is missing from the weights"));
    begin(3, 0, 8);
    word("general.architecture", "llama");
    for (int i = 0; i < 5; i++) {
        static const char *const names[] = {"block_count", "embedding_length", "feed_forward_length", "context_length",
                                            "attention.head_count"};
        char name[80];
        snprintf(name, sizeof name, "llama.%s", names[i]);
        number(name, 4);
    }
    real("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    number("llama.vocab_size", 64);
    CU_ASSERT(sh_model_open(scratch_write("m.gguf", file.at, file.n), &e) == NULL &&
              tap_says(e.text, "tensor 'token_embd.weight'"));
    scratch_clear();
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"headers", headers}, {"keys", keys}, {"arrays", arrays}, {"the tensor table", table}, {"places", places},
        {"formats", formats}, {"split models", splits}, {"claims", claims}, {"windows", windows},
        {"factors of frequencies", factors}, {"missing tensors", missing_tensors}, {0}};
    return tap_run("gguf_refused", tests);
}
