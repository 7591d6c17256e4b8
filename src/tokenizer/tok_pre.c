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
#define DEEPSEEK_LETTERS \
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-" \
    "Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴ" \
    "ᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴ" \
    "ℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ" \
    "-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
#define DEEPSEEK_LLM \
    "[\\r\\n]", DEEPSEEK_LETTERS, "\\s?[!-/:-~！-／：-～‘-‟\\x{3000}-。]+", "\\s+$", HAN, "\\p{N}+"
#define WORDS \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" \
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
#define DEEPSEEK_3 "\\p{N}{1,3}", "[一-龥\\x{3040}-ゟ゠-ヿ]+", WORDS

#define BLOOM " ?[^(\\s|[.,!?…。，、।۔،])]+"
#define AT_ENDS(n) "\\s{" n "}(?!\\S)|"
#define JAIS_2 SHORT "|" LETTERS "|\\p{N}{1,3}|" MARKS "|\\s*[\\r\\n]+|" AT_ENDS("512") AT_ENDS("256") AT_ENDS("128") \
    AT_ENDS("64") AT_ENDS("32") AT_ENDS("16") AT_ENDS("8") AT_ENDS("4") AT_ENDS("1,2") "\\s{1}"
#define BAILING \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|" \
    "\\s+(?!\\S)|\\s+"
#define MINICPM_5 "\\p{N}{1,3}", SHORT "|" LETTERS "|\\p{N}+|" MARKS "|" SPACES
#define EXAONE_MOE \
    SHORT "|" BEFORE "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|" \
    "\\s+(?!\\S)|\\s+"
#define YOUTU \
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\\x{3040}-ゟ゠-ヿ]+", \
    CASED(SHORT "?") "|\\p{N}|" PATHS "|" SPACES
/* Digits in threes, from the right; tiny_aya only where no letter follows. */
#define THREES "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))"
#define TINY_AYA "\\d{1,3}(?=(?:\\d{3})*\\b)", O200K
#define AFMOE \
    THREES, \
    "[一-\\x{9FFF}㐀-䶿\\x{F900}-\\x{FAFF}\\x{3040}-ゟ゠-ヿ･-ﾟ⼀-\\x{2FDF}เ-\\x{E7F}" \
    "\\x{E80}-\\x{EFF}ក-\\x{17FF}က-႟" \
    "ꩠ-ꩿꧠ-\\x{A9FF}가-\\x{D7AF}ᄀ-ᇿ]+", WORDS
#define NO_HAN(set) "(?:(?!\\p{Han})" set ")"
#define CASED_NO_HAN(end) \
    BEFORE NO_HAN(UPPER) "*" NO_HAN(LOWER) "+" end "|" BEFORE NO_HAN(UPPER) "+" NO_HAN(LOWER) "*" end
#define KIMI_K2 "\\p{Han}+|" CASED_NO_HAN(SHORT "?") "|\\p{N}{1,3}|" MARKS "|" SPACES
#define LINES "[^\\n]+|[\\n]+"

