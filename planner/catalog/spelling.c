/* SPDX-License-Identifier: Apache-2.0 */
/* See catalog.h, sh_catalog_spelled: the words of two names are compared, in any order and case, without those that
 * say nothing here. "meta-llama/Llama-3.1-8B-Instruct" is llama-3.1-8b, "NVIDIA A100-SXM4-80GB" is A100-SXM-80GB. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "planner/catalog/catalog.h"

enum { MOST_WORDS = 16, LONGEST = 32 };

struct words {
    int n;
    char at[MOST_WORDS][LONGEST];
    char all[MOST_WORDS * LONGEST];     /* in the order of the name, joined, without points       */
};

static int says_nothing(const char *word)
{
    static const char *const list[] = {"amd", "base", "chat", "core", "edition", "geforce", "generation", "gpu", "hf",
                                       "instinct", "instruct", "it", "meta", "nvidia", "oam", "tensor", "tesla"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!strcmp(word, list[i]))
            return 1;
    return 0;
}

static int has(const struct words *w, const char *word)
{
    for (int i = 0; i < w->n; i++)
        if (!strcmp(w->at[i], word))
            return 1;
    return 0;
}

static void add(struct words *w, char *word)
{
    if (!strncmp(word, "sxm", 3))       /* SXM2, SXM4, SXM5: the board tells */
        word[3] = 0;
    if (!*word || says_nothing(word) || w->n == MOST_WORDS)
        return;
    size_t used = strlen(w->all);
    for (const char *c = word; *c && used < sizeof w->all - 1; c++)
        if (*c != '.')
            w->all[used++] = *c;
    w->all[used] = '\0';
    if (!has(w, word))
        snprintf(w->at[w->n++], LONGEST, "%s", word);
}

static struct words words_of(const char *name, size_t length)
{
    struct words w = {0};
    char word[LONGEST];
    int n = 0;
    for (size_t i = 0; i <= length; i++) {
        unsigned char c = (unsigned char)(i < length ? name[i] : ' ');
        int is_version = c == '.' && n && isdigit((unsigned char)word[n - 1]) && i + 1 < length &&
                         isdigit((unsigned char)name[i + 1]);
        if ((isalnum(c) || is_version) && n < LONGEST - 1) {    /* 3.3 is not 3 */
            word[n++] = (char)tolower(c);
        } else {
            word[n] = 0;
            add(&w, word);
            n = 0;
        }
    }
    return w;
}

static int is_within(const struct words *some, const struct words *w)
{
    for (int i = 0; i < some->n; i++)
        if (!has(w, some->at[i]))
            return 0;
    return some->n > 0;
}

/* aka=NAME,NAME: is one of them spelled so? */
static int is_also(const char *row, const struct words *w)
{
    const char *also = strstr(row, " aka="), *end = row + strcspn(row, "|");
    if (!also || also > end)
        return 0;
    for (also += 5; ; also++) {
        size_t n = strcspn(also, ", |");
        if (!strcmp(words_of(also, n).all, w->all))
            return 1;
        also += n;
        if (*also != ',')
            return 0;
    }
}

enum { NO, PART, SAME };

/* PART: the name's words are among the row's and its memory ("gb=80" is the word 80gb). */
static int match(const char *row, const struct words *w)
{
    const char *name = row + strspn(row, " \t"), *gb = strstr(row, " gb=");
    struct words own = words_of(name, strcspn(name, " \t|\r\n"));
    if (!w->n)
        return NO;
    if (!strcmp(own.all, w->all) || is_also(row, w) || (own.n == w->n && is_within(&own, w)))
        return SAME;
    if (!gb)
        return NO;
    char memory[LONGEST];
    snprintf(memory, sizeof memory, "%.*sgb", (int)strspn(gb + 4, "0123456789"), gb + 4);
    add(&own, memory);
    return !is_within(w, &own) || !strpbrk(w->all, "0123456789") ? NO : own.n == w->n ? SAME : PART;
}

/* " or " before the last of them: `left` are still to come. */
static void list(char several[SH_CATALOG_SEVERAL], const char *row, int left)
{
    size_t used = strlen(several);
    row += strspn(row, " \t");
    snprintf(several + used, SH_CATALOG_SEVERAL - used, "%s%.*s", !used ? "" : left ? ", " : " or ",
             (int)strcspn(row, " \t|\r\n"), row);
}

const char *sh_catalog_spelled(const struct sh_catalog *c, const char *name, char at[256],
                               char several[SH_CATALOG_SEVERAL])
{
    const char *slash = strrchr(name, '/'), *row;
    int n[SAME + 1] = {0}, last[SAME + 1] = {0};
    struct words w = words_of(slash ? slash + 1 : name, strlen(slash ? slash + 1 : name));
    several[0] = '\0';
    for (int i = 0; (row = sh_catalog_row(c, i, at)); i++) {
        int how = match(row, &w);
        n[how]++;
        last[how] = i;
    }
    int how = n[SAME] ? SAME : PART, left = n[how];
    if (left == 1)
        return sh_catalog_row(c, last[how], at);
    for (int i = 0; left && (row = sh_catalog_row(c, i, at)); i++)
        if (match(row, &w) == how)
            list(several, row, --left);
    return NULL;
}
