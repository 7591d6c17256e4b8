/* SPDX-License-Identifier: Apache-2.0 */
/* Results of commands: settings are written as ever, what is kept is found again, what cannot be is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/store/measured.h"
#include "src/app/store/results.h"
#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"
#include "tests/unit/scratch_store.h"

static struct sh_err e;
static char db[4096];

static struct sh_store *fresh(const char *line)
{
    scratch_clear();
    snprintf(db, sizeof db, "%s", scratch_path("results.db"));
    struct sh_store *s = sh_store_typed(sh_store_create(db, &e), line);
    CU_ASSERT_FATAL(s != NULL);
    return s;
}

/* Values in any order; those of stores that are about. */
static void settings_are_names(void)
{
    static const struct { const char *command; struct sh_value value[24]; const char *text; } want[] = {
        {"eval",
         {{"seed", .bits = 3}, {"policy", .text = "full"}, {"knobs", .text = ""}, {"budget", .text = "1.0"},
          {"kv_bits", .whole = 32}, {"group", .whole = 0}, {"keys", .text = NULL},
          {"residual", .whole = 7, .is_absent = 1}, {"prefill", .whole = -1},
          {"model", .bits = 0x1ab7a5ee02d416e5u}, {"texts", .bits = 1}, {"dtype", .text = "f32"},
          {"weight_bits", .whole = 16}, {"weight_prune", .real = 0.25},
          {"unpruned", .bits = 15}, {0}},
         "{\"policy\": \"full\", \"knobs\": \"\", \"budget\": \"1.0\", \"kv_bits\": 32, \"group\": 0, "
         "\"prefill\": -1, \"model\": \"1ab7a5ee02d416e5\", \"texts\": \"0000000000000001\", \"dtype\": \"f32\", "
         "\"weight_bits\": 16, \"seed\": 3, \"weight_prune\": 0.25, \"unpruned\": \"000000000000000f\"}"},
        {"persistence",
         {{"alpha", .text = "10/t"}, {"recent", .whole = 0}, {"split", .real = 0.3}, {"window", .whole = 400},
          {"run", .whole = 0}, {0}},
         "{\"alpha\": \"10/t\", \"recent\": 0, \"split\": 0.29999999999999999, \"window\": 400, \"run\": 0}"},
        {"theory",
         {{"split", .real = 1}, {"epsilon", .real = 1e-5}, {"seed", .bits = UINT64_MAX}, {0}},
         "{\"split\": 1, \"epsilon\": 1.0000000000000001e-05, \"seed\": 18446744073709551615}"},
        {"simulate",
         {{"model", .text = "a \"b\"\n"}, {"link", .whole = 2}, {"max_rate", .whole = 0}, {"util", .real = -1},
          {"goal", .real = 1}, {"flops", .real = HUGE_VAL}, {"speed", .real = 1e-5}, {"costs", .bits = 255}, {0}},
         "{\"costs\": \"00000000000000ff\", \"goal\": 1.0, \"link\": true, \"max_rate\": false, "
         "\"model\": \"a \\\"b\\\"\\n\", \"speed\": 1.0000000000000001e-5}"}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char *text = sh_settings_text(want[i].command, want[i].value);
        if (strcmp(text, want[i].text))
            printf("# %s: expected %s, found %s\n", want[i].command, want[i].text, text);
        CU_ASSERT_STRING_EQUAL(text, want[i].text);
        free(text);
    }
    CU_ASSERT_PTR_NULL(sh_settings_text("simulate", (const struct sh_value[]){{"model", .text = "\xff"}, {0}}));
}

/* JSON's order is the table's where settings were sorted from the start. */
static void sorted_settings(void)
{
    for (const struct sh_result_kind *k = sh_result_kinds; k->command; k++)
        for (int i = 0; k->setting[i].key; i++)
            for (int j = 0; j < i; j++) {
                CU_ASSERT(strcmp(k->setting[i].key, k->setting[j].key) != 0);
                if (!strcmp(k->command, "simulate") || !strcmp(k->command, "repetition"))
                    CU_ASSERT(strcmp(k->setting[i].key, k->setting[j].key) > 0);
            }
}

static int keep(struct sh_store *s, const char *command, const char *settings, const char *metric, double value)
{
    struct sh_result_row row = {0};
    sh_result_add(&row, -1, value, "%s", metric);
    sh_result_add(&row, 3, (double)NAN, "%s", metric);
    return sh_result_keep(s, command, settings, &row, &e);
}

