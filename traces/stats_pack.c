/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a head's statistics (see stats.h). Little-endian throughout:
 *
 *     "SHST", version 1 (u8), sparse (u8), n_alpha, n_recent, n_split (u8 each), 0 (u8)
 *     length, window (u32); alphas: kind (u8), value (f64); recents (u32); splits (f64)
 *     row sums: rows, entries, below_mean, below_1pct, rows_of_two (u64), entropy, normalised_entropy, mass_top (f64)
 *     and, where there are cells,
 *     jaccard[lane][recent][lag]: sum, expected (f64), rows (u32)
 *     last[lane][T]           T - last, 0 for never
 *     first[lane][recent][T]  1 + rows later than it could be at the earliest (later than the cell of the next
 *                             smaller recent, and than j + recent); 0 for never
 *     low[split][t]           as it is
 *
 * The arrays hold 2 bytes a number when T < 65536, else 4: all lowest bytes, then all next ones, and so on, which
 * compresses better than whole numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/stats.h"

#define FORMAT 1
#define HEAD 10                         /* bytes up to and including the zero */
#define JACCARD 20
#define SUMS 64

/* ---- writing ---- */

static unsigned char *put(unsigned char *to, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (unsigned char)(x >> 8 * i);
    return to;
}

static unsigned char *put_real(unsigned char *to, double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return put(to, u, 8);
}

/* Element i of an array of n that starts at `to`. */
static void put_nth(unsigned char *to, size_t n, size_t i, uint32_t x, int width)
{
    for (int k = 0; k < width; k++)
        to[(size_t)k * n + i] = (unsigned char)(x >> 8 * k);
}

static int width_of(int length)
{
    return length < 65536 ? 2 : 4;
}

static size_t spec_bytes(const struct sh_stats_spec *spec)
{
    return HEAD + 8 + 9 * (size_t)spec->n_alpha + 4 * (size_t)spec->n_recent + 8 * (size_t)spec->n_split;
}

/* Size of everything; spec and length are within their limits, so nothing overflows. */
static size_t all_bytes(const struct sh_stats_spec *spec, int length)
{
    size_t lanes = (size_t)sh_stats_n_lane(spec), cells = lanes * (size_t)spec->n_recent;
    size_t numbers = (lanes + cells) * (size_t)length;
    for (int i = 0; lanes && i < spec->n_split; i++)
        numbers += (size_t)sh_stats_split_at(spec->split[i], length);
    return spec_bytes(spec) + SUMS + cells * SH_STATS_LAGS * JACCARD + numbers * (size_t)width_of(length);
}

static unsigned char *put_spec(unsigned char *to, const struct sh_stats *s)
{
    const struct sh_stats_spec *spec = &s->spec;
    memcpy(to, "SHST", 4);
    to = put(to + 4, FORMAT, 1);
    to = put(to, s->sparse != 0, 1);
    to = put(to, (uint64_t)spec->n_alpha, 1);
    to = put(to, (uint64_t)spec->n_recent, 1);
    to = put(to, (uint64_t)spec->n_split, 1);
    to = put(to, 0, 1);
    to = put(to, (uint64_t)s->length, 4);
    to = put(to, (uint64_t)spec->window, 4);
    for (int i = 0; i < spec->n_alpha; i++)
        to = put_real(put(to, spec->alpha[i].kind, 1), spec->alpha[i].value);
    for (int i = 0; i < spec->n_recent; i++)
        to = put(to, (uint64_t)spec->recent[i], 4);
    for (int i = 0; i < spec->n_split; i++)
        to = put_real(to, spec->split[i]);
    return to;
}

static unsigned char *put_sums(unsigned char *to, const struct sh_row_sums *r)
{
    to = put(to, r->rows, 8);
    to = put(to, r->entries, 8);
    to = put(to, r->below_mean, 8);
    to = put(to, r->below_1pct, 8);
    to = put(to, r->rows_of_two, 8);
    to = put_real(to, r->entropy);
    to = put_real(to, r->normalised_entropy);
    return put_real(to, r->mass_top);
}

/* The earliest row in which cell `i` of key j can be pivotal, when the preceding cell first was in row `earlier` (-1:
 * no preceding cell). */
static int32_t earliest(const struct sh_stats *s, int i, int j, int32_t earlier)
{
    int32_t least = j + s->spec.recent[i];
    return earlier > least ? earlier : least;
}

