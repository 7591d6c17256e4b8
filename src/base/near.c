/* SPDX-License-Identifier: Apache-2.0 */
/* See near.h. Edits are counted as Levenshtein does, letters without regard to case. */
#include "src/base/near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64, BEST = 3 };

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static int distance(const char *a, size_t n, const char *b, size_t m)
{
    int row[LONGEST + 1];
    n = n < LONGEST ? n : LONGEST;
    m = m < LONGEST ? m : LONGEST;
    for (size_t j = 0; j <= m; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int corner = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int best = corner + (lower(a[i - 1]) != lower(b[j - 1]));
            corner = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[m];
}

const char *sh_near(const char *name, size_t length, const char *all, char *out, size_t bytes)
{
    struct { const char *at; size_t length; int edits; } best[BEST];
    int n = 0;
    for (const char *at = all; *at;) {
        size_t one = strcspn(at, "\n");
        int edits = distance(name, length, at, one), i = n < BEST ? n++ : BEST;
        for (; i > 0 && best[i - 1].edits > edits; i--)
            if (i < BEST)
                best[i] = best[i - 1];
        if (i < BEST) {
            best[i].at = at;
            best[i].length = one;
            best[i].edits = edits;
        }
        at += one + (at[one] == '\n');
    }
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < n && at < bytes; i++)
        at += (size_t)snprintf(out + at, bytes - at, "%s%.*s", i == 0 ? "" : i == n - 1 ? " or " : ", ",
                               (int)best[i].length, best[i].at);
    return out;
}
