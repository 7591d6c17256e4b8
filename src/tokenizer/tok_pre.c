/* SPDX-License-Identifier: Apache-2.0 */
/* The names of pre-tokenizers in GGUF files (tokenizer.ggml.pre), as the tokenizer.json of the named model has them. */
#include <string.h>

#include "src/tokenizer/tok.h"

#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define SHORT "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define MARKS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define PATHS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define CASED(end) BEFORE UPPER "*" LOWER "+" end "|" BEFORE UPPER "+" LOWER "*" end
#define LLAMA_3 SHORT "|" LETTERS "|\\p{N}{1,3}|" MARKS "|" SPACES
#define QWEN_2 SHORT "|" LETTERS "|\\p{N}|" MARKS "|" SPACES
#define QWEN_3_5 SHORT "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES
#define SEED SHORT "|" LETTERS "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define O200K CASED(SHORT "?") "|\\p{N}{1,3}|" PATHS "|" SPACES
#define TEKKEN CASED("") "|\\p{N}|" PATHS "|" SPACES
#define GPT_2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define TRIPLES "[0-9][0-9][0-9]"
#define HAN "[一-龥\\x{800}-一가-\\x{D7FF}]+"
#define DEEPSEEK_3 \
    "\\p{N}{1,3}", "[一-龥\\x{3040}-ゟ゠-ヿ]+", \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" \
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES

enum {
    DIGITS = 1, WHOLE = 2, NFC = 4,     /* digits one by one; ignore_merges; normalizer */
    BEGINS = 8,                         /* bos is put before texts unless the file says otherwise */
    MOST_CUTS = 5
};
#define LIKE_LLAMA_3 WHOLE | BEGINS, {LLAMA_3}

/* cut: regular expressions, one after another, each of whose matches is a piece; none: GPT-2's alone. */
static const struct { const char *name; int flags; const char *cut[MOST_CUTS]; } known[] = {
    {"gpt-2", 0, {NULL}}, {"mpt", 0, {NULL}}, {"olmo", 0, {NULL}}, {"jais", 0, {NULL}}, {"phi-2", 0, {NULL}},
    {"exaone4", 0, {NULL}}, {"mellum", 0, {NULL}}, {"a.x-4.0", 0, {NULL}}, {"gigachat", 0, {NULL}},
    {"starcoder", DIGITS, {NULL}}, {"refact", DIGITS, {NULL}}, {"command-r", DIGITS, {NULL}},
    {"smollm", DIGITS, {NULL}}, {"codeshell", DIGITS, {NULL}}, {"exaone", DIGITS, {NULL}},
    {"llama-bpe", LIKE_LLAMA_3}, {"llama3", LIKE_LLAMA_3}, {"llama-v3", LIKE_LLAMA_3},
    {"falcon3", LIKE_LLAMA_3}, {"falcon-h1", LIKE_LLAMA_3}, {"pixtral", LIKE_LLAMA_3},
    {"lfm2", LIKE_LLAMA_3}, {"dbrx", 0, {LLAMA_3}}, {"smaug-bpe", 0, {LLAMA_3}}, {"glm4", 0, {LLAMA_3}},
    {"chatglm-bpe", 0, {LLAMA_3}},
    {"qwen2", NFC, {QWEN_2}}, {"deepseek-r1-qwen", NFC, {QWEN_2}}, {"stablelm2", 0, {QWEN_2}}, {"hunyuan", 0, {QWEN_2}},
    {"solar-open", 0, {QWEN_2}}, {"qwen35", NFC, {QWEN_3_5}}, {"seed-coder", 0, {SEED}},
    {"gpt-4o", 0, {O200K}}, {"llama4", 0, {O200K}}, {"minimax-m2", 0, {O200K}}, {"tekken", WHOLE | BEGINS, {TEKKEN}},
    {"bloom", 0, {" ?[^(\\s|[.,!?…。，、।۔،])]+"}},
    {"falcon", 0, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT_2, TRIPLES}},
    {"default", 0, {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT_2, "\\p{N}+", TRIPLES}},
    {"deepseek-coder", 0, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN, "\\p{N}"}},
    {"deepseek-v3", 0, {DEEPSEEK_3}}, {"hunyuan-dense", 0, {DEEPSEEK_3}}};

enum { N_KNOWN = sizeof known / sizeof *known };

static size_t find(const char *name)
{
    size_t i = 0;
    while (i < N_KNOWN && strcmp(known[i].name, name))
        i++;
    return i;
}

int sh_tok_pre_begins(const char *name)
{
    size_t i = find(name);
    return i < N_KNOWN && known[i].flags & BEGINS;
}

json_t *sh_tok_pre(const char *name)
{
    size_t i = find(name);
    if (i == N_KNOWN)
        return NULL;
    json_t *root = json_object(), *steps = json_array();
    if (known[i].flags & DIGITS)
        json_array_append_new(steps, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
    for (int k = 0; k < MOST_CUTS && known[i].cut[k]; k++)
        json_array_append_new(steps, json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                                               known[i].cut[k], "behavior", "Isolated", "invert", 0));
    json_array_append_new(steps, json_pack("{s:s, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "use_regex",
                                           known[i].cut[0] == NULL));
    json_object_set_new(root, "pre_tokenizer", json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", steps));
    json_object_set_new(root, "decoder", json_pack("{s:s}", "type", "ByteLevel"));
    if (known[i].flags & NFC)
        json_object_set_new(root, "normalizer", json_pack("{s:s}", "type", "NFC"));
    json_object_set_new(root, "ignore_merges", json_boolean(known[i].flags & WHOLE));
    return root;
}
