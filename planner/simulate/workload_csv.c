/* SPDX-License-Identifier: Apache-2.0 */
/* See workload.h. */
#include "planner/simulate/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { MOST_COLUMNS = 64, FIELD = 96 };

static const struct { const char *arrival, *prompt, *output; } known[] = {
    {"arrival_s", "prompt_tokens", "output_tokens"},
    {"timestamp", "contexttokens", "generatedtokens"},
    {"timestamp", "request tokens", "response tokens"}};

/* The next field without its quotes and the blanks around it; 0: the line has no more. A field that is longer than any
 * number is cut: it can only be a column that is not read. */
static int field(const char **at, char to[FIELD])
{
    const char *s = *at;
    size_t n = 0;
    int quoted = 0;
    if (!s)
        return 0;
    for (; *s && *s != '\n' && *s != '\r' && (quoted || *s != ','); s++) {
        if (*s == '"') {
            quoted = !quoted;
            continue;
        }
        if ((*s == ' ' || *s == '\t') && !n)
            continue;
        if (n + 1 < FIELD)
            to[n++] = *s;
    }
    while (n && (to[n - 1] == ' ' || to[n - 1] == '\t'))
        n--;
    to[n] = '\0';
    *at = *s == ',' ? s + 1 : NULL;
    return 1;
}

int sh_workload_header(const char *line, struct sh_workload_columns *out, struct sh_err *e)
{
    enum { SETS = sizeof known / sizeof *known };
    int place[SETS][3], n = 0;
    char name[FIELD];
    int session = -1;
    memset(place, -1, sizeof place);
    if (!strncmp(line, "\xef\xbb\xbf", 3))
        line += 3;                      /* spreadsheets put a byte order mark first */
    for (const char *at = line; field(&at, name); n++) {
        if (!strcasecmp(name, "session")) {
            if (session >= 0)
                return sh_fail(e, "duplicate column \"%.40s\"", name);
            session = n;
        }
        for (int k = 0; k < SETS; k++) {
            const char *const want[3] = {known[k].arrival, known[k].prompt, known[k].output};
            for (int i = 0; i < 3; i++)
                if (!strcasecmp(name, want[i])) {
                    if (place[k][i] >= 0)
                        return sh_fail(e, "duplicate column \"%.40s\"", name);
                    place[k][i] = n;
                }
        }
    }
    for (int k = 0; k < SETS; k++)
        if (place[k][0] >= 0 && place[k][1] >= 0 && place[k][2] >= 0 && n <= MOST_COLUMNS) {
            *out = (struct sh_workload_columns){n, place[k][0], place[k][1], place[k][2], k ? -1 : session};
            return 0;
        }
    size_t length = strcspn(line, "\r\n");
    sh_fail(e, "found the header \"%.*s\", expected arrival_s, prompt_tokens, output_tokens",
            (int)(length < 80 ? length : 80), line);
    return sh_hint(e, "also known: TIMESTAMP, ContextTokens, GeneratedTokens (Azure) and Timestamp, "
                   "Request tokens, Response tokens (BurstGPT)");
}

/* Whole digits, `n` of them; -1: something else. */
static int digits(const char *s, int n)
{
    int x = 0;
    for (int i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        x = 10 * x + (s[i] - '0');
    }
    return x;
}

/* "2023-11-16 18:17:03.9799600", possibly with T for the blank or a zone "+00:00" after it. */
static int date(const char *s, double *out)
{
    if (strlen(s) < 19 || s[4] != '-' || s[7] != '-' || (s[10] != ' ' && s[10] != 'T') || s[13] != ':' || s[16] != ':')
        return -1;
    int year = digits(s, 4), month = digits(s + 5, 2), day = digits(s + 8, 2);
    int hour = digits(s + 11, 2), minute = digits(s + 14, 2), second = digits(s + 17, 2);
    double part = 0, unit = 0.1;
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 ||
        minute > 59 || second < 0 || second > 60)
        return -1;
    s += 19;
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
            part += (*s - '0') * unit;
    long zone = 0;
    if (*s == 'Z') {
        s++;
    } else if ((*s == '+' || *s == '-') && strlen(s) == 6 && s[3] == ':') {
        int h = digits(s + 1, 2), m = digits(s + 4, 2);
        if (h < 0 || m < 0)
            return -1;
        zone = (*s == '-' ? -60L : 60L) * (60L * h + m);
        s += 6;
    }
    if (*s)
        return -1;
    struct tm t = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_min = minute,
                   .tm_sec = second};
    *out = (double)(timegm(&t) - zone) + part;
    return 0;
}

/* A decimal number from 0 on and nothing else; strtod alone would take "nan" and "0x5". */
static int decimal(const char *s, double *out)
{
    char *end;
    if (!((*s >= '0' && *s <= '9') || *s == '.') || s[strspn(s, "0123456789.eE+-")])
        return -1;
    *out = strtod(s, &end);
    return *end ? -1 : 0;
}

static int time_of(const char *s, double *out, struct sh_err *e)
{
    if (!date(s, out))
        return 0;
    if (decimal(s, out) || !(*out <= 1e12))
        return sh_fail(e, "found an arrival of \"%.40s\", expected seconds from 0 or a date", s);
    return 0;
}

static int tokens_of(const char *s, const char *what, uint32_t *out, struct sh_err *e)
{
    double x;                           /* tables of floating point write 374.0 */
    if (decimal(s, &x) || !(x <= SH_REQUEST_TOKENS) || x != floor(x))
        return sh_fail(e, "found %s of \"%.40s\", expected a whole number from 0 to %d", what, s, SH_REQUEST_TOKENS);
    *out = (uint32_t)x;
    return 0;
}

/* FNV-1a; 0 is left to "no session", which an empty name is, too. */
static uint64_t name_of(const char *word)
{
    uint64_t h = 0xcbf29ce484222325u;
    if (!*word)
        return 0;
    for (; *word; word++)
        h = (h ^ (unsigned char)*word) * 0x100000001b3u;
    return h ? h : 1;
}

int sh_workload_row(const struct sh_workload_columns *c, const char *line, struct sh_request *out, uint64_t *session,
                    struct sh_err *e)
{
    char word[FIELD];
    struct sh_request r = {0, 0, 0};
    uint64_t name = 0;
    int n = 0;
    if (!line[strspn(line, " \t\r\n")])
        return 0;
    for (const char *at = line; field(&at, word); n++) {
        if ((n == c->arrival && time_of(word, &r.arrival_s, e)) ||
            (n == c->prompt && tokens_of(word, "a prompt", &r.prompt, e)) ||
            (n == c->output && tokens_of(word, "an answer", &r.output, e)))
            return -1;
        name = n == c->session ? name_of(word) : name;
    }
    if (n != c->n)
        return sh_fail(e, "found %d fields, expected %d as in the header", n, c->n);
    if (r.prompt + r.output > SH_REQUEST_TOKENS)
        return sh_fail(e, "found a request of %u tokens, expected at most %d", r.prompt + r.output, SH_REQUEST_TOKENS);
    if (!r.prompt || !r.output)
        return 0;
    *out = r;
    *session = name;
    return 1;
}
