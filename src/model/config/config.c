/* SPDX-License-Identifier: Apache-2.0 */
#include "src/model/config/config.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/json_python.h"
#include "src/base/mem.h"
#include "src/model/config/config_quant_files.h"
#include "src/model/families/families.h"
#include "src/model/files/checkpoint.h"
#include "src/model/files/gguf_config.h"
#include "src/model/files/gguf_tensors.h"
#include "src/model/files/map.h"

#define MAX_CONFIG_BYTES ((size_t)16 << 20)

struct sh_config {
    char *path;
    struct sh_map map;
    json_t *root;
    json_t *names;                      /* of GGUF: the file's own key for each; else NULL        */
    char *text;                         /* of GGUF: root in writing; else NULL                    */
    int is_wrapped;                     /* see sh_config_is_wrapped                               */
    struct sizes **sizes;               /* those that were asked for, the last first              */
};

/* A link of a list, and the sizes themselves. */
struct sizes {
    struct sizes *next;
    struct sh_layer_sizes layer[];
};

/* The value at a path of keys and indices. */
static json_t *find_below(json_t *v, const char *path)
{
    while (v) {
        size_t n = strcspn(path, ".");
        char *end;
        if (json_is_array(v)) {
            size_t i = strtoul(path, &end, 10);
            v = end == path + n ? json_array_get(v, i) : NULL;
        } else {
            char key[128];
            snprintf(key, sizeof key, "%.*s", (int)n, path);
            v = n < sizeof key ? json_object_get(v, key) : NULL;
        }
        if (!path[n])
            return v;
        path += n + 1;
    }
    return NULL;
}

/* Is the key one of the whole model, where its text part does not say it? */
static int is_of_all(const char *path)
{
    static const char *const keys[] = {"architectures", "tie_word_embeddings", "dtype", "torch_dtype",
                                       "quantization_config", "compression_config", "vision_config", "_name_or_path",
                                       "bos_token_id", "eos_token_id"};
    size_t n = strcspn(path, ".");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i]) == n && !strncmp(keys[i], path, n))
            return 1;
    return 0;
}

/* In a model of text and images, the keys of the text part take precedence; others of the model may be its vision's. */
static json_t *find(const struct sh_config *c, const char *path)
{
    json_t *text = find_below(json_object_get(c->root, "text_config"), path);
    return text ? text : c->is_wrapped && !is_of_all(path) ? NULL : find_below(c->root, path);
}

/* Absent and null are the same. */
static json_t *value_of(const struct sh_config *c, const char *key)
{
    json_t *v = find(c, key);
    return json_is_null(v) ? NULL : v;
}

int sh_config_is_gguf(const struct sh_config *c)
{
    return c->names != NULL;
}

const char *sh_config_key_name(const struct sh_config *c, const char *key)
{
    const char *name = json_string_value(json_object_get(c->names, key));
    return name ? name : key;
}

int sh_config_has(const struct sh_config *c, const char *key)
{
    return find(c, key) != NULL;
}

int sh_config_is_filled(const struct sh_config *c, const char *key)
{
    return json_object_size(find(c, key)) > 0;
}

int sh_config_is(const struct sh_config *c, const char *key, const char *json)
{
    const json_t *v = value_of(c, key);
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    int same = !v || (text && !strcmp(text, json));
    free(text);
    return same;
}

int sh_config_is_set(const struct sh_config *c, const char *key)
{
    const json_t *v = value_of(c, key);
    return json_is_number(v) ? json_number_value(v) > 0
           : json_is_array(v) ? json_array_size(v) > 0 : v && !json_is_false(v);
}

const char *sh_config_first(const struct sh_config *c, const char *const *names, int n)
{
    for (int i = 0; i < n && names[i]; i++)
        if (value_of(c, names[i]))
            return names[i];
    return names[0];
}

int sh_config_length(const struct sh_config *c, const char *key)
{
    const json_t *v = value_of(c, key);
    size_t n = json_array_size(v);
    return v && !json_is_array(v) ? -1 : n < INT_MAX ? (int)n : INT_MAX;
}

int sh_config_members(const struct sh_config *c, const char *object, const char *key, sh_member_fn *visit, void *arg,
                      struct sh_err *e)
{
    const char *member;
    json_t *value;
    int stop = 0;
    json_object_foreach(find(c, object), member, value)
        if ((stop = visit(arg, member, json_string_value(json_object_get(value, key)), e)))
            return stop;
    return 0;
}