enum {
    DIGITS = 1, WHOLE = 2, NFC = 4,     /* digits one by one; ignore_merges; normalizer */
    BEGINS = 8,                         /* bos is put before texts unless the file says otherwise */
    RAW = 16,                           /* of characters, not bytes; spaces are written ▁ */
    MOST_CUTS = 6
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
    {"lfm2", LIKE_LLAMA_3}, {"dbrx", 0, {LLAMA_3}}, {"smaug-bpe", 0, {LLAMA_3}}, {"glm4", WHOLE, {LLAMA_3}},
    {"chatglm-bpe", 0, {LLAMA_3}},
    {"qwen2", NFC, {QWEN_2}}, {"deepseek-r1-qwen", NFC, {QWEN_2}}, {"stablelm2", 0, {QWEN_2}}, {"hunyuan", 0, {QWEN_2}},
    {"solar-open", 0, {QWEN_2}}, {"qwen35", NFC, {QWEN_3_5}}, {"seed-coder", 0, {SEED}},
    {"gpt-4o", 0, {O200K}}, {"llama4", 0, {O200K}}, {"minimax-m2", 0, {O200K}}, {"tekken", WHOLE | BEGINS, {TEKKEN}},
    {"bloom", 0, {BLOOM}}, {"poro-chat", 0, {BLOOM}}, {"gpt3-finnish", 0, {BLOOM}}, {"viking", 0, {BLOOM, "\\p{N}"}},
    {"falcon", 0, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT_2, TRIPLES}},
    {"default", 0, {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT_2, "\\p{N}+", TRIPLES}},
    {"deepseek-coder", 0, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN, "\\p{N}"}},
    {"deepseek-llm", 0, {DEEPSEEK_LLM}}, {"deepseek-v3", 0, {DEEPSEEK_3}}, {"hunyuan-dense", 0, {DEEPSEEK_3}},
    {"joyai-llm", 0, {DEEPSEEK_3}},
    {"minerva-7b", DIGITS, {NULL}}, {"mellum2", DIGITS, {NULL}}, {"trillion", 0, {NULL}},
    {"granite-docling", 0, {NULL}}, {"midm-2.0", LIKE_LLAMA_3}, {"glm5", WHOLE, {LLAMA_3}}, {"jais-2", 0, {JAIS_2}},
    {"megrez", 0, {QWEN_2}}, {"kormo", 0, {QWEN_2}}, {"grok-2", 0, {QWEN_2}}, {"laguna", 0, {LINES, QWEN_2}},
    {"kanana2", 0, {O200K}}, {"bailingmoe", 0, {BAILING}}, {"bailingmoe2", 0, {BAILING}}, {"llada-moe", 0, {BAILING}},
    {"minicpm5", WHOLE, {MINICPM_5}}, {"exaone-moe", 0, {EXAONE_MOE}}, {"youtu", WHOLE, {YOUTU}},
    {"tiny_aya", 0, {TINY_AYA}}, {"cohere2moe", 0, {TINY_AYA}}, {"afmoe", 0, {AFMOE}}, {"kimi-k2", 0, {KIMI_K2}},
    {"gemma4", RAW | WHOLE | BEGINS, {LINES}}, {"sarvam-moe", RAW, {LINES}}};

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

/* Spaces become ▁, and what the vocabulary lacks bytes. */
static void make_raw(json_t *root, json_t *steps)
{
    json_object_set_new(root, "normalizer", json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String",
                                                      " ", "content", "▁"));
    json_object_set_new(root, "decoder", json_pack("{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s}, {s:s}]}", "type", "Sequence",
                                                   "decoders", "type", "Replace", "pattern", "String", "▁", "content",
                                                   " ", "type", "ByteFallback", "type", "Fuse"));
    json_object_set_new(root, "byte_fallback", json_true());
    json_object_set_new(root, "pre_tokenizer", json_pack("{s:s, s:O}", "type", "Sequence", "pretokenizers", steps));
}

static void make_bytes(json_t *root, json_t *steps, int has_cuts)
{
    json_array_append_new(steps, json_pack("{s:s, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "use_regex",
                                           !has_cuts));
    json_object_set_new(root, "pre_tokenizer", json_pack("{s:s, s:O}", "type", "Sequence", "pretokenizers", steps));
    json_object_set_new(root, "decoder", json_pack("{s:s}", "type", "ByteLevel"));
}

static json_t *cut_by(const char *expression)
{
    return json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex", expression, "behavior",
                     "Isolated", "invert", 0);
}

json_t *sh_tok_cut(const char *expression)
{
    json_t *root = json_object(), *steps = json_array();
    json_array_append_new(steps, cut_by(expression));
    make_bytes(root, steps, 1);
    json_decref(steps);
    return root;
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
        json_array_append_new(steps, cut_by(known[i].cut[k]));
    if (known[i].flags & RAW)
        make_raw(root, steps);
    else
        make_bytes(root, steps, known[i].cut[0] != NULL);
    json_decref(steps);
    if (known[i].flags & NFC)
        json_object_set_new(root, "normalizer", json_pack("{s:s}", "type", "NFC"));
    json_object_set_new(root, "ignore_merges", json_boolean(known[i].flags & WHOLE));
    return root;
}
