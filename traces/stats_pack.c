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
#include <string.h>

#include "src/base/mem.h"
#include "traces/stats.h"

#define MAGIC 0x54534853                /* "SHST" */
#define FORMAT 1
#define HEAD 10                         /* bytes up to and including the zero */
#define JACCARD 20
#define SUMS 64

/* Bytes that values are written to, or read from: the format is written down once for both. */
struct tape {
    unsigned char *at;
    int writes;
};

/* The number written or read. */
static uint64_t whole(struct tape *t, uint64_t x, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++, t->at++) {
        if (t->writes)
            *t->at = (unsigned char)(x >> 8 * i);
        number |= (uint64_t)*t->at << 8 * i;
    }
    return number;
}

static double real(struct tape *t, double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    u = whole(t, u, 8);
    memcpy(&x, &u, sizeof x);
    return x;
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

static int bad(struct sh_err *e, const char *what)
{
    return sh_fail(e, "packed attention statistics: %s", what);
}

/* The header, of a head of at most `bytes` bytes. */
static int take_spec(struct tape *t, size_t bytes, struct sh_stats *s, struct sh_err *e)
{
    struct sh_stats_spec *spec = &s->spec;
    if (bytes < HEAD + 8 || whole(t, MAGIC, 4) != MAGIC)
        return bad(e, "no magic number SHST at the beginning");
    uint64_t version = whole(t, FORMAT, 1), sparse = whole(t, s->sparse != 0, 1);
    if (version != FORMAT)
        return sh_fail(e, "packed attention statistics: found version %d, expected %d", (int)version, FORMAT);
    spec->n_alpha = (int)whole(t, (uint64_t)spec->n_alpha, 1);
    spec->n_recent = (int)whole(t, (uint64_t)spec->n_recent, 1);
    spec->n_split = (int)whole(t, (uint64_t)spec->n_split, 1);
    uint64_t zero = whole(t, 0, 1), rows = whole(t, (uint64_t)s->length, 4);
    uint64_t window = whole(t, (uint64_t)spec->window, 4);
    if (sparse > 1 || zero || spec->n_alpha > SH_STATS_MAX || spec->n_recent > SH_STATS_MAX ||
        spec->n_split > SH_STATS_MAX || window > SH_STATS_MAX_WINDOW || bytes < spec_bytes(spec))
        return bad(e, "invalid header");
    if (rows < 1 || rows > SH_STATS_MAX_LENGTH)
        return bad(e, "length out of range");
    s->sparse = (int)sparse;
    s->length = (int)rows;
    spec->window = (int)window;
    for (int i = 0; i < spec->n_alpha; i++) {
        uint64_t kind = whole(t, spec->alpha[i].kind, 1);
        if (kind > SH_ALPHA_VALUE)
            return bad(e, "an alpha of unknown kind");
        spec->alpha[i] = (struct sh_alpha){(enum sh_alpha_kind)kind, real(t, spec->alpha[i].value)};
    }
    for (int i = 0; i < spec->n_recent; i++) {
        uint64_t recent = whole(t, (uint64_t)spec->recent[i], 4);
        spec->recent[i] = recent > SH_STATS_MAX_RECENT ? -1 : (int)recent;
    }
    for (int i = 0; i < spec->n_split; i++)
        spec->split[i] = real(t, spec->split[i]);
    return sh_stats_spec_check(spec, e) ? sh_err_prefix(e, "packed attention statistics") : 0;
}

static int take_sums(struct tape *t, struct sh_row_sums *r, int length, struct sh_err *e)
{
    uint64_t n = (uint64_t)length;
    r->rows = whole(t, r->rows, 8);
    r->entries = whole(t, r->entries, 8);
    r->below_mean = whole(t, r->below_mean, 8);
    r->below_1pct = whole(t, r->below_1pct, 8);
    r->rows_of_two = whole(t, r->rows_of_two, 8);
    r->entropy = real(t, r->entropy);
    r->normalised_entropy = real(t, r->normalised_entropy);
    r->mass_top = real(t, r->mass_top);
    if (r->rows > n || r->rows_of_two > r->rows || r->entries > n * (n + 1) / 2 || r->below_mean > r->entries ||
        r->below_1pct > r->entries || !isfinite(r->entropy) || !isfinite(r->normalised_entropy) ||
        !isfinite(r->mass_top))
        return bad(e, "impossible row sums");
    return 0;
}

static int take_jaccard(struct tape *t, struct sh_jaccard *j, int length, struct sh_err *e)
{
    j->sum = real(t, j->sum);
    j->expected = real(t, j->expected);
    j->rows = (uint32_t)whole(t, j->rows, 4);
    if (j->rows <= (uint32_t)length && j->sum >= 0 && j->sum <= j->rows && j->expected >= 0 && j->expected <= j->rows)
        return 0;                       /* each term is at most 1 */
    return bad(e, "an impossible similarity over time");
}

static size_t n_jaccard(const struct sh_stats *s)
{
    return (size_t)s->n_lane * (size_t)s->spec.n_recent * SH_STATS_LAGS;
}

/* The earliest row in which cell `i` of key j can be pivotal, when the preceding cell first was in row `earlier` (-1:
 * no preceding cell). */
static int32_t earliest(const struct sh_stats *s, int i, int j, int32_t earlier)
{
    int32_t least = j + s->spec.recent[i];
    return earlier > least ? earlier : least;
}

static void put_cells(unsigned char *to, const struct sh_stats *s)
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
}

size_t sh_stats_pack(const struct sh_stats *s, unsigned char **out)
{
    if (!sh_stats_is_complete(s))
        return 0;
    size_t bytes = all_bytes(&s->spec, s->length), n = n_jaccard(s);
    *out = xmalloc(bytes);
    struct tape t = {.at = *out, .writes = 1};
    struct sh_stats head = *s;
    struct sh_err unused;               /* only reading fails */
    take_spec(&t, bytes, &head, &unused);
    take_sums(&t, &head.sums, s->length, &unused);
    for (size_t i = 0; i < n; i++) {
        struct sh_jaccard j = s->jaccard[i];
        take_jaccard(&t, &j, s->length, &unused);
    }
    if (s->n_lane)
        put_cells(t.at, s);
    return bytes;
}

static uint32_t get_nth(const unsigned char *at, size_t n, size_t i, int width)
{
    uint32_t x = 0;
    for (int k = 0; k < width; k++)
        x |= (uint32_t)at[(size_t)k * n + i] << 8 * k;
    return x;
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
    struct tape t = {.writes = 0};
    struct sh_stats head = {0};
    *(const void **)&t.at = from;
    if (take_spec(&t, bytes, &head, e))
        return -1;
    if (bytes != all_bytes(&head.spec, head.length))
        return sh_fail(e, "packed attention statistics: found %zu bytes, expected %zu", bytes,
                       all_bytes(&head.spec, head.length));
    struct sh_stats *s = sh_stats_new_finished(&head.spec, head.length);
    s->sparse = head.sparse;
    s->n_row = s->length;
    int failed = take_sums(&t, &s->sums, s->length, e);
    for (size_t i = 0, n = n_jaccard(s); i < n && !failed; i++)
        failed = take_jaccard(&t, &s->jaccard[i], s->length, e);
    if (failed || (s->n_lane && get_cells(t.at, s, e))) {
        sh_stats_free(s);
        return -1;
    }
    *out = s;
    return 0;
}