static void found_again(void)
{
    static const char settings[] = "{\"policy\": \"h2o\", \"knobs\": \"recent=10\", \"budget\": \"9\", \"kv_bits\": 8}";
    struct sh_store *s = fresh("replay --db it");
    struct sh_result_row row;
    struct sh_results all = {0};
    CU_ASSERT(!keep(s, "replay", settings, "kept_mass", 0.5) && !keep(s, "replay", settings, "kept_mass", 0.25));
    CU_ASSERT(!keep(s, "replay", "[1]", "kept_mass", 0.75) && !keep(s, "replay", "{\"a\": 1, \"a\": 2}", "x", 1));
    CU_ASSERT(!keep(s, "replay", "{\"policy\": \"full\"}", "peak_tokens", 4));
    CU_ASSERT(sh_result_find(s, "replay", "{}", &row, &e) == 0 && !row.n);
    CU_ASSERT(sh_result_find(s, "eval", settings, &row, &e) == 0);
    CU_ASSERT(sh_result_find(s, "replay", settings, &row, &e) == 1 && row.n == 2);
    CU_ASSERT(sh_result(&row, "kept_mass", -1) == 0.25 && isnan(sh_result(&row, "kept_mass", 3)));
    sh_result_free(&row);
    CU_ASSERT_FATAL(!sh_results_load(s, "replay", &all, &e) && all.n == 2);     /* what is no object is left out */
    CU_ASSERT_STRING_EQUAL(all.row[1].text, settings);
    CU_ASSERT(sh_result_int(&all.row[1], "kv_bits") == 8 && sh_result_real(&all.row[1], "kv_bits") == 8);
    CU_ASSERT_STRING_EQUAL(sh_result_text(&all.row[0], "budget"), "");
    static const char *const apart[] = {"policy", "kv_bits", NULL};
    char *spec = sh_result_spec(&all.row[1]), *group = sh_result_group(&all.row[1], apart);
    CU_ASSERT_STRING_EQUAL(spec, "h2o:recent=10");
    CU_ASSERT_STRING_EQUAL(group, "{\"budget\": \"9\", \"knobs\": \"recent=10\"}");
    free(spec);
    free(group);
    CU_ASSERT(!sh_results_load(s, "replay", &all, &e) && all.n == 4);           /* another reading's are other rows */
    sh_results_free(&all);
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM typed WHERE line = 'replay --db it'") == 4);
}

/* All figures of a kind, or they are measured again; those of layers are others. */
static void in_pieces(void)
{
    double at[32] = {0}, back[32];
    struct sh_store *s = fresh(NULL);
    for (int lacks = 0; lacks < 2; lacks++) {
        struct sh_result_row row = {0};
        sh_result_add_all(&row, &sh_drift_metrics, -1, at);
        row.n -= lacks;
        sh_result_add_all(&row, &sh_drift_metrics, 1, at);
        CU_ASSERT(!sh_result_keep(s, "drift", "{}", &row, &e));
        CU_ASSERT(sh_result_find(s, "drift", "{}", &row, &e) == 1);
        CU_ASSERT(sh_result_get(&row, &sh_drift_metrics, back) == !lacks);
        sh_result_free(&row);
    }
    CU_ASSERT(!keep(s, "eval", "{}", "nll", 1) && !keep(s, "eval", "{\"a\": 1}", "nll", 1));
    CU_ASSERT(!sh_store_results_erase(s, "eval", "{}", &e));
    sh_store_close(s);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM result WHERE command = 'eval' AND settings = '{}'") == 0);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM result WHERE command = 'eval'") == 2);
    CU_ASSERT(ask_store(db, "SELECT count(*) FROM typed") == 0);
}

/* Names of files, once each, that fit and are UTF-8; ids decide what is the same. */
static void texts_have_names(void)
{
    static const int32_t ids[] = {5, 6, 7}, unknown[] = {-1, -1, -1};
    struct sh_measured m = {0}, cut = {0}, import = {0}, odd = {0};
    char file[200];
    sh_measured_add(&m, "in/a.txt:0", ids, 3);
    sh_measured_add(&m, "in/a.txt:1", ids, 2);
    sh_measured_add(&m, "b.txt:0", ids, 3);
    CU_ASSERT_STRING_EQUAL(m.name, "a.txt + b.txt");
    CU_ASSERT(m.texts == 3 && m.tokens == 8 && m.hash);
    for (int i = 0; i < 40; i++) {
        snprintf(file, sizeof file, "text-%d.txt:0", i);
        sh_measured_add(&m, file, ids, 1);
    }
    CU_ASSERT(strlen(m.name) < sizeof m.name && !strcmp(m.name + strlen(m.name) - 7, " + more"));
    sh_measured_add(&cut, "a.txt:0", ids, 2);
    sh_measured_add(&cut, "a.txt:1", ids + 2, 1);
    CU_ASSERT(!sh_measured_same(&m, &cut) && sh_measured_same(&cut, &cut));
    sh_measured_add(&import, "a.txt:0", unknown, 3);
    sh_measured_add(&import, "a.txt:1", ids, 3);
    CU_ASSERT(!import.hash && import.tokens == 6);
    sh_measured_add(&odd, "\xff\xfe:0", ids, 3);
    CU_ASSERT_STRING_EQUAL(odd.name, "unnamed");
    memset(file, 'x', sizeof file - 1);
    file[sizeof file - 1] = '\0';
    memcpy(file + 55, "\xc3\xa4\xc3\xa4\xc3\xa4", 6);
    odd = (struct sh_measured){0};
    sh_measured_name(&odd, file);
    CU_ASSERT(strlen(odd.name) >= 50 && odd.name[strlen(odd.name) - 1] != '\xc3');
}