int sh_config_run(const struct sh_config *c, const char *object, const char *prefix, int most, int *first, int *n,
                  struct sh_err *e)
{
    json_t *map = value_of(c, object), *v;
    const char *member;
    unsigned char *seen = xcalloc((size_t)most / 8 + 1, 1);
    int low = most, high = -1, found = 0, bad = map && !json_is_object(map);
    json_object_foreach(map, member, v) {
        json_int_t i = json_integer_value(v);
        if (strncmp(member, prefix, strlen(prefix)))
            continue;
        if ((bad = !json_is_integer(v) || i < 0 || i >= most))
            break;
        found += !(seen[i / 8] >> i % 8 & 1);
        seen[i / 8] = (unsigned char)(seen[i / 8] | 1 << i % 8);
        low = i < low ? (int)i : low;
        high = i > high ? (int)i : high;
    }
    free(seen);
    if (bad || (found && high - low + 1 != found)) {
        char expected[120];
        snprintf(expected, sizeof expected, "an object that gives successive whole numbers below %d to %.20s…", most,
                 prefix);
        return sh_config_refuse(c, object, expected, e);
    }
    *first = found ? low : 0;
    *n = found;
    return 0;
}

const char *sh_config_key_at(const struct sh_config *c, const char *key, int i)
{
    void *at = json_object_iter(value_of(c, key));
    while (at && i-- > 0)
        at = json_object_iter_next(value_of(c, key), at);
    return at ? json_object_iter_key(at) : NULL;
}

static int refuse(const struct sh_config *c, const char *key, const json_t *v, const char *expected, struct sh_err *e)
{
    char *found = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    sh_fail(e, "%s: key '%s': found %.80s, expected %s", c->path, sh_config_key_name(c, key),
            found ? found : "nothing", expected);
    free(found);
    return -1;
}

int sh_config_refuse(const struct sh_config *c, const char *key, const char *expected, struct sh_err *e)
{
    return refuse(c, key, value_of(c, key), expected, e);
}

int sh_config_outer_refuse(const struct sh_config *c, const char *key, const char *expected, struct sh_err *e)
{
    return refuse(c, key, json_object_get(c->root, key), expected, e);
}

int sh_config_at_least(const struct sh_config *c, const char *key, int min, int max, int *out, struct sh_err *e)
{
    json_t *v = value_of(c, key);
    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max) {
        char expected[80];
        snprintf(expected, sizeof expected, "a whole number from %d to %d", min, max);
        return sh_config_refuse(c, key, expected, e);
    }
    *out = (int)json_integer_value(v);
    return 0;
}

int sh_config_count(const struct sh_config *c, const char *key, int max, int *out, struct sh_err *e)
{
    return sh_config_at_least(c, key, 1, max, out, e);
}

int sh_config_real(const struct sh_config *c, const char *key, double max, float *out, struct sh_err *e)
{
    json_t *v = value_of(c, key);
    if (!v)
        return 0;
    double x = json_number_value(v);
    if (!json_is_number(v) || !(x >= 0) || x > max) {
        char expected[80];
        snprintf(expected, sizeof expected, "a number from 0 to %g", max);
        return sh_config_refuse(c, key, expected, e);
    }
    *out = (float)x;
    return 0;
}

int sh_config_below(const struct sh_config *c, const char *key, double least, float *out, struct sh_err *e)
{
    json_t *v = value_of(c, key);
    if (!v)
        return 0;
    double x = json_number_value(v);
    if (!json_is_number(v) || !((float)x < 0) || x < least) {
        char expected[80];
        snprintf(expected, sizeof expected, "a number from %g to 0, but not 0", least);
        return sh_config_refuse(c, key, expected, e);
    }
    *out = (float)x;
    return 0;
}

int sh_config_reals(const struct sh_config *c, const char *key, double max, float *out, int n, struct sh_err *e)
{
    json_t *list = value_of(c, key);
    int good = json_is_array(list) && json_array_size(list) == (size_t)n;
    for (int i = 0; i < n && good; i++) {
        json_t *v = json_array_get(list, (size_t)i);
        double x = json_number_value(v);
        good = json_is_number(v) && x > 0 && x <= max;
        out[i] = (float)x;
    }
    if (good)
        return 0;
    char expected[80];
    snprintf(expected, sizeof expected, "a list of %d numbers above 0 and up to %g", n, max);
    return sh_config_refuse(c, key, expected, e);
}

