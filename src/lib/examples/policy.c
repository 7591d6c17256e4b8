/* SPDX-License-Identifier: Apache-2.0 */
/* Replays an eviction policy that is written here: a token's score is the attention that it got, fading by a half in
 * `halflife` rows. Compares it with two built-in ones.
 *
 *     cc policy.c $(pkg-config --cflags --libs shears) -lm -o policy && ./policy t.db */
#include <math.h>
#include <shears.h>
#include <stdio.h>

enum { HALFLIFE, RECENT };

static void observe(float *state, const struct shears_cache *c, const struct shears_step *s)
{
    const float keep = (float)exp2(-1 / c->head->knob[HALFLIFE]);
    for (int slot = 0; slot < c->n_slot; slot++)
        state[slot] = keep * state[slot] + s->row[slot];
}

static void score(float *state, const struct shears_cache *c, const struct shears_step *s, float *score)
{
    (void)s;
    for (int slot = 0; slot < c->n_slot; slot++)
        score[slot] = state[slot];
}

int main(int argc, char **argv)
{
    static const struct shears_knob knobs[] = {{"halflife", 16, 1, 1e6, 0}, {"recent", 4, 0, 1024, 1}, {0}};
    const struct shears_policy fading = {.bytes = sizeof fading, .name = "fading", .knobs = knobs, .rows = 1,
                                         .observe = observe, .score = score};
    const struct shears_option options[] = {
        {"db", argc > 1 ? argv[1] : ""}, {"policy", "fading:halflife=8"}, {"policy", "h2o"}, {"policy", "window"},
        {"budget", "0.25"}, {"budget", "0.5"}, {0}};
    struct shears_error *e = NULL;
    struct shears_result *r = shears_replay(&fading, options, NULL, &e);
    if (!r) {
        fprintf(stderr, "%s\nhint: %s\n", shears_error_message(e), shears_error_hint(e));
        shears_error_free(e);
        return 1;
    }
    const struct shears_table *t = shears_table(r, "results");
    for (size_t i = 0; i < shears_table_rows(t); i++)
        printf("%-8s %.2f: kept mass %.4f\n", shears_column(t, "policy")->texts[i],
               shears_column(t, "budget")->reals[i], shears_column(t, "kept_mass")->reals[i]);
    shears_result_free(r);
    return 0;
}