static unsigned char *put_cells(unsigned char *to, const struct sh_stats *s)
{
    size_t n = (size_t)s->length, n_recent = (size_t)s->spec.n_recent;
    int width = width_of(s->length);
    for (size_t lane = 0; lane < (size_t)s->n_lane; lane++, to += n * (size_t)width)
        for (size_t j = 0; j < n; j++) {
            int32_t last = s->last[lane * n + j];
            put_nth(to, n, j, last < 0 ? 0 : (uint32_t)(s->length - last), width);
        }
    for (size_t cell = 0; cell < (size_t)s->n_lane * n_recent; cell++, to += n * (size_t)width)
        for (size_t j = 0; j < n; j++) {
            const int32_t *first = &s->first[cell * n + j];
            int i = (int)(cell % n_recent);
            int32_t from = earliest(s, i, (int)j, i ? *(first - n) : -1);
            put_nth(to, n, j, *first < 0 ? 0 : (uint32_t)(*first - from + 1), width);
        }
    for (int i = 0; i < s->spec.n_split; i++) {
        size_t t = (size_t)sh_stats_split_at(s->spec.split[i], s->length);
        for (size_t j = 0; j < t; j++)
            put_nth(to, t, j, (uint32_t)s->low[(size_t)i * n + j], width);
        to += t * (size_t)width;
    }
    return to;
}

size_t sh_stats_pack(const struct sh_stats *s, unsigned char **out)
{
    if (!sh_stats_is_complete(s))
        return 0;
    size_t bytes = all_bytes(&s->spec, s->length);
    *out = xmalloc(bytes);
    unsigned char *to = put_sums(put_spec(*out, s), &s->sums);
    size_t n = (size_t)s->n_lane * (size_t)s->spec.n_recent * SH_STATS_LAGS;
    for (size_t i = 0; i < n; i++) {
        to = put_real(put_real(to, s->jaccard[i].sum), s->jaccard[i].expected);
        to = put(to, s->jaccard[i].rows, 4);
    }
    if (s->n_lane)
        put_cells(to, s);
    return bytes;
}

/* ---- reading ---- */

static uint64_t get(const unsigned char **at, int bytes)
{
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++)
        x |= (uint64_t)*(*at)++ << 8 * i;
    return x;
}

