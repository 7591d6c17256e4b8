/* SPDX-License-Identifier: Apache-2.0 */
/* src/base: number formats against exhaustive or definitional checks, the result writer, errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/cpu.h"
#include "src/base/err.h"
#include "src/base/mem.h"
#include "src/base/num.h"
#include "src/base/out.h"
#include "src/base/rng.h"
#include "src/base/student.h"
#include "src/base/utf8.h"
#include "tests/tap.h"

static void f16_round_trip(void)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float x = sh_f16_to_f32((uint16_t)h);
        int is_nan = (h & 0x7c00) == 0x7c00 && (h & 0x3ff);
        if (is_nan)
            CU_ASSERT_FATAL(isnan(x));
        if (!is_nan)
            CU_ASSERT_FATAL(sh_f32_to_f16(x) == h);
    }
}

static void f16_values(void)
{
    CU_ASSERT(sh_f16_to_f32(0x3c00) == 1.0f);
    CU_ASSERT(sh_f16_to_f32(0x0001) == 0x1p-24f);
    CU_ASSERT(sh_f16_to_f32(0x7bff) == 65504.0f);
    CU_ASSERT(sh_f32_to_f16(65519.9f) == 0x7bff);
    CU_ASSERT(sh_f32_to_f16(65520.0f) == 0x7c00);               /* half way: ties to even, infinity */
    CU_ASSERT(sh_f32_to_f16(0x1p-25f) == 0x0000);               /* half of the smallest: to even    */
    CU_ASSERT(sh_f32_to_f16(nextafterf(0x1p-25f, 1)) == 0x0001);
    CU_ASSERT(sh_f32_to_f16(1.0f + 0x1p-11f) == 0x3c00);        /* tie: to even                     */
    CU_ASSERT(sh_f32_to_f16(1.0f + 3 * 0x1p-11f) == 0x3c02);
}

static void bf16_values(void)
{
    for (uint32_t h = 0; h < 0x10000; h++)
        if (!isnan(sh_bf16_to_f32((uint16_t)h)))
            CU_ASSERT_FATAL(sh_f32_to_bf16(sh_bf16_to_f32((uint16_t)h)) == h);
    CU_ASSERT(sh_f32_to_bf16(1.0f + 0x1p-8f) == 0x3f80);
    CU_ASSERT(sh_f32_to_bf16(1.0f + 3 * 0x1p-8f) == 0x3f82);
    CU_ASSERT(isnan(sh_bf16_to_f32(sh_f32_to_bf16(NAN))));
}

static void thresholds_in_float(void)
{
    for (int n = 1; n < 4000; n++) {
        double alpha = 1.0 / n;
        float near = (float)alpha, around[3] = {nextafterf(near, 0), near, nextafterf(near, 2)};
        for (int i = 0; i < 3; i++) {
            CU_ASSERT_FATAL((around[i] > sh_round_down(alpha)) == ((double)around[i] > alpha));
            CU_ASSERT_FATAL((around[i] < sh_round_up(alpha)) == ((double)around[i] < alpha));
        }
    }
}

/* Reference values of splitmix64 seeded with 1234567 (Vigna's published test vector). */
static void subnormals(void)
{
    volatile float small = 0x1p-120f, factor = 0x1p-10f;
    unsigned was = sh_cpu_drop_subnormals();
    volatile float between = small * factor;
    sh_cpu_keep_subnormals(was);
    volatile float after = small * factor;
    CU_ASSERT(after == 0x1p-130f);
#ifdef __x86_64__
    CU_ASSERT(between == 0);
#else
    CU_ASSERT(between == after);
#endif
}

static void rng_reference(void)
{
    CU_ASSERT(sh_rng(1234567, 0) == 6457827717110365317u);
    CU_ASSERT(sh_rng(1234567, 1) == 3203168211198807973u);
    CU_ASSERT(sh_rng(1234567, 2) == 9817491932198370423u);
}

static char *render(const struct sh_out *o, enum sh_out_format format)
{
    char *text = NULL;
    size_t bytes = 0;
    struct sh_err e;
    FILE *to = open_memstream(&text, &bytes);
    CU_ASSERT(sh_out_write(o, format, to, &e) == 0);
    fclose(to);
    return text;
}

