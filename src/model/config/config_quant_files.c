/* SPDX-License-Identifier: Apache-2.0 */
/* See config_quant_files.h. */
#include "src/model/config/config_quant_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/model/files/map.h"

enum { MOST_BYTES = 1 << 24 };

/* The object in a file next to config.json. NULL: it is not there or, with *bad, cannot be read. */
static json_t *load(const char *config, const char *name, int *bad, struct sh_err *e)
{
    const char *slash = strrchr(config, '/');
    char *path = xasprintf("%.*s%s", slash ? (int)(slash + 1 - config) : 0, config, name);
    struct sh_map map = {0};
    json_error_t why = {0};
    json_t *root = NULL;
    if (!access(path, F_OK) && !(*bad = sh_map_open(&map, path, e))) {
        if (map.bytes <= MOST_BYTES && map.at)
            root = json_loadb((const char *)map.at, map.bytes, JSON_REJECT_DUPLICATES, &why);
        *bad = !json_is_object(root);
        if (*bad)
            sh_fail(e, "%s: found %s, expected a JSON object", path, *why.text ? why.text : "something else");
        sh_map_close(&map);
    }
    free(path);
    if (!*bad)
        return root;
    json_decref(root);
    return NULL;
}

static void set_method(json_t *quant, const char *method)
{
    if (!json_object_get(quant, "quant_method"))
        json_object_set_new(quant, "quant_method", json_string(method));
}

/* modelopt's file has the settings under "quantization". */
static json_t *of_modelopt(json_t *file)
{
    json_t *inner = json_object_get(file, "quantization");
    if (!json_is_string(json_object_get(inner, "quant_algo")))
        return NULL;
    set_method(inner, "modelopt");
    return json_incref(inner);
}

/* Other programs write files of that name, too. */
static json_t *of_gptq(json_t *file)
{
    if (!json_object_get(file, "bits"))
        return NULL;
    set_method(file, "gptq");
    return json_incref(file);
}

/* AutoAWQ's names for the same. */
static json_t *of_awq(json_t *file)
{
    static const char *const names[][2] = {{"w_bit", "bits"}, {"q_group_size", "group_size"}};
    for (int i = 0; i < 2; i++)
        if (json_object_get(file, names[i][0]))
            json_object_set(file, names[i][1], json_object_get(file, names[i][0]));
    set_method(file, "awq");
    return json_object_get(file, "bits") ? json_incref(file) : NULL;
}

static int is_set(const json_t *value)
{
    return value && !json_is_null(value);
}

int sh_config_adopt_quant(json_t *root, const char *path, struct sh_err *e)
{
    static const char key[] = "quantization_config";
    static const struct { const char *name; json_t *(*settings)(json_t *); } files[] = {
        {"hf_quant_config.json", of_modelopt}, {"quantize_config.json", of_gptq}, {"quant_config.json", of_awq}};
    json_t *older = json_object_get(root, "compression_config"), *found = NULL;
    int bad = 0;
    if (is_set(json_object_get(root, key)) || is_set(json_object_get(json_object_get(root, "text_config"), key)))
        return 0;
    if (json_object_size(older)) {
        set_method(older, "compressed-tensors");
        found = json_incref(older);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files && !found && !bad; i++) {
        json_t *file = load(path, files[i].name, &bad, e);
        found = file ? files[i].settings(file) : NULL;
        json_decref(file);
    }
    if (found)
        json_object_set_new(root, key, found);
    return bad ? -1 : 0;
}
