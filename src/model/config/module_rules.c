/* SPDX-License-Identifier: Apache-2.0 */
/* See module_rules.h. Files differ in what comes before "layers." in a name, so it is not compared. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/model/config/module_rules.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/mem.h"

#define QUANT "quantization_config"
#define ALGOS QUANT ".quantized_layers"
#define MOST_SECONDS 2.0                /* for all patterns: those of published files take milliseconds */
enum { MOST_NAMES = 65536, MOST_ALGOS = 1 << 20, MOST_PATTERNS = 256, MOST_NAME = 300, MOST_LIST = 112,
       MOST_STEPS = 100000 };

/* An entry of a list. Names are sorted apart; patterns are tried one after another. */
struct entry {
    const char *text;                   /* without "re:", and without what comes before "layers." */
    int format, item;                   /* 0: not quantised; its number in the list               */
    char list[MOST_LIST];
    pcre2_code *code;                   /* of a regular expression; else NULL                     */
    int is_pattern, is_part;            /* part: any whole components of a name                   */
    int is_used;
};

struct sh_module_rules {
    const struct sh_config *c;
    struct entry *name, *pattern;       /* sorted by text; [n_name], [n_pattern]                  */
    size_t n_name, n_pattern;
    int usual, head;                    /* formats of what no list names                          */
    char format[SH_MOST_FORMATS][SH_FORMAT_NAME];
    int n_format;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    double spent;                       /* seconds of this thread in patterns                     */
};

/* ---- one entry ---- */

static const char *after_prefix(const char *name)
{
    const char *at = strstr(name, "layers.");
    return at && (at == name || at[-1] == '.') ? at : name;
}

/* '*' stands for anything. */
static int is_like(const char *pattern, const char *name)
{
    const char *star = NULL, *from = name;
    while (*name)
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++from;
        } else {
            return 0;
        }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

/* Are these whole components of the name? */
static int has_part(const char *name, const char *part)
{
    size_t n = strlen(part);
    for (const char *at = name; n && (at = strstr(at, part)); at++)
        if ((at == name || at[-1] == '.') && (!at[n] || at[n] == '.'))
            return 1;
    return 0;
}

static int is_found(const struct sh_module_rules *r, const struct entry *p, const char *prefix, const char *name)
{
    char whole[MOST_NAME + 64];
    int n = snprintf(whole, sizeof whole, "%s%s", prefix, name);
    return n > 0 && (size_t)n < sizeof whole &&
           pcre2_match(p->code, (PCRE2_SPTR)whole, (PCRE2_SIZE)n, 0, PCRE2_ANCHORED, r->match, r->limits) >= 0;
}

