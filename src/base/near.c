/* SPDX-License-Identifier: Apache-2.0 */
/* See err.h. Edits insert, delete or change a letter, or swap two adjacent ones. */
#include "src/base/err.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 64, BEST = 3 };
enum { FAR = 1000, SHORT_FOR = 200, ALMOST = 400 };     /* above any sum of edits */

struct letters { int n; char at[LONGEST]; };

/* The characters of a name that count. */
static struct letters letters_of(const char *name, size_t length)
{
    struct letters l = {0};
    for (size_t i = 0; i < length && l.n < LONGEST; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c > ' ' && !strchr("-_.", c))
            l.at[l.n++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return l;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* *beginning: the edits to the beginning of b that is nearest. */
static int edits(const struct letters *a, const struct letters *b, int *beginning)
{
    int rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= b->n; j++)
        row[j] = j;
    for (int i = 1; i <= a->n; i++) {
        int *oldest = before;
        before = last;
        last = row;
        row = oldest;
        row[0] = i;
        for (int j = 1; j <= b->n; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a->at[i - 1] != b->at[j - 1]));
            if (i > 1 && j > 1 && a->at[i - 1] == b->at[j - 2] && a->at[i - 2] == b->at[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    *beginning = row[b->n];
    for (int j = 0; j <= b->n; j++)
        *beginning = least(*beginning, row[j]);
    return row[b->n];
}

/* Is one a prefix or a substring of the other? */
static int one_has_the_other(const struct letters *a, const struct letters *b)
{
    const struct letters *brief = a->n < b->n ? a : b, *whole = a->n < b->n ? b : a;
    int places = brief->n < 2 ? 0 : brief->n < 3 ? 1 : whole->n - brief->n + 1;
    for (int i = 0; i < places; i++)
        if (!memcmp(whole->at + i, brief->at, (size_t)brief->n))
            return 1;
    return 0;
}

/* An abbreviation: the same first letter, and all letters in the same order. */
static int is_short_for(const struct letters *brief, const struct letters *whole)
{
    int i = 0;
    for (int k = 0; k < whole->n && i < brief->n; k++)
        i += brief->at[i] == whole->at[k];
    return brief->n > 1 && brief->at[0] == whole->at[0] && i == brief->n;
}

/* Letters missing at an end cost a third of a typo: llama3 is nearer to llama-3-8b than to llama-7b. */
static int how_far(const struct letters *name, const struct letters *other)
{
    if (!name->n || !other->n)
        return FAR;
    int beginning, n = edits(name, other, &beginning), few = name->n < 6 ? 1 : (name->n + 1) / 3;
    return one_has_the_other(name, other) ? n : n <= few ? 3 * n : is_short_for(other, name) ? SHORT_FOR + n
           : name->n > 4 && beginning < 2 ? ALMOST + n : FAR;
}

const char *sh_near(const char *name, size_t length, const char *all, char *out, size_t bytes)
{
    struct { const char *at; int length, far; } best[BEST];
    struct letters meant = letters_of(name, length);
    int n = 0;
    for (const char *at = all; *at;) {
        size_t one = strcspn(at, "\n");
        struct letters other = letters_of(at, one);
        int far = how_far(&meant, &other), i = n;
        for (; i > 0 && best[i - 1].far > far; i--)
            if (i < BEST)
                best[i] = best[i - 1];
        if (far < FAR && i < BEST) {
            best[i].at = at;
            best[i].length = (int)one;
            best[i].far = far;
            n = least(n + 1, BEST);
        }
        at += one + (at[one] == '\n');
    }
    while (n > 1 && ((best[n - 1].far >= SHORT_FOR && best[0].far < SHORT_FOR) ||
                     (best[n - 1].far >= ALMOST && best[0].far < ALMOST)))
        n--;
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < n && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%.*s", i == 0 ? "" : i == n - 1 ? " or " : ", ",
                                 best[i].length, best[i].at);
    return out;
}

int sh_hint_near(struct sh_err *e, const char *name, size_t length, const char *all, const char *rest)
{
    char near[300];
    if (!*sh_near(name, length, all, near, sizeof near))
        return sh_hint(e, "%s", rest);
    return sh_hint(e, "did you mean %s?%s%s", near, *rest ? " " : "", rest);
}
