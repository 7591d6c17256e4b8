/* SPDX-License-Identifier: Apache-2.0 */
/* See units.h: the hidden states between two layers, in memory or in a file without a name. */
#include "src/tracer/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/model/files/map.h"

static int temporary_file(const char *folder, size_t bytes, struct sh_err *e)
{
    int fd = sh_file_nameless(folder);
    if (fd < 0)
        return sh_fail(e, "%s: cannot create a temporary file for %zu bytes of hidden states: %s", folder, bytes,
                       strerror(errno));
    int problem = posix_fallocate(fd, 0, (off_t)bytes);
    if (!problem)
        return fd;
    close(fd);
    return sh_fail(e, "%s: no room for a temporary file of %zu bytes of hidden states: %s", folder, bytes,
                   strerror(problem));
}

int sh_hidden_new(struct sh_hidden *h, size_t n_rows, size_t width, size_t limit_bytes, const char *folder,
                  struct sh_err *e)
{
    *h = (struct sh_hidden){.row_bytes = width * sizeof(float)};
    if (sh_mul(n_rows, h->row_bytes, &h->bytes))
        return sh_fail(e, "%zu hidden states of %zu numbers overflow", n_rows, width);
    h->spilled = h->bytes > limit_bytes;
    int fd = -1;
    if (h->spilled && (fd = temporary_file(folder, h->bytes, e)) < 0)
        return -1;
    void *at = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, h->spilled ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
                    fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return sh_fail(e, "%zu bytes of hidden states do not fit into memory: %s", h->bytes, strerror(errno));
    h->at = at;
    return 0;
}

void sh_hidden_free(struct sh_hidden *h)
{
    if (h->at)
        munmap(h->at, h->bytes);
    h->at = NULL;
}

float *sh_hidden_row(const struct sh_hidden *h, size_t row)
{
    return h->at + row * (h->row_bytes / sizeof(float));
}

/* The mapping is shared, so the data stay in the file. */
void sh_hidden_rest(const struct sh_hidden *h, size_t row, size_t n_rows)
{
    if (h->spilled)
        sh_map_drop(sh_hidden_row(h, row), n_rows * h->row_bytes);
}