static double get_real(const unsigned char **at)
{
    uint64_t u = get(at, 8);
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint32_t get_nth(const unsigned char *at, size_t n, size_t i, int width)
{
    uint32_t x = 0;
    for (int k = 0; k < width; k++)
        x |= (uint32_t)at[(size_t)k * n + i] << 8 * k;
    return x;
}

static int bad(struct sh_err *e, const char *what)
{
    return sh_fail(e, "packed attention statistics: %s", what);
}

static int get_spec(const unsigned char *from, size_t bytes, struct sh_stats_spec *spec, int *length,
                    struct sh_err *e)
{
    const unsigned char *at = from + 4;
    if (bytes < HEAD + 8 || memcmp(from, "SHST", 4))
        return bad(e, "no magic number SHST at the beginning");
    uint64_t version = get(&at, 1), sparse = get(&at, 1);
    if (version != FORMAT)
        return sh_fail(e, "packed attention statistics: found version %d, expected %d", (int)version, FORMAT);
    *spec = (struct sh_stats_spec){.n_alpha = at[0], .n_recent = at[1], .n_split = at[2]};
    at += 3;
    uint64_t zero = get(&at, 1), rows = get(&at, 4), window = get(&at, 4);
    if (sparse > 1 || zero || spec->n_alpha > SH_STATS_MAX || spec->n_recent > SH_STATS_MAX ||
        spec->n_split > SH_STATS_MAX || window > SH_STATS_MAX_WINDOW || bytes < spec_bytes(spec))
        return bad(e, "invalid header");
    if (rows < 1 || rows > SH_STATS_MAX_LENGTH)
        return bad(e, "length out of range");
    *length = (int)rows;
    spec->window = (int)window;
    for (int i = 0; i < spec->n_alpha; i++) {
        uint64_t kind = get(&at, 1);
        spec->alpha[i].kind = kind > SH_ALPHA_VALUE ? SH_ALPHA_SPLIT : (enum sh_alpha_kind)kind;
        spec->alpha[i].value = get_real(&at);
        if (kind > SH_ALPHA_VALUE)
            return bad(e, "an alpha of unknown kind");
    }
    for (int i = 0; i < spec->n_recent; i++) {
        uint64_t recent = get(&at, 4);
        spec->recent[i] = recent > SH_STATS_MAX_RECENT ? -1 : (int)recent;
    }
    for (int i = 0; i < spec->n_split; i++)
        spec->split[i] = get_real(&at);
    return sh_stats_spec_check(spec, e) ? sh_err_prefix(e, "packed attention statistics") : 0;
}

static int is_share(double x, double most)
{
    return x >= 0 && x <= most;         /* false for NaN */
}

static int get_sums(const unsigned char **at, struct sh_stats *s, struct sh_err *e)
{
    struct sh_row_sums *r = &s->sums;
    uint64_t n = (uint64_t)s->length;
    r->rows = get(at, 8);
    r->entries = get(at, 8);
    r->below_mean = get(at, 8);
    r->below_1pct = get(at, 8);
    r->rows_of_two = get(at, 8);
    r->entropy = get_real(at);
    r->normalised_entropy = get_real(at);
    r->mass_top = get_real(at);
    if (r->rows > n || r->rows_of_two > r->rows || r->entries > n * (n + 1) / 2 || r->below_mean > r->entries ||
        r->below_1pct > r->entries || !isfinite(r->entropy) || !isfinite(r->normalised_entropy) ||
        !isfinite(r->mass_top))
        return bad(e, "impossible row sums");
    return 0;
}

static int get_jaccards(const unsigned char **at, struct sh_stats *s, struct sh_err *e)
{
    size_t n = (size_t)s->n_lane * (size_t)s->spec.n_recent * SH_STATS_LAGS;
    for (size_t i = 0; i < n; i++) {
        struct sh_jaccard *j = &s->jaccard[i];
        j->sum = get_real(at);
        j->expected = get_real(at);
        j->rows = (uint32_t)get(at, 4);
        /* each term is at most 1 */
        if (j->rows > (uint32_t)s->length || !is_share(j->sum, j->rows) || !is_share(j->expected, j->rows))
            return bad(e, "an impossible similarity over time");
    }
    return 0;
}

/* last: in [j, T). first: see earliest(); a first position without a last, or after it, is impossible, and so is a
 * distant last position without a first. */
static int get_cells(const unsigned char *at, struct sh_stats *s, struct sh_err *e)
{
    size_t n = (size_t)s->length, n_recent = (size_t)s->spec.n_recent;
    int width = width_of(s->length);
    for (size_t lane = 0; lane < (size_t)s->n_lane; lane++, at += n * (size_t)width)
        for (size_t j = 0; j < n; j++) {
            uint32_t back = get_nth(at, n, j, width);
            if (back > n - j)
                return bad(e, "a last position out of range");
            s->last[lane * n + j] = back ? (int32_t)(n - back) : -1;
        }
    for (size_t cell = 0; cell < (size_t)s->n_lane * n_recent; cell++, at += n * (size_t)width)
        for (size_t j = 0; j < n; j++) {
            int32_t *first = &s->first[cell * n + j], last = s->last[cell / n_recent * n + j];
            int i = (int)(cell % n_recent);
            int64_t from = earliest(s, i, (int)j, i ? *(first - n) : -1);
            int64_t later = get_nth(at, n, j, width), q = from + later - 1;
            if (later ? q > last : last >= (int32_t)j + s->spec.recent[i])
                return bad(e, "a first position out of range");
            *first = later ? (int32_t)q : -1;
        }
    for (int i = 0; i < s->spec.n_split; i++) {
        size_t t = (size_t)sh_stats_split_at(s->spec.split[i], s->length);
        for (size_t j = 0; j < t; j++) {
            uint32_t low = get_nth(at, t, j, width);
            if (low > t - j || low > (uint32_t)s->spec.window)
                return bad(e, "a low count out of range");
            s->low[(size_t)i * n + j] = (int32_t)low;
        }
        at += t * (size_t)width;
    }
    return 0;
}

int sh_stats_unpack(const void *from, size_t bytes, struct sh_stats **out, struct sh_err *e)
{
    struct sh_stats_spec spec;
    int length = 0;
    if (get_spec(from, bytes, &spec, &length, e))
        return -1;
    if (bytes != all_bytes(&spec, length))
        return sh_fail(e, "packed attention statistics: found %zu bytes, expected %zu", bytes,
                       all_bytes(&spec, length));
    struct sh_stats *s = sh_stats_new_finished(&spec, length);
    const unsigned char *begin = from, *at = begin + spec_bytes(&spec);
    s->sparse = begin[5];
    s->n_row = length;
    if (!get_sums(&at, s, e) && (!s->n_lane || (!get_jaccards(&at, s, e) && !get_cells(at, s, e)))) {
        *out = s;
        return 0;
    }
    sh_stats_free(s);
    return -1;
}
