/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/store/measured.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"

static int is_utf8(const char *at)
{
    while (*at) {
        int n = sh_utf8_bytes(at);
        if (!n)
            return 0;
        at += n;
    }
    return 1;
}

static int is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if ((at == list || !strncmp(at - 3, " + ", 3)) && (!at[n] || !strncmp(at + n, " + ", 3)))
            return 1;
    return 0;
}

/* What does not fit is "more". */
void sh_measured_name(struct sh_measured *m, const char *path)
{
    static const char more[] = " + more";
    const char *slash = strrchr(path, '/');
    char *name = xstrdup(slash ? slash + 1 : path);
    size_t used = strlen(m->name);
    if (!*name || !is_utf8(name)) {
        free(name);
        name = xstrdup("unnamed");
    }
    if (!used && strlen(name) >= SH_MEASURED_NAME - sizeof more) {
        size_t n = SH_MEASURED_NAME - sizeof more;
        while ((name[n] & 0xc0) == 0x80)        /* not within a character */
            n--;
        name[n] = '\0';
    }
    if (!used)
        snprintf(m->name, sizeof m->name, "%s", name);
    else if (!is_listed(m->name, name) && used + strlen(name) + 3 < SH_MEASURED_NAME - sizeof more)
        snprintf(m->name + used, sizeof m->name - used, " + %s", name);
    else if (!is_listed(m->name, name) && !is_listed(m->name, "more"))
        snprintf(m->name + used, sizeof m->name - used, "%s", more);
    free(name);
}

/* FNV-1a over lengths and ids: the same ids cut otherwise are other texts. */
void sh_measured_add(struct sh_measured *m, const char *source, const int32_t *ids, int n)
{
    int is_known = m->texts ? m->hash != 0 : 1;
    for (int t = 0; t < n; t++)
        is_known &= ids[t] >= 0;
    uint64_t h = m->texts ? m->hash : 0xcbf29ce484222325u;
    h = (h ^ (uint64_t)n) * 0x100000001b3u;
    for (int t = 0; t < n; t++)
        h = (h ^ (uint32_t)ids[t]) * 0x100000001b3u;
    m->hash = is_known ? h : 0;
    m->texts++;
    m->tokens += n;
    const char *colon = strrchr(source, ':');
    char *file = xasprintf("%.*s", colon ? (int)(colon - source) : (int)strlen(source), source);
    sh_measured_name(m, file);
    free(file);
}

void sh_measured_write(const struct sh_measured *m, struct sh_out *o)
{
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, m->hash);
    sh_out_text(o, "text", "text", *m->name ? m->name : NULL);
    sh_out_text(o, "text_hash", "hash of the text", m->hash ? hash : NULL);
}

int sh_measured_runs(struct sh_measured *m, struct sh_store *s, const struct sh_stored_run *run, int n_run,
                     struct sh_err *e)
{
    struct sh_stored_sequence *q;
    int n, bad = 0;
    for (int r = 0; r < n_run && !bad; r++) {
        if (sh_store_sequences(s, run[r].id, &q, &n, e))
            return -1;
        for (int i = 0; i < n && !bad; i++) {
            int32_t *ids = NULL;
            int count;
            bad = sh_store_tokens(s, q[i].id, &ids, &count, e);
            if (!bad)
                sh_measured_add(m, q[i].source, ids, count);
            free(ids);
        }
        sh_stored_sequences_free(q, n);
    }
    return bad ? -1 : 0;
}

int sh_measured_same(const struct sh_measured *a, const struct sh_measured *b)
{
    if (a->hash && b->hash)
        return a->hash == b->hash;
    return a->texts == b->texts && a->tokens == b->tokens && (!*a->name || !*b->name || !strcmp(a->name, b->name));
}

void sh_texts_meet(struct sh_texts_met *t, const struct sh_measured *m)
{
    for (int i = 0; i < t->n; i++)
        if (sh_measured_same(t->at[i], m)) {
            t->at[i] = *t->at[i]->name ? t->at[i] : m;  /* results of one text, of which some are older */
            return;
        }
    t->at = xreallocarray(t->at, (size_t)t->n + 1, sizeof *t->at);
    t->at[t->n++] = m;
}

static const char *name_of(const struct sh_measured *m)
{
    return *m->name ? m->name : "unknown";
}

enum form { NAME, COUNTS, HASH };

static char *label_as(const struct sh_measured *m, enum form form)
{
    char hash[24] = "";
    if (form == HASH)
        snprintf(hash, sizeof hash, ", %06x", (unsigned)(m->hash >> 40));
    return form == NAME ? xstrdup(name_of(m))
                        : xasprintf("%s (%d text%s, %lld tokens%s)", name_of(m), m->texts, m->texts == 1 ? "" : "s",
                                    m->tokens, hash);
}

char *sh_text_label(const struct sh_texts_met *t, const struct sh_measured *m)
{
    int names = 0, counts = 0;
    for (int i = 0; i < t->n; i++)
        if (sh_measured_same(t->at[i], m))
            m = t->at[i];
    for (int i = 0; i < t->n; i++) {
        int alike = !strcmp(name_of(t->at[i]), name_of(m));
        names += alike;
        counts += alike && t->at[i]->texts == m->texts && t->at[i]->tokens == m->tokens;
    }
    return label_as(m, names < 2 ? NAME : counts < 2 ? COUNTS : HASH);
}

int sh_text_answers(const struct sh_measured *m, const char *asked)
{
    char hash[24];
    size_t n = strlen(asked);
    snprintf(hash, sizeof hash, "%016" PRIx64, m->hash);
    int does = n >= 6 && m->hash && !strncmp(hash, asked, n);
    for (enum form form = NAME; form <= HASH; form++) {
        char *label = label_as(m, form);
        does |= !strcmp(label, asked);
        free(label);
    }
    return does;
}

/* The labels of those that answer, or of all: "a.txt; b.txt". */
static char *list(const struct sh_texts_met *t, const char *asked)
{
    char *text;
    size_t bytes;
    FILE *to = xmemstream(&text, &bytes);
    for (int i = 0, n = 0; i < t->n; i++) {
        char *label = sh_text_label(t, t->at[i]);
        if (!asked || sh_text_answers(t->at[i], asked))
            fprintf(to, "%s\"%s\"", n++ ? ", " : "", label);
        free(label);
    }
    xmemclose(to, &text, &bytes);
    return text;
}

const struct sh_measured *sh_text_choose(const struct sh_texts_met *t, const char *asked, const char *of,
                                         struct sh_err *e)
{
    const struct sh_measured *found = NULL;
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (!asked || sh_text_answers(t->at[i], asked)) {
            found = t->at[i];
            n++;
        }
    if (n == 1)
        return found;
    char *all = list(t, n ? asked : NULL);
    if (n)
        sh_misused(e, "%s: has results of %d texts, which are not mixed: %.400s", of, n, all);
    else
        sh_misused(e, "--measured-on %.80s: %s has results of %.400s", asked, of, all);
    sh_hint(e, "choose one, such as --measured-on %.*s", (int)strcspn(all + 1, "\"") + 2, all);
    free(all);
    return NULL;
}
