/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/eval/eval_dump.h"

#include <stdlib.h>

#include "src/base/mem.h"

static int open_file(const char *path, struct sh_file **file, FILE **to, struct sh_err *e)
{
    if (path && !(*file = sh_file_begin(path, e)))
        return -1;
    *to = path ? sh_file_stream(*file) : NULL;
    return 0;
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
    if (open_file(d->kept_path, &d->kept_file, &d->kept, e) ||
        open_file(d->logits_path, &d->logits_file, &d->logits, e))
        return sh_eval_dump_end(d, -1, e);
    if (d->logits)
        write_header(d->logits, rows, d->n_vocab);
    return 0;
}

void sh_dump_positions(FILE *to, const struct sh_cache *c, int t, int window)
{
    int first = window && t >= window ? t + 1 - window : 0, n = 0;
    unsigned char *kept = xcalloc((size_t)t + 1, 1);
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= first)
            kept[c->pos[i]] = 1;
    putc('[', to);
    for (int j = first; j <= t; j++)
        if (kept[j])
            fprintf(to, "%s%d", n++ ? ", " : "", j);
    putc(']', to);
    free(kept);
}

void sh_eval_dump_kept(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct sh_eval_dump *d = to;
    (void)sequence;
    (void)row;
    if (t % d->every)
        return;
    fprintf(d->kept, "{\"sequence\": %d, \"layer\": %d, \"head\": %d, \"step\": %d, \"kept\": ", d->sequence, layer,
            head, t);
    sh_dump_positions(d->kept, c, t, d->arch ? sh_arch_window(d->arch, layer) : 0);
    fputs("}\n", d->kept);
}

void sh_eval_dump_logits(void *to, int sequence, int position, int n, const float *logits)
{
    const struct sh_eval_dump *d = to;
    (void)sequence;
    (void)position;
    fwrite(logits, sizeof *logits, (size_t)n * (size_t)d->n_vocab, d->logits);
}

int sh_eval_dump_end(struct sh_eval_dump *d, int bad, struct sh_err *e)
{
    bad = sh_file_end(d->kept_file, bad, e);
    bad = sh_file_end(d->logits_file, bad, e);
    d->kept_file = d->logits_file = NULL;
    d->kept = d->logits = NULL;
    return bad;
}
