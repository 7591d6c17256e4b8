/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_dump.h. */
#include "src/cli/eval_dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"

static int open_part(const char *path, FILE **to, struct sh_err *e)
{
    if (!path)
        return 0;
    char *part = xasprintf("%s.part", path);
    *to = fopen(part, "wb");
    free(part);
    return *to ? 0 : sh_fail(e, "%s: cannot be written: %s", path, strerror(errno));
}

static void write_header(FILE *f, long long rows, int cols)
{
    char header[128];
    int n = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %d), }", rows,
                     cols);
    int padded = (10 + n + 1 + 63) / 64 * 64 - 10;
    unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 255),
                               (unsigned char)(padded >> 8)};
    fwrite(magic, 1, sizeof magic, f);
    fprintf(f, "%s%*s\n", header, padded - n - 1, "");
}

int sh_eval_dump_begin(struct sh_eval_dump *d, long long rows, struct sh_err *e)
{
    if (open_part(d->kept_path, &d->kept, e) || open_part(d->logits_path, &d->logits, e))
        return sh_eval_dump_end(d, -1, e);
    if (d->logits)
        write_header(d->logits, rows, d->n_vocab);
    return 0;
}

void sh_eval_dump_kept(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct sh_eval_dump *d = to;
    (void)sequence;
    (void)row;
    if (t % d->every)
        return;
    unsigned char *kept = xcalloc((size_t)t + 1, 1);
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            kept[c->pos[i]] = 1;
    fprintf(d->kept, "{\"sequence\": %d, \"layer\": %d, \"head\": %d, \"step\": %d, \"kept\": [", d->sequence, layer,
            head, t);
    for (int j = 0, n = 0; j <= t; j++)
        if (kept[j])
            fprintf(d->kept, "%s%d", n++ ? ", " : "", j);
    fputs("]}\n", d->kept);
    free(kept);
}

void sh_eval_dump_logits(void *to, int sequence, int position, const float *logits)
{
    const struct sh_eval_dump *d = to;
    (void)sequence;
    (void)position;
    fwrite(logits, sizeof *logits, (size_t)d->n_vocab, d->logits);
}

static int close_part(const char *path, FILE **f, int bad, struct sh_err *e)
{
    if (!*f)
        return bad;
    char *part = xasprintf("%s.part", path);
    int failed = ferror(*f);
    failed |= fclose(*f);
    *f = NULL;
    if (!bad && (failed || rename(part, path)))
        bad = sh_fail(e, "%s: cannot be written: %s", path, strerror(errno));
    if (bad)
        unlink(part);
    free(part);
    return bad;
}

int sh_eval_dump_end(struct sh_eval_dump *d, int bad, struct sh_err *e)
{
    bad = close_part(d->kept_path, &d->kept, bad, e);
    return close_part(d->logits_path, &d->logits, bad, e);
}
