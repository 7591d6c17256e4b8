/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a trace store: what it holds, the attention of one head, and how persistent importance is in each layer.
 *
 *     cc read.c $(pkg-config --cflags --libs shears) -o read && ./read t.db */
#include <shears.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(struct shears_error *e)
{
    fprintf(stderr, "%s\nhint: %s\n", shears_error_message(e), shears_error_hint(e));
    shears_error_free(e);
    return 1;
}

/* The first key is where attention that nobody needs goes. */
static int add_first(void *to, const struct shears_row *row)
{
    double *sum = to;
    if (row->first_key == 0)
        *sum += (double)row->score[0];
    return 0;
}

int main(int argc, char **argv)
{
    struct shears_error *e = NULL;
    struct shears_store *store = shears_store_open(argc > 1 ? argv[1] : NULL, &e);
    if (!store)
        return fail(e);
    struct shears_result *about = shears_store_describe(store, &e);
    if (!about)
        return fail(e);
    const struct shears_table *sequences = shears_table(about, "sequences");
    const int64_t *id = shears_column(sequences, "id")->ints, *tokens = shears_column(sequences, "tokens")->ints;
    for (size_t i = 0; i < shears_table_rows(sequences); i++) {
        double first = 0;
        if (shears_store_rows(store, (int)id[i], 0, 0, add_first, &first, &e))
            return fail(e);
        printf("sequence %d: %d tokens, %.3f of head 0's attention in layer 0 goes to the first\n", (int)id[i],
               (int)tokens[i], first / (double)tokens[i]);
    }
    shears_result_free(about);

    const struct shears_option options[] = {{"db", argv[1]}, {"recent", "4"}, {"alpha", "2/t"}, {0}};
    struct shears_result *persistence = shears_ask("persistence", options, NULL, &e);
    if (!persistence)
        return fail(e);
    const struct shears_table *layers = shears_table(persistence, "layers");
    for (size_t i = 0; i < shears_table_rows(layers); i++)
        printf("layer %d: ratio %.3f, density %.3f\n", (int)shears_column(layers, "layer")->ints[i],
               shears_column(layers, "ratio")->reals[i], shears_column(layers, "density")->reals[i]);
    shears_result_free(persistence);
    shears_store_close(store);
    return 0;
}
