/* SPDX-License-Identifier: Apache-2.0 */
/* The files of shears simulate (simulate_args.h). */
#include "src/app/simulate/simulate_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"

enum { MOST_LINE = 1 << 16 };

/* The next line into *text: 1, 0 at the end, -1. */
static int line_of(FILE *file, char **text, size_t *bytes, long long *number, struct sh_err *e)
{
    ssize_t n = xgetline(text, bytes, MOST_LINE, file);
    ++*number;
    if (ferror(file))
        return sh_fail(e, "cannot be read: %s", strerror(errno));
    if (n < 0)
        return 0;
    if (n > MOST_LINE)
        return sh_fail(e, "the line is longer than the limit of %d bytes", MOST_LINE);
    if (strlen(*text) != (size_t)n)
        return sh_fail(e, "the line contains a NUL byte");
    return 1;
}

/* A line as a request, and the keys of its blocks where somebody asks for them. */
static int row(struct sh_workload_file *w, struct sh_request *q, struct sh_err *e)
{
    uint64_t session = 0;
    int got = w->is_mooncake ? sh_mooncake_row(w->text, q, &w->ids, e)
                             : sh_workload_row(&w->columns, w->text, q, &session, e);
    if (got <= 0 || !w->base.block)
        return got;
    w->keys.n = 0;
    if (w->is_mooncake)
        sh_keys_pieces(&w->keys, w->base.block, SH_MOONCAKE_PIECE, w->ids.at, w->ids.n, q->prompt);
    else if (session)
        sh_keys_text(&w->keys, w->base.block, session, q->prompt + q->output - 1);
    w->base.key = w->keys.at;
    w->base.n_key = w->keys.n;
    return 1;
}

static int next(struct sh_workload *base, struct sh_request *out, struct sh_err *e)
{
    struct sh_workload_file *w = (struct sh_workload_file *)base;
    struct sh_request q;
    int got;
    if (w->most && w->requests == w->most)
        return 0;
    while ((got = w->has_line ? 1 : line_of(w->file, &w->text, &w->bytes, &w->line, e)) > 0) {
        w->has_line = 0;
        got = row(w, &q, e);
        if (got < 0)
            break;
        if (!got) {
            w->skipped += w->text[strspn(w->text, " \t\r\n")] != '\0';
            continue;
        }
        if (w->requests && q.arrival_s < w->last) {
            got = sh_fail(e, "arrives %g s before the previous line, expected rows in order of arrival",
                          w->last - q.arrival_s);
            break;
        }
        w->first = w->requests++ ? w->first : q.arrival_s;
        w->last = q.arrival_s;
        q.arrival_s -= w->first;
        *out = q;
        return 1;
    }
    return got < 0 ? sh_err_prefix(e, "%s: line %lld", w->path, w->line) : 0;
}

/* A file of JSON has no header: its first line is a request already. */
static int header(struct sh_workload_file *w, struct sh_err *e)
{
    int got = line_of(w->file, &w->text, &w->bytes, &w->line, e);
    if (!got)
        return sh_fail(e, "%s: empty file, expected a header", w->path);
    w->is_mooncake = w->has_line = got > 0 && w->text[strspn(w->text, " \t")] == '{';
    if (got < 0 || (!w->is_mooncake && sh_workload_header(w->text, &w->columns, e)))
        return sh_err_prefix(e, "%s: line %lld", w->path, w->line);
    return 0;
}

int sh_workload_open(struct sh_workload_file *w, const char *path, struct sh_err *e)
{
    struct stat about;
    *w = (struct sh_workload_file){.base.next = next, .path = path, .file = sh_stream_open(path, &about)};
    if (!w->file)
        return sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
    w->whole = S_ISREG(about.st_mode) ? (long long)about.st_size : 0;
    return header(w, e);
}

int sh_workload_again(struct sh_workload_file *w, struct sh_err *e)
{
    if (w->line == 1 && !w->requests)
        return 0;                       /* only its first line was read, so a pipe works, too */
    if (fseek(w->file, 0, SEEK_SET))
        return sh_fail(e, "%s: cannot be read a second time: %s", w->path, strerror(errno));
    w->line = w->requests = w->skipped = 0;
    w->first = w->last = 0;
    return header(w, e);
}

int sh_workload_hash(struct sh_workload_file *w, uint64_t *out, struct sh_err *e)
{
    unsigned char buffer[1 << 14];
    size_t n;
    if (!w->whole || fseek(w->file, 0, SEEK_SET))
        return sh_fail(e, "%s: expected a regular file: it is read more than once, to store results under a "
                          "hash of it", w->path);
    *out = 0xcbf29ce484222325u;
    while ((n = fread(buffer, 1, sizeof buffer, w->file)) > 0)
        for (size_t i = 0; i < n; i++)
            *out = (*out ^ buffer[i]) * 0x100000001b3u;
    if (ferror(w->file))
        return sh_fail(e, "%s: %s", w->path, strerror(errno));
    w->line = 0;                        /* the next reading starts at the beginning */
    return 0;
}

void sh_workload_close(struct sh_workload_file *w)
{
    if (w->file)
        fclose(w->file);
    free(w->text);
    free(w->ids.at);
    free(w->keys.at);
    *w = (struct sh_workload_file){0};
}

/* ---- measured steps ---- */

/* A field that is a number and nothing else; *at moves past its comma, NULL at the line's end. */
static int number(char **at, double max, double *out)
{
    char *s = *at, *end;
    if (!s || *s < '0' || *s > '9')
        return -1;
    *out = strtod(s, &end);
    end += strspn(end, " \t\r\n");
    *at = *end == ',' ? end + 1 : NULL;
    return (*end && *end != ',') || !(*out <= max) ? -1 : 0;
}

static int point(char *text, struct sh_sim_point *out, struct sh_err *e)
{
    double x[4];
    char *at = text;
    for (int i = 0; i < 4; i++)
        if (number(&at, i < 3 ? 1 << 20 : 1e6, &x[i]))
            return sh_fail(e, "expected four numbers, 0 or more: prefill_tokens, decode_sequences, context_tokens, "
                           "seconds");
    if (at)
        return sh_fail(e, "found more than four fields, expected four");
    *out = (struct sh_sim_point){(uint32_t)x[0], (uint32_t)x[1], (uint32_t)x[2], x[3]};
    if ((!out->prefill && !out->sequences) || (out->sequences && !out->context) || !(out->seconds > 0))
        return sh_fail(e, "the step has no tokens, has sequences without a context, or takes no time");
    return 0;
}

int sh_sim_points_read(const char *path, struct sh_sim_point *out, int *n, struct sh_err *e)
{
    FILE *file = sh_stream_open(path, NULL);
    char *text = NULL;
    size_t bytes = 0;
    long long line = 0;
    int got, bad = 0;
    if (!file)
        return sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
    for (*n = 0; !bad && (got = line_of(file, &text, &bytes, &line, e)) != 0;) {
        if (got < 0)
            bad = -1;
        else if (line == 1 && strncmp(text, "prefill_tokens,decode_sequences,context_tokens,seconds", 54))
            bad = sh_fail(e, "expected the header prefill_tokens,decode_sequences,context_tokens,seconds");
        else if (line > 1 && *n == SH_SIM_POINTS)
            bad = sh_fail(e, "found too many measured steps, expected at most %d", SH_SIM_POINTS);
        else if (line > 1 && text[strspn(text, " \t\r\n")])
            bad = point(text, &out[(*n)++], e);
    }
    free(text);
    fclose(file);
    return bad ? sh_err_prefix(e, "%s: line %lld", path, line) : 0;
}
