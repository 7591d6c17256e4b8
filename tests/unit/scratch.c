/* SPDX-License-Identifier: Apache-2.0 */
/* See scratch.h. */
#include "tests/unit/scratch.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[1024], path[2048];

static void must(int fine, const char *what)
{
    if (fine)
        return;
    perror(what);
    exit(99);
}

void scratch_clear(void)
{
    DIR *d = opendir(scratch_folder());
    for (struct dirent *f; d && (f = readdir(d)) != NULL;)
        if (strcmp(f->d_name, ".") && strcmp(f->d_name, ".."))
            unlink(scratch_path(f->d_name));
    if (d)
        closedir(d);
}

static void leave(void)
{
    scratch_clear();
    rmdir(folder);
}

const char *scratch_folder(void)
{
    if (!folder[0]) {
        const char *top = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/shears-test-XXXXXX", top && *top ? top : "/tmp");
        must(mkdtemp(folder) != NULL, folder);
        atexit(leave);
    }
    return folder;
}

const char *scratch_path(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    return path;
}

static FILE *begin(const char *name)
{
    FILE *f = fopen(scratch_path(name), "wb");
    must(f != NULL, path);
    return f;
}

const char *scratch_write(const char *name, const void *at, size_t bytes)
{
    FILE *f = begin(name);
    must(fwrite(at, 1, bytes, f) == bytes, path);
    must(fclose(f) == 0, path);
    return path;
}

const char *scratch_safetensors(const char *name, const char *header, const void *data,
                                size_t bytes)
{
    uint64_t length = strlen(header);
    FILE *f = begin(name);
    must(fwrite(&length, 8, 1, f) == 1 && fwrite(header, 1, length, f) == length, path);
    must(fwrite(data, 1, bytes, f) == bytes, path);
    must(fclose(f) == 0, path);
    return path;
}