static void writer_renders_one_tree(void)
{
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "model", "model", "a \"b\"");
    sh_out_list(o, "layers", "per layer");
    sh_out_item(o);
    sh_out_int(o, "layer", "layer", 0);
    sh_out_real(o, "ratio", "ratio", 0.1, 3);
    sh_out_list(o, "heads", "heads");
    sh_out_item(o);
    sh_out_int(o, "head", "head", 7);
    sh_out_end(o);
    sh_out_item(o);
    sh_out_int(o, "layer", "layer", 1);
    sh_out_real(o, "ratio", "ratio", NAN, 3);
    sh_out_end(o);
    char *json = render(o, SH_OUT_JSON), *csv = render(o, SH_OUT_CSV), *text = render(o, SH_OUT_TEXT);
    CU_ASSERT_STRING_EQUAL(csv, "layer,ratio\n0,0.1\n1,\n");
    CU_ASSERT(strstr(json, "\"model\": \"a \\\"b\\\"\"") != NULL);
    CU_ASSERT(strstr(json, "\"ratio\": 0.1,") != NULL);
    CU_ASSERT(strstr(json, "\"ratio\": null") != NULL);
    CU_ASSERT(strstr(json, "\"head\": 7") != NULL);
    CU_ASSERT(strstr(text, "0.100") != NULL && strstr(text, "head") == NULL);
    sh_out_show(o, "heads");
    char *shown = render(o, SH_OUT_CSV);
    CU_ASSERT(strncmp(shown, "layer,head\n0,7\n", 15) == 0);
    free(json);
    free(csv);
    free(text);
    free(shown);
    sh_out_free(o);
}

/* Groups are objects in JSON and columns in tables, at the top and in items, with scalars after them. */
static void writer_groups(void)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "results", "runs");
    for (int i = 0; i < 2; i++) {
        sh_out_item(o);
        sh_out_group(o, "ttft_s");
        sh_out_real(o, "p50", "TTFT p50", 0.5 + i, 1);
        sh_out_real(o, "p99", "TTFT p99", 2.5, 1);
        sh_out_group_end(o);
        sh_out_int(o, "n", "n", i);
    }
    sh_out_end(o);
    char *json = render(o, SH_OUT_JSON), *csv = render(o, SH_OUT_CSV), *text = render(o, SH_OUT_TEXT);
    CU_ASSERT_STRING_EQUAL(csv, "ttft_s.p50,ttft_s.p99,n\n0.5,2.5,0\n1.5,2.5,1\n");
    CU_ASSERT_STRING_EQUAL(text, "runs\n  TTFT p50  TTFT p99  n\n       0.5       2.5  0\n       1.5       2.5  1\n");
    CU_ASSERT(strstr(json, "\"ttft_s\": {\n    \"p50\": 0.5,\n    \"p99\": 2.5\n   },\n   \"n\": 0") != NULL);
    free(json);
    free(csv);
    free(text);
    sh_out_free(o);
    o = sh_out_new();
    sh_out_int(o, "a", "a", 1);
    sh_out_group(o, "g");
    sh_out_int(o, "b", "longer", 2);
    sh_out_group_end(o);
    sh_out_int(o, "c", "c", 3);
    csv = render(o, SH_OUT_CSV);
    text = render(o, SH_OUT_TEXT);
    CU_ASSERT_STRING_EQUAL(csv, "a,g.b,c\n1,2,3\n");
    CU_ASSERT_STRING_EQUAL(text, "a       1\nlonger  2\nc       3\n");
    free(csv);
    free(text);
    sh_out_free(o);
}

