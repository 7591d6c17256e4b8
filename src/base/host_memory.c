/* SPDX-License-Identifier: Apache-2.0 */
/* See mem.h. */

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/mem.h"

struct version {                        /* of control groups: their folder and files               */
    const char *below, *limit, *used, *stat;
    const char *cache[2];               /* lines of stat                                          */
};

static const struct version versions[] = {
    {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat",
     {"total_inactive_file", "total_active_file"}},
    {"", "memory.max", "memory.current", "memory.stat", {"inactive_file", "active_file"}},
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number after `key` in folder/name, or with NULL the one it begins with; `other` if there is none. */
static unsigned long long number(const char *folder, const char *name, const char *key, unsigned long long other)
{
    char *path = xasprintf("%s/%s", folder, name), line[256], word[64];
    unsigned long long value = other, n;
    FILE *f = fopen(path, "re");
    for (int more = 1; f && more && fgets(line, sizeof line, f);) {
        if (key ? sscanf(line, "%63s %llu", word, &n) == 2 && !strcmp(word, key) : sscanf(line, "%llu", &n) == 1)
            value = n;
        more = key && value == other;
    }
    if (f)
        fclose(f);
    free(path);
    return value;
}

static size_t left_of(const struct version *v, const char *folder)
{
    unsigned long long limit = number(folder, v->limit, NULL, ULLONG_MAX), used = number(folder, v->used, NULL, 0);
    for (int i = 0; i < 2; i++) {
        unsigned long long cache = number(folder, v->stat, v->cache[i], 0);
        used -= cache < used ? cache : used;
    }
    return limit == ULLONG_MAX ? SIZE_MAX : limit > used ? (size_t)(limit - used) : 0;
}

/* The group `path` and its parents. In a container the path may exist only outside: then missing groups are skipped,
 * and what is mounted is the container's own. */
static size_t left_of_all(const struct version *v, const char *mount, const char *path)
{
    char *root = xasprintf("%s%s", mount, v->below), *folder = xasprintf("%s%s", root, strstr(path, "/..") ? "" : path);
    size_t left = SIZE_MAX, end = strlen(root);
    for (char *cut = folder + strlen(folder); cut; cut = strrchr(folder, '/')) {
        *cut = '\0';
        if (strlen(folder) < end)
            break;
        left = least(left, left_of(v, folder));
    }
    free(folder);
    free(root);
    return left;
}

size_t sh_host_memory_groups(const char *file, const char *mount)
{
    char *line = NULL;
    size_t room = 0, left = SIZE_MAX;
    FILE *f = fopen(file, "re");
    while (f && getline(&line, &room, f) > 0) {         /* number:controllers:path; version 2 has no controllers */
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *controllers++ = *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (!*controllers)
            left = least(left, left_of_all(&versions[1], mount, path));
        else
            for (char *rest, *name = strtok_r(controllers, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
                if (!strcmp(name, "memory"))
                    left = least(left, left_of_all(&versions[0], mount, path));
    }
    if (f)
        fclose(f);
    free(line);
    return left;
}

/* What the limit of address space leaves. */
static size_t left_of_space(void)
{
    struct rlimit limit;
    unsigned long long pages = number("/proc/self", "statm", NULL, 0), used = pages * (unsigned long long)getpagesize();
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    return limit.rlim_cur > used ? (size_t)(limit.rlim_cur - used) : 0;
}

size_t sh_host_memory_free(void)
{
    return sh_host_memory_free_with(0);
}

size_t sh_host_memory_free_with(size_t mapped)
{
    unsigned long long kib = number("/proc", "meminfo", "MemAvailable:", 0);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t left = kib ? (size_t)kib << 10 : pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 2 : 0;
    size_t space = left_of_space();
    space += space < SIZE_MAX - mapped ? mapped : 0;
    return least(least(left, space), sh_host_memory_groups("/proc/self/cgroup", "/sys/fs/cgroup"));
}