static double thread_seconds(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) ? 0 : (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int matches(const struct sh_module_rules *r, const struct entry *p, const char *name,
                   const char *const *prefixes)
{
    if (p->is_part)
        return has_part(name, p->text);
    if (!p->code && *p->text != '*' && is_like(p->text, after_prefix(name)))
        return 1;
    for (int i = 0; prefixes[i]; i++) {
        char whole[MOST_NAME + 64];
        if (p->code && is_found(r, p, prefixes[i], name))
            return 1;
        snprintf(whole, sizeof whole, "%.50s%.*s", prefixes[i], MOST_NAME, name);
        if (!p->code && is_like(p->text, whole))
            return 1;
    }
    return 0;
}

/* Names of what has no matrices in layers, whatever comes after them. */
static int is_of_other_part(const char *name)
{
    static const char *const parts[] = {"vision", "visual", "mm_projector", "multi_modal_projector", "connector",
                                        "audio_tower", "patch_merge", "mtp"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return 1;
    return 0;
}

/* … and of parts of layers that are never quantised. */
static int is_never_quantised(const char *name)
{
    static const char *const ends[] = {"lm_head", "head", "embed_tokens", "embeddings", "gate", "router", "conv1d",
                                       "bias", "shared_expert_gate", "weights_proj", "indexers_proj"};
    size_t n = strlen(name);
    while (n && (name[n - 1] == '*' || name[n - 1] == '.'))
        n--;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t m = strlen(ends[i]);
        if (n >= m && !strncmp(name + n - m, ends[i], m))
            return 1;
    }
    return strstr(name, "lm_head") || strstr(name, "norm");
}

/* ---- the lists ---- */

static void add_entry(struct sh_module_rules *r, struct entry p)
{
    struct entry **to = p.is_pattern ? &r->pattern : &r->name;
    size_t *n = p.is_pattern ? &r->n_pattern : &r->n_name;
    if (!(*n & (*n - 1)))
        *to = xreallocarray(*to, *n ? 2 * *n : 1, sizeof **to);
    (*to)[(*n)++] = p;
}

static int compile(struct sh_module_rules *r, const char *key, struct entry *p, struct sh_err *e)
{
    int code;
    size_t at;
    if (!r->match) {
        r->match = pcre2_match_data_create(1, NULL);
        r->limits = pcre2_match_context_create(NULL);
        if (!r->match || !r->limits)
            return sh_fail(e, "out of memory");
        pcre2_set_match_limit(r->limits, MOST_STEPS);
        pcre2_set_depth_limit(r->limits, 1000);
    }
    p->code = strlen(p->text) > MOST_NAME ? NULL
              : pcre2_compile((PCRE2_SPTR)p->text, PCRE2_ZERO_TERMINATED, PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    return p->code ? 0 : sh_config_refuse(r->c, key, "a regular expression of at most 300 characters after re:", e);
}

static int read_entry(struct sh_module_rules *r, const char *list, int i, struct entry p, struct sh_err *e)
{
    char key[160];
    snprintf(key, sizeof key, "%s.%d", list, i);
    if (sh_config_word(r->c, key, &p.text, e))
        return -1;
    if (!p.text || is_of_other_part(p.text) || (p.format && !strcmp(p.text, "Linear")))
        return 0;
    snprintf(p.list, sizeof p.list, "%s", list);
    p.item = i;
    int is_re = !strncmp(p.text, "re:", 3);
    p.is_part &= !is_re && !strstr(p.text, "layers.");
    p.is_pattern = p.is_part || is_re || strchr(p.text, '*');
    p.text = is_re ? p.text + 3 : *p.text == '*' ? p.text : after_prefix(p.text);
    if (p.is_pattern && r->n_pattern >= MOST_PATTERNS)
        return sh_config_refuse(r->c, key, "at most 256 patterns", e);
    if (is_re && compile(r, key, &p, e))
        return -1;
    add_entry(r, p);
    return 0;
}

static int read_list(struct sh_module_rules *r, const char *list, struct entry like, struct sh_err *e)
{
    int n = sh_config_length(r->c, list);
    if (n > MOST_NAMES)
        return sh_config_refuse(r->c, list, "at most 65536 names", e);
    for (int i = 0; i < n; i++)
        if (read_entry(r, list, i, like, e))
            return -1;
    return 0;
}

/* The targets of each of compressed-tensors' groups with weights, in the order of `q`. */
static int read_groups(struct sh_module_rules *r, struct sh_err *e)
{
    const char *group;
    int format = 0;
    for (int i = 0; (group = sh_config_key_at(r->c, QUANT ".config_groups", i)); i++) {
        char weights[128], list[MOST_LIST], key[160];
        snprintf(weights, sizeof weights, QUANT ".config_groups.%.60s.weights", group);
        snprintf(list, sizeof list, QUANT ".config_groups.%.60s.targets", group);
        if (!sh_config_is_set(r->c, weights))
            continue;
        format++;
        int n = sh_config_length(r->c, list), is_usual = n <= 0;
        for (int k = 0; k < n && !is_usual; k++) {
            snprintf(key, sizeof key, "%s.%d", list, k);
            is_usual = sh_config_is(r->c, key, "\"Linear\"");
        }
        if (is_usual && r->usual)
            return sh_config_refuse(r->c, list, "one group for all matrices, and names in the others", e);
        r->usual = is_usual ? format : r->usual;
        if (read_list(r, list, (struct entry){.format = format}, e))
            return -1;
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : x->format - y->format;       /* what is left out comes first              */
}

/* Sorts the names; of several that say the same one stays, so that a look-up takes the same time for any list. */
static void sort_names(struct sh_module_rules *r)
{
    size_t n = 0;
    if (r->n_name)
        qsort(r->name, r->n_name, sizeof *r->name, by_text);
    for (size_t i = 0; i < r->n_name; i++)
        if (!n || by_text(&r->name[n - 1], &r->name[i]))
            r->name[n++] = r->name[i];
    r->n_name = n;
}

/* ---- formats ---- */

/* As a format of planner/capacity/kv_type.h; groups take whole bytes. */
static void name_format(const struct sh_quant *q, const struct sh_quant_scheme *s, char *to, size_t bytes)
{
    int scale = q->method == SH_QUANT_BNB ? (q->is_double ? 8 : 32) : 16;
    int zero = s->asymmetric ? (s->group * s->bits + scale + 4) % 8 || s->bits == 8 ? 8 : 4 : 0;
    if (s->bits == 2)
        snprintf(to, bytes, "int2:group=0:scale=0:zero=0");
    else if (s->is_float && s->span == SH_SPAN_GROUP)
        snprintf(to, bytes, s->bits == 8 ? "f8:group=%d:scale=8" : s->group == 16 ? "nvfp4" : "mxfp4", s->group);
    else if (s->span == SH_SPAN_BLOCK)
        snprintf(to, bytes, "f8:block=%d", s->block[0]);
    else if (s->span == SH_SPAN_TENSOR && s->bits == 8)
        snprintf(to, bytes, s->is_float ? "f8" : "int8");
    else if (s->is_float)
        snprintf(to, bytes, "f8:scale=16");
    else
        snprintf(to, bytes, "int%d:group=%d:scale=%d:zero=%d", s->bits, s->group, scale, zero);
}

/* The number of the format with this name, which is added if it is new; 0: there are too many. */
static int number_of(struct sh_module_rules *r, const char *name)
{
    for (int i = 0; i < r->n_format; i++)
        if (!strcmp(r->format[i], name))
            return i + 1;
    if (r->n_format == SH_MOST_FORMATS)
        return 0;
    snprintf(r->format[r->n_format], SH_FORMAT_NAME, "%s", name);
    return ++r->n_format;
}

/* quantized_layers has an object for each module, or for what contains it. */
static const char *format_of_algo(const char *algo)
{
    static const char *const formats[][2] = {
        {"FP8", "f8"}, {"FP8_PER_CHANNEL_PER_TOKEN", "f8:scale=16"}, {"MXFP8", "f8:group=32:scale=8"},
        {"NVFP4", "nvfp4"}, {"W4A16_NVFP4", "nvfp4"}, {"W4A8_NVFP4_FP8", "nvfp4"}, {"MXFP4", "mxfp4"},
        {"W4A16_AWQ", "int4:group=128:scale=16:zero=0"}, {"W4A8_AWQ", "int4:group=128:scale=16:zero=0"},
        {"FP8_PB_WO", "f8:block=128"}};
    for (size_t i = 0; algo && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i][0], algo))
            return formats[i][1];
    return NULL;
}

static int read_algo(void *arg, const char *module, const char *algo, struct sh_err *e)
{
    struct sh_module_rules *r = arg;
    const char *format = format_of_algo(algo);
    int number = format ? number_of(r, format) : 0;
    if (!number || strchr(module, '*') || r->n_name >= MOST_ALGOS)
        return sh_fail(e, "%s: key '%s': found %.80s with %.40s, expected names of modules with a known quant_algo, at "
                       "most 2^20 of them", sh_config_path(r->c), ALGOS, module, algo ? algo : "none");
    struct entry p = {.text = after_prefix(module), .format = number, .item = -1};
    snprintf(p.list, sizeof p.list, "%s", ALGOS);
    if (!is_of_other_part(module))
        add_entry(r, p);
    return 0;
}

struct sh_module_rules *sh_module_rules_new(const struct sh_config *c, const struct sh_quant *q, struct sh_err *e)
{
    static const char *const lists[] = {QUANT ".ignore", QUANT ".exclude_modules"};
    static const char parts[] = QUANT ".modules_to_not_convert";
    struct sh_module_rules *r = xcalloc(1, sizeof *r);
    int bad = 0, has_groups = sh_config_is_filled(c, QUANT ".config_groups");
    r->c = c;
    for (int i = 0; i < q->n; i++)
        name_format(q, &q->scheme[i], r->format[r->n_format++], SH_FORMAT_NAME);
    if (sh_config_is_filled(c, ALGOS))
        r->usual = q->method == SH_QUANT_FP8 ? 1 : 0;
    else if (has_groups && q->method == SH_QUANT_GROUPS)
        bad = read_groups(r, e);
    else
        r->usual = 1;
    r->head = q->method == SH_QUANT_GROUPS ? r->usual : 0;
    for (int i = 0; i < 2 && !bad; i++)
        bad = read_list(r, lists[i], (struct entry){0}, e);
    bad = bad || read_list(r, parts, (struct entry){.is_part = 1}, e) ||
          sh_config_members(c, ALGOS, "quant_algo", read_algo, r, e);
    if (bad) {
        sh_module_rules_free(r);
        return NULL;
    }
    sort_names(r);
    return r;
}

void sh_module_rules_free(struct sh_module_rules *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_pattern; i++)
        pcre2_code_free(r->pattern[i].code);
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->limits);
    free(r->name);
    free(r->pattern);
    free(r);
}