static void writer_columns(void)
{
    static const struct { const char *columns, *text; } shown[] = {
        {"sequences", "sequences  4\n"},                       /* and of tables that have none of them nothing */
        {"layer", "per layer\n  layer\n      0\n"},
        {"share", "share  0.50\n\nper layer\n  share\n   0.25\n"},
        {"share,sequences", "sequences  4\nshare      0.50\n\nper layer\n  share\n   0.25\n"},
        {"layer,share", "per layer\n  layer  share\n      0   0.25\n"}};
    struct sh_out *o = sh_out_new();
    sh_out_int(o, "sequences", "sequences", 4);
    sh_out_real(o, "share", "share", 0.5, 2);
    sh_out_list(o, "layers", "per layer");
    sh_out_item(o);
    sh_out_int(o, "layer", "layer", 0);
    sh_out_real(o, "share", "share", 0.25, 2);
    sh_out_end(o);
    sh_out_list(o, "rows", "how attention is spread");
    sh_out_item(o);
    sh_out_int(o, "entropy", "entropy", 1);
    sh_out_end(o);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        sh_out_columns(o, shown[i].columns);
        char *text = render(o, SH_OUT_TEXT);
        CU_ASSERT_STRING_EQUAL(text, shown[i].text);
        free(text);
    }
    sh_out_free(o);
}

static void json_is_always_utf8(void)
{
    static const struct { const char *in, *out; } text[] = {
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"},
        {"a\xff" "b", "a\\ufffdb"}, {"\xc0\x80", "\\ufffd\\ufffd"}, {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},
        {"\xf0\x9f", "\\ufffd\\ufffd"}, {"\x1b[1m", "\\u001b[1m"}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        struct sh_out *o = sh_out_new();
        sh_out_text(o, "name", "name", text[i].in);
        char *json = render(o, SH_OUT_JSON), *wanted = xasprintf("{\n \"name\": \"%s\"\n}\n", text[i].out);
        CU_ASSERT_STRING_EQUAL(json, wanted);
        free(json);
        free(wanted);
        sh_out_free(o);
    }
}

static void shown_names(void)
{
    static const struct { const char *in, *out; } text[] = {
        {"a\nb\x7f" "c", "a?b?c"}, {"\x1b[1m", "?[1m"}, {"\xc2\x9b" "1m", "?1m"}, {"\xe2\x80\xae" "abc", "?abc"},
        {"a\xff" "b\xc3", "a?b?"},
        {"K\xc3\xb6ln \xe2\x80\xa6", "K\xc3\xb6ln \xe2\x80\xa6"}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        char *said, *wanted = xasprintf("name  %s\n", text[i].out), *plain;
        size_t bytes;
        struct sh_out *o = sh_out_new();
        sh_out_text(o, "name", "name", text[i].in);
        said = render(o, SH_OUT_TEXT);
        CU_ASSERT_STRING_EQUAL(said, wanted);
        FILE *to = xmemstream(&plain, &bytes);
        sh_put_plain(to, text[i].in);
        xmemclose(to, &plain, &bytes);
        CU_ASSERT_STRING_EQUAL(plain, text[i].out);
        free(plain);
        free(said);
        free(wanted);
        sh_out_free(o);
    }
}

static void lines(void)
{
    static const struct { const char *in; size_t most; const char *line[4]; } text[] = {
        {"", 9, {NULL}}, {"a\n\nbc", 9, {"a\n", "\n", "bc", NULL}}, {"abcdef\n", 3, {"abcd", "ef\n", NULL}},
        {"abc\n", 3, {"abc\n", NULL}}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        FILE *from = fmemopen((void *)(uintptr_t)text[i].in, strlen(text[i].in), "r");
        char *line = NULL;
        size_t room = 0;
        for (int k = 0; from && text[i].line[k]; k++) {
            CU_ASSERT_EQUAL(xgetline(&line, &room, text[i].most, from), (ssize_t)strlen(text[i].line[k]));
            CU_ASSERT_STRING_EQUAL(line, text[i].line[k]);
        }
        CU_ASSERT(!from || xgetline(&line, &room, text[i].most, from) == -1);
        free(line);
        if (from)
            fclose(from);
    }
}

