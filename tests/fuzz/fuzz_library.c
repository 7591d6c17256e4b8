/* SPDX-License-Identifier: Apache-2.0 */
/* The library through its public header, with any arguments. The input is text; each line is one call:
 *     a COMMAND NAME=VALUE...      shears_ask; "=VALUE" has no name, "NAME" no value, "@" is the store's path
 *     f FIGURE NAME=VALUE...       shears_figure
 *     p NAME ROWS NEEDS KNOB LEAST VALUE MOST WORDS...     shears_replay of a policy that is so
 *     o PATH                       shears_store_open; "@" is the store's path
 *     s, r, t, v S L H K           scores, rows, tokens, vectors of sequence S, layer L, head H, kind K
 *     g                            store_describe and store_results
 *     e POLICY BUDGET LAYERS HEADS LENGTH PREFILL D WINDOW N...    an evictor of a layer like that reads N tokens, then
 *                                  more; "-": no policy, no budget
 * Nothing crashes, each failure comes with a complete error, and every table of an answer can be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/lib/shears.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/store_fixture.h"
#include "tests/unit/scratch.h"

enum { MOST_WORDS = 24, MOST_LINES = 6, MOST_NUMBERS = 1 << 20, PATIENCE = 3 };

static char path[2048];
static struct shears_store *store;

static void make_store(void)
{
    snprintf(path, sizeof path, "%s", scratch_path("t.db"));
    if (chdir(scratch_folder()))            /* what options write is written there */
        abort();
    fixture_make(path);
    store = shears_store_open(path, NULL);
    if (!store)
        abort();
}

/* ---- what comes back ---- */

static void check_error(int failed, struct shears_error *e)
{
    if (failed != (e != NULL) || (e && (!*shears_error_message(e) || shears_error_status(e) < SHEARS_FAILED ||
                                        shears_error_status(e) > SHEARS_ABSENT)))
        abort();
    shears_error_free(e);
}

static size_t read_column(const struct shears_column *c, size_t rows)
{
    size_t sum = strlen(c->name);
    for (size_t i = 0; i < rows; i++)
        sum += c->texts ? c->texts[i] ? strlen(c->texts[i]) : 0 : c->reals ? c->reals[i] > 0 : (size_t)c->ints[i];
    return sum;
}

static void read_result(struct shears_result *r, struct shears_error *e)
{
    static volatile size_t sum;
    check_error(!r, e);
    for (size_t i = 0; i < shears_result_tables(r); i++) {
        const struct shears_table *t = shears_result_table(r, i);
        for (size_t k = 0; k < shears_table_columns(t); k++)
            sum += read_column(shears_table_column(t, k), shears_table_rows(t));
    }
    if (r && (!shears_result_text(r, "json", NULL) || !shears_result_text(r, "html", NULL)))
        abort();
    fuzz_accepted += r != NULL;
    shears_result_free(r);
}

/* ---- calls ---- */

static int impatient(void *to, double share)
{
    int *asked = to;
    (void)share;
    return ++*asked > PATIENCE;
}

/* Words as options; paths out of the folder are left out, and a small machine is enough. */
static void make_options(char **word, int n, struct shears_option *to)
{
    int used = 0;
    for (int i = 0; i < n; i++) {
        char *equals = strchr(word[i], '=');
        if (strchr(word[i], '/') || strstr(word[i], "..") || !strncmp(word[i], "threads", 7))
            continue;
        if (equals)
            *equals = '\0';
        const char *value = equals ? equals + 1 : NULL;
        to[used++] = (struct shears_option){word[i], value && !strcmp(value, "@") ? path : value};
    }
    to[used++] = (struct shears_option){"threads", "1"};
    to[used] = (struct shears_option){0};
}

static void score(float *state, const struct shears_cache *c, const struct shears_step *s, float *out)
{
    for (int i = 0; i < c->n_slot; i++)
        out[i] = state ? state[i] : (float)(s->t % (i + 1));
}

static void observe(float *state, const struct shears_cache *c, const struct shears_step *s)
{
    for (int i = 0; i < c->n_slot && state; i++)
        state[i] += s->row[i];
}

static void ask_policy(char **word, int n)
{
    struct shears_option options[MOST_WORDS + 2];
    struct shears_error *e = NULL;
    int asked = 0;
    const struct shears_watch watch = {impatient, &asked};
    if (n < 8)
        return;
    const struct shears_knob knobs[] = {
        {word[4], strtod(word[6], NULL), strtod(word[5], NULL), strtod(word[7], NULL), 0}, {0}};
    const struct shears_policy p = {
        .bytes = sizeof p, .name = word[1], .rows = (unsigned)strtoul(word[2], NULL, 0) % 65600,
        .needs = (unsigned)strtoul(word[3], NULL, 0), .knobs = knobs, .observe = observe, .score = score};
    make_options(word + 8, n - 8, options);
    struct shears_result *r = shears_replay(&p, options, &watch, &e);
    read_result(r, e);
}

static void ask(char **word, int n)
{
    struct shears_option options[MOST_WORDS + 2];
    struct shears_error *e = NULL;
    int asked = 0;
    const struct shears_watch watch = {impatient, &asked};
    make_options(word + 2, n - 2, options);
    if (*word[0] == 'f') {
        char *svg = shears_figure(word[1], options, &watch, &e);
        check_error(!svg, e);
        shears_text_free(svg);
    } else {
        struct shears_result *r = shears_ask(word[1], options, &watch, &e);
        read_result(r, e);
    }
}

static int count_row(void *to, const struct shears_row *row)
{
    double *sum = to;
    for (int i = 0; i < row->n; i++)
        *sum += (double)row->score[i];
    return 0;
}