int sh_module_rules_differ(const struct sh_module_rules *r)
{
    return r->n_name || r->n_pattern || r->usual != 1 || r->head;
}

/* ---- modules ---- */

/* The first entry with this text. */
static struct entry *find_name(const struct sh_module_rules *r, const char *text)
{
    size_t low = 0, high = r->n_name;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(r->name[middle].text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n_name && !strcmp(r->name[low].text, text) ? &r->name[low] : NULL;
}

/* The format of what has the name, or contains it; `found` if there is none. */
static int named(struct sh_module_rules *r, const char *prefix, const char *name, int found)
{
    char whole[MOST_NAME + 64];
    snprintf(whole, sizeof whole, "%.50s%.*s", prefix, MOST_NAME, name);
    for (char *dot = whole; dot; dot = strrchr(whole, '.')) {           /* also what contains it */
        *dot = dot == whole ? *dot : '\0';
        struct entry *p = find_name(r, whole);
        for (; p && p < r->name + r->n_name && !strcmp(p->text, whole); p++) {
            p->is_used = 1;
            found = found < 0 || !p->format ? p->format : found;
        }
    }
    return found;
}

int sh_module_format(struct sh_module_rules *r, const char *name, const char *const *prefixes, int is_head)
{
    int found = named(r, "", after_prefix(name), -1);
    for (int i = 0; prefixes[i] && !strstr(name, "layers."); i++)
        found = named(r, prefixes[i], name, found);
    double from = r->n_pattern ? thread_seconds() : 0;
    for (size_t i = 0; i < r->n_pattern && r->spent < MOST_SECONDS; i++) {
        struct entry *p = &r->pattern[i];
        if ((p->is_used && found == 0) || !matches(r, p, name, prefixes))
            continue;
        p->is_used = 1;
        found = found < 0 || !p->format ? p->format : found;
    }
    r->spent += r->n_pattern ? thread_seconds() - from : 0;
    return found >= 0 ? found : is_head ? r->head : r->usual;
}

int sh_module_usual(const struct sh_module_rules *r)
{
    return r->usual;
}

const char *sh_module_format_name(const struct sh_module_rules *r, int n)
{
    return r->format[n - 1];
}

int sh_module_format_count(const struct sh_module_rules *r)
{
    return r->n_format;
}

/* Does the name belong to a layer after the last, which predicts further tokens? */
static int is_of_later_layer(const char *name, int n_layer)
{
    const char *at = strstr(name, "layers.");
    return at && isdigit((unsigned char)at[7]) && strtol(at + 7, NULL, 10) >= n_layer;
}

/* Only the first expert of a layer is looked up: do the others have the same format? */
static int is_as_first_expert(const struct sh_module_rules *r, const struct entry *p)
{
    static const char experts[] = ".experts.";
    char name[MOST_NAME + 1];
    const char *at = strstr(p->text, experts), *number = at ? at + sizeof experts - 1 : NULL;
    size_t digits = number ? strspn(number, "0123456789") : 0;
    if (p->code || !digits || strlen(p->text) > MOST_NAME)
        return 0;
    snprintf(name, sizeof name, "%.*s0%s", (int)(number - p->text), p->text, number + digits);
    const struct entry *first = find_name(r, name);
    return first && first->is_used && first->format == p->format;
}

int sh_module_rules_check(const struct sh_module_rules *r, int n_layer, struct sh_err *e)
{
    if (r->spent >= MOST_SECONDS)
        return sh_fail(e, "%s: key '%s': its patterns take too long, expected at most %g s", sh_config_path(r->c),
                       QUANT, MOST_SECONDS);
    for (size_t i = 0; i < r->n_name + r->n_pattern; i++) {
        const struct entry *p = i < r->n_name ? &r->name[i] : &r->pattern[i - r->n_name];
        char key[160];
        if (p->is_used || p->code || is_never_quantised(p->text) ||
            is_of_later_layer(p->text, n_layer) || is_as_first_expert(r, p))
            continue;
        if (p->item < 0)
            return sh_fail(e, "%s: key '%s': found %.80s, expected names of the model's matrices",
                           sh_config_path(r->c), p->list, p->text);
        snprintf(key, sizeof key, "%s.%d", p->list, p->item);
        return sh_config_refuse(r->c, key, "lm_head, a router, a vision tower, or names of matrices in layers", e);
    }
    return 0;
}
