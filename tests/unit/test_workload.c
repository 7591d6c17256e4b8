/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of workload files: the headers that are known, dates, and everything that makes no request. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/simulate/workload.h"
#include "tests/tap.h"

static struct sh_err e;
static uint64_t session;

static struct sh_workload_columns columns(const char *header)
{
    struct sh_workload_columns c = {0};
    CU_ASSERT_FATAL(!sh_workload_header(header, &c, &e));
    return c;
}

static void headers(void)
{
    static const struct { const char *header, *row; } known[] = {
        {"arrival_s,prompt_tokens,output_tokens\n", "1.5,374,44\n"},
        {"id, output_tokens , \"prompt_tokens\",arrival_s\r\n", "x,44,374,1.5\r\n"},
        {"\xef\xbb\xbf" "arrival_s,prompt_tokens,output_tokens", "1.5,374.0,44.0"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens", "1.5,374,44"},
        {"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
         "1.5,\"GPT-4, \"\"turbo\"\"\",374,44,418,Conversation log\n"},
        {"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type",
         "1.5,a,2,ChatGPT,374,44,418,API log"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct sh_workload_columns c = columns(known[i].header);
        struct sh_request q = {0, 0, 0};
        CU_ASSERT_EQUAL(sh_workload_row(&c, known[i].row, &q, &session, &e), 1);
        CU_ASSERT(q.arrival_s == 1.5 && q.prompt == 374 && q.output == 44);
    }
}

static void unknown_headers(void)
{
    static const char *const bad[] = {"", "\n", "arrival_s,prompt_tokens", "a,b,c", "1.5,374,44",
                                      "TIMESTAMP,ContextTokens,output_tokens",
                                      "arrival_s,prompt_tokens,output_tokens,arrival_s"};
    struct sh_workload_columns c;
    char wide[1024] = "arrival_s,prompt_tokens,output_tokens";
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(sh_workload_header(bad[i], &c, &e) == -1 && *e.text);
    for (size_t n = strlen(wide); n < 200; n++)
        wide[n] = ',';
    CU_ASSERT(sh_workload_header(wide, &c, &e) == -1);
}

/* Seconds since 1970 as `date -u +%s` gives them. */
static void dates(void)
{
    static const struct { const char *text; double s; } known[] = {
        {"2023-11-16 18:17:03.9799600", 1700158623.97996},
        {"2024-05-10 00:00:00.009930+00:00", 1715299200.00993},
        {"2024-02-29T23:59:59Z", 1709251199},
        {"2024-05-10 02:30:00+02:30", 1715299200},
        {"2000-03-01 00:00:00", 951868800},
        {"1970-01-01 00:00:00", 0},
        {"12.25", 12.25}, {"0", 0}, {"1e3", 1000}};
    static const char *const bad[] = {"2023-13-16 18:17:03", "2023-11-16 24:17:03", "2023-11-16 18:17", "yesterday",
                                      "-1", "", "nan", "inf", "1e13", "0x10", "2023-11-16 18:17:03.1x",
                                      "2023-11-16 18:17:03+0100", "1969-12-31 23:59:59"};
    struct sh_workload_columns c = columns("arrival_s,prompt_tokens,output_tokens");
    char line[128];
    struct sh_request q;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        snprintf(line, sizeof line, "%s,1,1", known[i].text);
        CU_ASSERT_FATAL(sh_workload_row(&c, line, &q, &session, &e) == 1);
        CU_ASSERT(fabs(q.arrival_s - known[i].s) < 1e-6);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(line, sizeof line, "%s,1,1", bad[i]);
        int got = sh_workload_row(&c, line, &q, &session, &e);
        if (got != -1)
            printf("# taken for a time: \"%s\"\n", bad[i]);
        CU_ASSERT_EQUAL(got, -1);
    }
}

static void rows(void)
{
    static const struct { const char *row; int got; const char *says; } cases[] = {
        {"", 0, NULL}, {"  \r\n", 0, NULL}, {"1,0,5", 0, NULL}, {"1,5,0", 0, NULL}, {"1,5,5", 1, NULL},
        {"1,-5,5", -1, "a prompt of \"-5\""}, {"1,5,-5", -1, "an answer of \"-5\""}, {"1,5", -1, "2 fields"},
        {"1,5,5,5", -1, "4 fields"}, {"1,5.5,5", -1, "whole"}, {"1,,5", -1, "a prompt"}, {"1,5,nan", -1, "an answer"},
        {"1,1048577,1", -1, "1048576"}, {"1,1048576,1", -1, "1048577 tokens"}, {"1,1048575,1", 1, NULL},
        {"1,99999999999999999999,1", -1, "whole number"}, {"1,0x5,5", -1, "a prompt"}, {"1,5,5 x", -1, "5 x"}};
    struct sh_workload_columns c = columns("arrival_s,prompt_tokens,output_tokens");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sh_request q = {7, 7, 7};
        int got = sh_workload_row(&c, cases[i].row, &q, &session, &e);
        if (got != cases[i].got || (got < 0 && !strstr(e.text, cases[i].says)))
            printf("# \"%s\": %d, %s\n", cases[i].row, got, e.text);
        CU_ASSERT_EQUAL(got, cases[i].got);
        CU_ASSERT(got >= 0 || strstr(e.text, cases[i].says));
        CU_ASSERT(got > 0 || (q.arrival_s == 7 && q.prompt == 7 && q.output == 7));
    }
}

int main(void)
{
    static const struct tap_test tests[] = {{"known headers", headers},
                                            {"unknown headers are refused", unknown_headers},
                                            {"dates and seconds", dates},
                                            {"rows that are requests, and those that are not", rows},
                                            {NULL, NULL}};
    return tap_run("workload", tests);
}
