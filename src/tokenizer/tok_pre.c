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

enum { DIGITS = 1, WHOLE = 2, NFC = 4 };        /* digits one by one; ignore_merges; normalizer */

static const char llama3[] = SHORT "|" LETTERS "|\\p{N}{1,3}|" MARKS "|" SPACES,
                  qwen2[] = SHORT "|" LETTERS "|\\p{N}|" MARKS "|" SPACES,
                  o200k[] = CASED(SHORT "?") "|\\p{N}{1,3}|" PATHS "|" SPACES,
                  tekken[] = CASED("") "|\\p{N}|" PATHS "|" SPACES, bloom[] = " ?[^(\\s|[.,!?…。，、।۔،])]+";

static const struct { const char *name, *regex; int flags; } known[] = {
    {"gpt-2", NULL, 0}, {"mpt", NULL, 0}, {"olmo", NULL, 0}, {"jais", NULL, 0},
    {"starcoder", NULL, DIGITS}, {"refact", NULL, DIGITS}, {"command-r", NULL, DIGITS},
    {"smollm", NULL, DIGITS}, {"codeshell", NULL, DIGITS},
    {"llama-bpe", llama3, WHOLE}, {"llama3", llama3, WHOLE}, {"llama-v3", llama3, WHOLE},
    {"dbrx", llama3, 0}, {"smaug-bpe", llama3, 0},
    {"qwen2", qwen2, NFC}, {"deepseek-r1-qwen", qwen2, NFC}, {"stablelm2", qwen2, 0},
    {"gpt-4o", o200k, 0}, {"llama4", o200k, 0}, {"tekken", tekken, WHOLE},
    {"bloom", bloom, 0}};

json_t *sh_tok_pre(const char *name)
{
    size_t i = 0, n = sizeof known / sizeof *known;
    while (i < n && strcmp(known[i].name, name))
        i++;
    if (i == n)
        return NULL;
    json_t *root = json_object(), *steps = json_array();
    if (known[i].flags & DIGITS)
        json_array_append_new(steps, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
    if (known[i].regex)
        json_array_append_new(steps, json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                                               known[i].regex, "behavior", "Isolated", "invert", 0));
    json_array_append_new(steps, json_pack("{s:s, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "use_regex",
                                           known[i].regex == NULL));
    json_object_set_new(root, "pre_tokenizer", json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", steps));
    json_object_set_new(root, "decoder", json_pack("{s:s}", "type", "ByteLevel"));
    if (known[i].flags & NFC)
        json_object_set_new(root, "normalizer", json_pack("{s:s}", "type", "NFC"));
    json_object_set_new(root, "ignore_merges", json_boolean(known[i].flags & WHOLE));
    return root;
}