static void near_names(void)
{
    static const char all[] = "trace\nreplay\nreport\nllama-7b\nllama-3-8b\nllama-3.1-70b\nH100-SXM\nH100-PCIe\n--db\n"
                              "--tp\n--policy\n--temperature";
    static const struct { const char *meant, *near; } names[] = {
        {"tarce", "trace"}, {"TRACE", "trace"}, {"trac", "trace"}, {"replya", "replay"}, {"reports", "report"},
        {"foo", ""}, {"xyzzy", ""}, {"", ""}, {"--", ""}, {"e", ""},
        {"llama3", "llama-3-8b, llama-3.1-70b or llama-7b"},    /* what it begins comes before what it resembles */
        {"H100", "H100-SXM or H100-PCIe"}, {"sxm", "H100-SXM"},
        {"H1000", "H100-SXM or H100-PCIe"}, {"H10O-S", "H100-SXM"}, {"H2000", ""},
        {"--database", "--db"}, {"--tensor-parallel", "--tp"}, {"--policies", "--policy"},
        {"--temperatur", "--temperature"}};     /* --tp would be short for it, but this is near */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char near[100];
        CU_ASSERT_STRING_EQUAL(sh_near(names[i].meant, strlen(names[i].meant), all, near, sizeof near), names[i].near);
    }
    char cut[8];
    CU_ASSERT_STRING_EQUAL(sh_near("H100", 4, all, cut, sizeof cut), "H100-SX");
    struct sh_err e;
    sh_misused(&e, "no");
    CU_ASSERT(sh_hint_near(&e, "trac", 4, all, "ask") == -1);
    CU_ASSERT_STRING_EQUAL(e.hint, "did you mean trace? ask");
    sh_hint_near(&e, "foo", 3, all, "ask");
    CU_ASSERT_STRING_EQUAL(e.hint, "ask");
}

static void errors_keep_their_context(void)
{
    struct sh_err e;
    CU_ASSERT(sh_fail(&e, "tensor %s is short", "w") == -1);
    sh_err_prefix(&e, "reading %s", "m.safetensors");
    CU_ASSERT_STRING_EQUAL(e.text, "reading m.safetensors: tensor w is short");
    CU_ASSERT(e.status == SH_FAILED);
    size_t out;
    CU_ASSERT(sh_mul((size_t)-1, 2, &out) == -1);
    CU_ASSERT(sh_add((size_t)-1, 1, &out) == -1);
}

/* Published quantiles, to their last digit. */
static void student_quantiles(void)
{
    static const struct { double p; long long df; double t; } known[] = {
        {0.95, 1, 6.313752}, {0.95, 2, 2.919986}, {0.95, 5, 2.015048}, {0.95, 11, 1.795885}, {0.95, 23, 1.713872},
        {0.95, 100, 1.660234}, {0.975, 10, 2.228139}, {0.99, 30, 2.457262}, {0.5, 7, 0}, {0.05, 11, -1.795885}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CU_ASSERT_DOUBLE_EQUAL(sh_student_t(known[i].p, known[i].df), known[i].t, 6e-7);
    CU_ASSERT_DOUBLE_EQUAL(sh_student_t(0.95, 1LL << 40), 1.6448536, 3e-5);
    CU_ASSERT(isnan(sh_student_t(0.95, 0)));
    CU_ASSERT(isnan(sh_student_t(1, 5)));
    CU_ASSERT(isnan(sh_student_t((double)NAN, 5)));
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"f16: every value survives the round trip", f16_round_trip},
        {"f16: rounding at the edges", f16_values},
        {"bf16: every value survives, ties to even", bf16_values},
        {"thresholds: float comparison equals the double one", thresholds_in_float},
        {"numbers below 2^-126: 0 where they cost time, and there again after that", subnormals},
        {"rng: published values of splitmix64", rng_reference},
        {"Student's t: published quantiles", student_quantiles},
        {"out: text, JSON and CSV come from one tree", writer_renders_one_tree},
        {"groups of results", writer_groups},
        {"columns that are named, in tables and single values", writer_columns},
        {"out: JSON is UTF-8 whatever the names are", json_is_always_utf8},
        {"out: what a terminal would obey is not shown", shown_names},
        {"lines of foreign files, and no more of them than asked for", lines},
        {"near: names that another may stand for, and no others", near_names},
        {"err: context goes in front", errors_keep_their_context},
        {0}};
    return tap_run("base", tests);
}
