/* SPDX-License-Identifier: Apache-2.0 */
#include "src/model/files/checkpoint.h"

#include <string.h>
#include <sys/stat.h>

#include "src/base/mem.h"

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

char *sh_checkpoint_folder(const char *path)
{
    struct stat about;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int is_part = !strcmp(name, "config.json") || !strcmp(name, "pytorch_model.bin") ||
                  ends_with(name, ".safetensors") || ends_with(name, ".index.json");
    if (!is_part || stat(path, &about) || !S_ISREG(about.st_mode))
        return NULL;
    return slash ? xasprintf("%.*s", slash > path ? (int)(slash - path) : 1, path) : xstrdup(".");
}