static void read_place(char kind, const int at[3], char vector)
{
    struct shears_error *e = NULL;
    size_t rows, keys;
    double sum = 0;
    int64_t bad = 0;
    float *x = xcalloc(MOST_NUMBERS, sizeof *x);
    if (kind == 't')
        bad = shears_store_tokens(store, at[0], (int32_t *)x, (size_t)(unsigned)at[1] % MOST_NUMBERS, &e);
    else if (kind == 'v')
        bad = shears_store_vectors(store, at[0], at[1], vector, at[2], x, MOST_NUMBERS, &e);
    else if (kind == 'r')
        bad = shears_store_rows(store, at[0], at[1], at[2], count_row, &sum, &e);
    else if (!shears_store_shape(store, at[0], at[1], at[2], &rows, &keys, NULL) && rows * keys <= MOST_NUMBERS)
        bad = shears_store_scores(store, at[0], at[1], at[2], x, rows, keys, &e);
    check_error(bad < 0, e);
    free(x);
}

/* Up to 64 tokens: as many rows of ones as the library names. */
static void feed(struct shears_evictor *x, int layer, int n, int d)
{
    struct shears_error *e = NULL;
    struct shears_evictor_next next;
    struct shears_evictor_moved moved;
    int bad = 0, kept[64];
    for (int left = n > 64 ? 64 : n; left > 0 && !bad; left -= next.n) {
        bad = shears_evictor_next(x, layer, left, &next, &e);
        check_error(bad != 0, e);
        if (bad)
            break;
        size_t all = (size_t)next.kv_heads * (size_t)next.n, width = (size_t)(d > next.n_slot ? d : next.n_slot) + 1;
        float *ones = xcalloc(2 * all * width, sizeof *ones);
        int *seen = xcalloc(all, sizeof *seen);
        for (size_t i = 0; i < 2 * all * width; i++)
            ones[i] = 1.0f / (float)(1 + i % 7);
        for (size_t i = 0; i < all; i++)
            seen[i] = next.n_slot;
        const struct shears_evictor_rows rows = {.n = next.n, .n_slot = next.n_slot, .n_query = 2, .row = ones,
                                                 .seen = seen, .q = ones, .k = ones, .v = ones};
        bad = shears_evictor_read(x, layer, &rows, &e);
        check_error(bad != 0, e);
        free(ones);
        free(seen);
    }
    e = NULL;
    bad = shears_evictor_settle(x, layer, &moved, &e);
    check_error(bad != 0, e);
    e = NULL;
    bad = shears_evictor_kept(x, layer, 0, kept, 64, &e) < 0;
    check_error(bad, e);
}

static void evict(char **word, int n)
{
    struct shears_error *e = NULL;
    int at[MOST_WORDS] = {0};
    for (int i = 3; i < n; i++)
        at[i] = (int)strtol(word[i], NULL, 0);
    if (at[3] > 64 || at[4] > 64 || at[7] > 64)         /* memory, not crashes */
        return;
    const struct shears_evictor_setup setup = {
        .bytes = sizeof setup, .policy = strcmp(word[1], "-") ? word[1] : NULL,
        .budget = strcmp(word[2], "-") ? word[2] : NULL, .layers = at[3], .kv_heads = at[4], .length = at[5],
        .prefill = at[6]};
    struct shears_evictor *x = shears_evictor_open(&setup, &e);
    check_error(!x, e);
    fuzz_accepted += x != NULL;
    e = NULL;
    int bad = x ? shears_evictor_layer(x, at[3] - 1, at[4], at[7], at[8], &e) : 0;
    check_error(bad != 0, e);
    for (int i = 9; i < n && x && !bad; i++) {
        feed(x, at[3] - 1, at[i], at[7]);
        struct shears_evictor *copy = shears_evictor_copy(x, NULL);
        shears_evictor_free(x);
        x = copy;
    }
    shears_evictor_free(x);
}

static void open_store(const char *name)
{
    struct shears_error *e = NULL;
    struct shears_store *s = strchr(name, '/') ? NULL : shears_store_open(strcmp(name, "@") ? name : path, &e);
    if (!strchr(name, '/'))
        check_error(!s, e);
    shears_store_close(s);
}

static void read_results(const char *command)
{
    struct shears_error *e = NULL;
    struct shears_result *r = shears_store_results(store, command, &e);
    read_result(r, e);
}

static void call(char **word, int n)
{
    char kind = *word[0];
    if (kind == 'p')
        ask_policy(word, n);
    else if ((kind == 'a' || kind == 'f') && n > 1)
        ask(word, n);
    else if (kind == 'e' && n > 9)
        evict(word, n);
    else if (kind == 'o' && n > 1)
        open_store(word[1]);
    else if (kind == 'g')
        read_results(n > 1 ? word[1] : NULL);
    else if (n > 3) {
        const int at[3] = {(int)strtol(word[1], NULL, 0), (int)strtol(word[2], NULL, 0), (int)strtol(word[3], NULL, 0)};
        read_place(kind, at, n > 4 ? *word[4] : 'q');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!store)
        make_store();
    for (int i = 0; size && i < MOST_LINES; i++) {
        struct fuzz_part line = fuzz_until('\n', &data, &size);
        char *text = xasprintf("%.*s", (int)line.bytes, (const char *)line.at), *rest = text, *word[MOST_WORDS];
        int n = 0;
        for (char *one; n < MOST_WORDS && (one = strsep(&rest, " "));)
            if (*one)
                word[n++] = one;
        if (n)
            call(word, n);
        free(text);
    }
    return 0;
}