int sh_config_flag(const struct sh_config *c, const char *key, int *out, struct sh_err *e)
{
    json_t *v = value_of(c, key);
    if (v && !json_is_boolean(v))
        return sh_config_refuse(c, key, "true or false", e);
    *out = v ? json_is_true(v) : *out;
    return 0;
}

int sh_config_outer_flag(const struct sh_config *c, const char *key, int *out, struct sh_err *e)
{
    json_t *v = json_object_get(c->root, key);
    if (v && !json_is_null(v) && !json_is_boolean(v))
        return sh_config_outer_refuse(c, key, "true or false", e);
    *out = v && !json_is_null(v) ? json_is_true(v) : *out;
    return 0;
}

int sh_config_outer_has(const struct sh_config *c, const char *key, const char *const *words)
{
    enum { MOST = 64 };                 /* more of them would only cost time                      */
    const json_t *all = json_object_get(c->root, key);
    if (!*words)
        return json_array_size(all) > 0;
    for (size_t i = 0; i < json_array_size(all) && i < MOST; i++) {
        const char *said = json_string_value(json_array_get(all, i));
        for (const char *const *word = words; *word && said; word++)
            if (!strcmp(said, *word))
                return 1;
    }
    return 0;
}

int sh_config_is_wrapped(const struct sh_config *c)
{
    return c->is_wrapped;
}

int sh_config_has_text(const struct sh_config *c)
{
    return json_is_object(json_object_get(c->root, "text_config"));
}

int sh_config_word(const struct sh_config *c, const char *key, const char **out, struct sh_err *e)
{
    json_t *v = value_of(c, key);
    if (v && !json_is_string(v))
        return sh_config_refuse(c, key, "a string", e);
    *out = v ? json_string_value(v) : *out;
    return 0;
}

int sh_config_choice(const struct sh_config *c, const char *key, const struct sh_word *words, int *out,
                     struct sh_err *e)
{
    const char *word = NULL;
    if (sh_config_word(c, key, &word, e))
        return -1;
    char expected[256] = "one of";
    for (const struct sh_word *w = words; word && w->name; w++) {
        if (!strcmp(w->name, word)) {
            *out = w->value;
            return 0;
        }
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, " %s", w->name);
    }
    return word ? sh_config_refuse(c, key, expected, e) : 0;
}

/* "org/name" or "name", as hubs call their models? Not the name of a file. */
static int is_hub_name(const char *path)
{
    static const char *const files[] = {".json", ".safetensors", ".bin", ".txt", ".db"};
    const char *slash = strchr(path, '/'), *end = strrchr(path, '.');
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (end && !strcmp(end, files[i]))
            return 0;
    return (!slash || (slash > path && slash[1] && !strchr(slash + 1, '/'))) && path[0] != '.' && path[0] != '~' &&
           !path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./")];
}

/* No config.json: what the path may have been meant for. */
static int refuse_path(const char *path, int folder, struct sh_err *e)
{
    char *adapter = xasprintf("%s/adapter_config.json", path);
    int is_adapter = !access(adapter, F_OK);
    free(adapter);
    if (is_adapter) {
        sh_fail(e, "%s: found a LoRA adapter (adapter_config.json), expected a model with config.json", path);
        return sh_hint(e, "merge it first, in Python with peft: AutoPeftModelForCausalLM.from_pretrained(folder)"
                       ".merge_and_unload().save_pretrained(merged); copy the tokenizer's files as well");
    }
    if (!folder && access(path, F_OK) && is_hub_name(path))
        return sh_hint(e, "if this is the name of a model on a hub, download its files first: hf download %s "
                       "--local-dir FOLDER, then give FOLDER", path);
    return -1;
}

/* Moves the text part to where most models have it, with those keys next to it that concern it. */
static void adopt_text(struct sh_config *c)
{
    const struct sh_wrapped_part *w = sh_wrapped_parts;
    while (w->architecture && !sh_config_outer_has(c, "architectures", SH_WORDS(w->architecture)))
        w++;
    json_t *outer = w->outer ? json_object_get(c->root, w->outer) : c->root;
    json_t *part = w->architecture ? json_object_get(outer, w->part) : NULL;
    if (!json_is_object(part))
        return;
    static const char *const next[] = {"tie_word_embeddings", "vision_config"};
    for (int i = 0; w->outer && i < 2; i++)
        if (json_object_set(c->root, next[i], json_object_get(outer, next[i])))
            json_object_del(c->root, next[i]);
    json_object_set(c->root, "text_config", part);
}