/* What two texts of one name are called, and how one of them is chosen. */
static void texts_are_chosen(void)
{
    static const struct sh_measured a = {"a.txt", 2, 80, 0x1234567890abcdef}, b = {"a.txt", 2, 80, 0x2234567890abcdef},
        c = {"a.txt", 3, 90, 0x3234567890abcdef}, old = {"", 2, 80, 0}, same = {"", 2, 80, 0x1234567890abcdef};
    struct sh_texts_met met = {0};
    sh_texts_meet(&met, &same);
    CU_ASSERT(sh_text_choose(&met, NULL, "t.db", &e) == &same);
    sh_texts_meet(&met, &a);                            /* the same, with a name */
    CU_ASSERT(met.n == 1 && met.at[0] == &a && sh_text_choose(&met, NULL, "t.db", &e) == &a);
    sh_texts_meet(&met, &old);
    CU_ASSERT(met.n == 1);
    sh_texts_meet(&met, &c);
    char *label = sh_text_label(&met, &a);
    CU_ASSERT_STRING_EQUAL(label, "a.txt (2 texts, 80 tokens)");
    free(label);
    sh_texts_meet(&met, &b);
    label = sh_text_label(&met, &a);
    CU_ASSERT_STRING_EQUAL(label, "a.txt (2 texts, 80 tokens, 123456)");
    CU_ASSERT(sh_text_choose(&met, label, "t.db", &e) == &a);
    free(label);
    CU_ASSERT(sh_text_choose(&met, "223456", "t.db", &e) == &b);
    CU_ASSERT(!sh_text_choose(&met, "a.txt", "t.db", &e) && e.status == SH_MISUSED && strstr(e.text, "t.db"));
    CU_ASSERT(!sh_text_choose(&met, NULL, "t.db", &e) && strstr(e.hint, "--measured-on"));
    CU_ASSERT(!sh_text_choose(&met, "c.txt", "t.db", &e) && strstr(e.text, "c.txt"));
    free(met.at);
}

static void what_cannot_be(void)
{
    static const struct { const char *command, *metric; double value; const char *why; } wrong[] = {
        {"eval", "ppl", 0.5, "ppl is 0.5, expected 1 or more"}, {"eval", "answers", -1, "expected 0 to"},
        {"eval", "nll@position:33-64", -1, "nll@position:33-64 is -1, expected 0 or more"},
        {"eval", "nll_change", HUGE_VAL, "expected a finite number"}, {"task", "acc", 1.5, "expected 0 to 1"},
        {"replay", "kept_mass", 2, "shears replay --force"}, {"drift", "jaccard_step_12", 7, "expected 0 to 1"},
        {"drift", "score_change@pairs:left", -1, "shears drift, or"}, {"simulate", "requests", 0, "expected 1 to"}};
    struct sh_store *s = fresh(NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sh_result_row row;
        struct sh_results all = {0};
        CU_ASSERT(!keep(s, wrong[i].command, "{\"a\": 1}", wrong[i].metric, wrong[i].value));
        int bad = sh_results_load(s, wrong[i].command, &all, &e);
        char *said = xasprintf("%s %s", e.text, e.hint);
        CU_ASSERT(bad == -1 && !all.n && strstr(said, wrong[i].why) && strstr(said, db));
        free(said);
        CU_ASSERT(sh_result_find(s, wrong[i].command, "{\"a\": 1}", &row, &e) == -1);
        CU_ASSERT(!keep(s, wrong[i].command, "{\"a\": 1}", wrong[i].metric, (double)NAN));
        CU_ASSERT(!keep(s, wrong[i].command, "{\"b\": 1}", "of another version", -1e300));
        CU_ASSERT(!sh_results_load(s, wrong[i].command, &all, &e) && all.n > 1);
        sh_results_free(&all);
    }
    sh_store_close(s);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"settings: the text by which stored results are found", settings_are_names},
        {"settings: each key once, sorted where they always were", sorted_settings},
        {"results: replaced, found again, decoded", found_again},
        {"results: in pieces they are not known; forgotten ones are away", in_pieces},
        {"results: texts have names", texts_have_names},
        {"results: texts are chosen", texts_are_chosen},
        {"results: figures that cannot be are refused", what_cannot_be},
        {0}};
    return tap_run("results", tests);
}