static int parse(struct sh_config *c, struct sh_err *e)
{
    if (sh_map_open(&c->map, c->path, e))
        return -1;
    if (c->map.bytes > MAX_CONFIG_BYTES)
        return sh_fail(e, "%s: found %zu bytes, expected a config.json of at most %zu", c->path,
                       c->map.bytes, MAX_CONFIG_BYTES);
    json_error_t why;
    size_t bytes;
    char *text = sh_json_plain(c->map.at ? (const char *)c->map.at : "", c->map.bytes, &bytes);
    c->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (!c->root)
        return sh_fail(e, "%s: line %d: not valid JSON: %s", c->path, why.line, why.text);
    if (!json_is_object(c->root))
        return sh_fail(e, "%s: found a JSON list, expected an object", c->path);
    adopt_text(c);
    c->is_wrapped = sh_config_has_text(c) && sh_config_outer_has(c, "architectures", sh_wrappers);
    return sh_config_adopt_quant(c->root, c->path, e);
}

static struct sh_config *open_gguf(char *path, struct sh_err *e)
{
    struct sh_config *c = xcalloc(1, sizeof *c);
    c->path = path;
    c->root = sh_gguf_config(path, &c->names, e);
    c->text = c->root ? json_dumps(c->root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (c->root && c->text)
        return c;
    if (c->root)
        sh_fail(e, "%s: cannot convert its metadata to a config", path);
    sh_config_close(c);
    return NULL;
}

static struct sh_config *open_path(const char *path, struct sh_err *e)
{
    struct stat facts;
    char *gguf;
    if (sh_gguf_path(path, &gguf, e))
        return NULL;
    if (gguf)
        return open_gguf(gguf, e);
    int folder = !stat(path, &facts) && S_ISDIR(facts.st_mode);
    struct sh_config *c = xcalloc(1, sizeof *c);
    c->path = folder ? xasprintf("%s/config.json", path) : xstrdup(path);
    if (parse(c, e)) {
        if (access(c->path, F_OK))
            refuse_path(path, folder, e);
        else if (!folder && !c->root)
            sh_hint(e, "expected a model's folder, its config.json or a .gguf file");
        sh_config_close(c);
        return NULL;
    }
    return c;
}

struct sh_config *sh_config_open(const char *path, struct sh_err *e)
{
    char *folder = sh_checkpoint_folder(path);
    struct sh_config *c = open_path(folder ? folder : path, e);
    free(folder);
    if (c)
        c->sizes = xcalloc(1, sizeof *c->sizes);
    return c;
}

struct sh_layer_sizes *sh_config_sizes(const struct sh_config *c, struct sh_arch *a)
{
    struct sizes *s = xcalloc(1, sizeof *s + (size_t)a->n_layer * sizeof *s->layer);
    s->next = *c->sizes;
    *c->sizes = s;
    a->sizes = s->layer;
    return s->layer;
}

void sh_config_close(struct sh_config *c)
{
    if (!c)
        return;
    json_decref(c->root);
    json_decref(c->names);
    free(c->text);
    sh_map_close(&c->map);
    for (struct sizes *next, *s = c->sizes ? *c->sizes : NULL; s; s = next) {
        next = s->next;
        free(s);
    }
    free(c->sizes);
    free(c->path);
    free(c);
}

const char *sh_config_path(const struct sh_config *c)
{
    return c->path;
}

const void *sh_config_text(const struct sh_config *c, size_t *bytes)
{
    *bytes = c->text ? strlen(c->text) : c->map.bytes;
    return c->text ? (const void *)c->text : c->map.at;
}

int sh_config_is_null(const struct sh_config *c, const char *key)
{
    return sh_config_has(c, key) && sh_config_is(c, key, "null");
}

int sh_config_auto(const struct sh_config *c, const char *key, int max, int *out, struct sh_err *e)
{
    struct sh_err ignored = {0};
    const char *word = NULL;
    if (!sh_config_word(c, key, &word, &ignored) && (!word || !strcmp(word, "auto")))
        return 0;
    return word ? sh_config_refuse(c, key, "a number or \"auto\"", e) : sh_config_count(c, key, max, out, e);
}

int sh_config_choice_at(const struct sh_config *c, const char *list, int i, const struct sh_word *words, int *out,
                        struct sh_err *e)
{
    char key[64];
    *out = 0;
    snprintf(key, sizeof key, "%s.%d", list, i);
    if (sh_config_choice(c, key, words, out, e))
        return -1;
    return *out ? 0 : sh_config_refuse(c, key, "one string for each layer", e);
}
