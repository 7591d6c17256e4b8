/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/store/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

static const struct sh_result_kind *kind_of(const char *command)
{
    const struct sh_result_kind *k = sh_result_kinds;
    while (k->command && strcmp(k->command, command))
        k++;
    return k;
}

int sh_metric_index(const struct sh_metrics *m, const char *key)
{
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->metric[i].key, key))
            return i;
    return -1;
}

void sh_metric_write(const struct sh_metrics *m, int i, double value, struct sh_out *o)
{
    sh_out_real(o, m->metric[i].key, m->metric[i].label, value, m->metric[i].digits);
    if (m->details >> i & 1)
        sh_out_detail(o);
}

void sh_metrics_write(const struct sh_metrics *m, const double *at, struct sh_out *o)
{
    for (int i = 0; i < m->n; i++)
        if (m->metric[i].digits || isnan(at[i])) {
            sh_metric_write(m, i, at[i], o);
        } else {
            sh_out_int(o, m->metric[i].key, m->metric[i].label, llround(at[i]));
            if (m->details >> i & 1)
                sh_out_detail(o);
        }
}

void sh_policy_write(const struct sh_policy_spec *p, struct sh_out *o)
{
    char knobs[SH_POLICY_TEXT];
    int is_bound;
    sh_policy_knobs(p, knobs);
    char *spec = xasprintf("%s%s%s", p->policy->name, *knobs ? ":" : "", knobs),
         *label = sh_policy_label(spec, &is_bound);
    sh_out_text(o, "policy", "policy", p->policy->name);
    sh_out_shown(o, label);
    sh_out_text(o, "knobs", "knobs", knobs);
    sh_out_detail(o);
    free(label);
    free(spec);
}

/* As JSON; NULL: it is left out. *bad: it cannot be written. */
static char *value_text(enum sh_setting_kind kind, const struct sh_value *v, int *bad)
{
    if (v->is_absent || (kind == SH_SETTING_TEXT && !v->text) ||
        (kind >= SH_SETTING_REAL && !(v->real >= 0 && isfinite(v->real))))
        return NULL;
    switch (kind) {
    case SH_SETTING_WHOLE:
        return xasprintf("%lld", v->whole);
    case SH_SETTING_BOOL:
        return xstrdup(v->whole ? "true" : "false");
    case SH_SETTING_UNSIGNED:
        return xasprintf("%" PRIu64, v->bits);
    case SH_SETTING_HASH:
        return xasprintf("\"%016" PRIx64 "\"", v->bits);
    case SH_SETTING_REAL_17:
        return xasprintf("%.17g", v->real);
    case SH_SETTING_REAL_6:
        return xasprintf("%g", v->real);
    case SH_SETTING_TEXT:
    case SH_SETTING_REAL:
        break;
    }
    json_t *o = kind == SH_SETTING_TEXT ? json_string(v->text) : json_real(v->real);
    char *text = json_dumps(o, JSON_ENCODE_ANY);
    *bad |= !text;
    json_decref(o);
    return text;
}

char *sh_settings_text(const char *command, const struct sh_value *value)
{
    char *text;
    size_t bytes;
    int n = 0, bad = 0;
    FILE *to = xmemstream(&text, &bytes);
    for (const struct sh_setting *s = kind_of(command)->setting; s->key; s++) {
        const struct sh_value *v = value;
        while (v->key && strcmp(v->key, s->key))
            v++;
        char *one = v->key ? value_text(s->kind, v, &bad) : NULL;
        if (one)
            fprintf(to, "%s\"%s\": %s", n++ ? ", " : "{", s->key, one);
        free(one);
    }
    putc('}', to);
    xmemclose(to, &text, &bytes);
    if (!bad)
        return text;
    free(text);
    return NULL;
}

/* ---- reading ---- */

int sh_result_damaged(const char *store, const char *command, const char *settings, const char *metric, double value,
                      const char *expected, struct sh_err *e)
{
    sh_fail(e, "%s: a stored result of %s is damaged: %s is %g, expected %s (%.300s)", store, command, metric, value,
            expected, settings);
    return sh_hint(e, "measure it again with shears %s%s, or delete the rows of these settings from the store's table "
                   "\"result\"", command, kind_of(command)->has_force ? " --force" : "");
}

/* "nll@position:33-64" is an nll, "jaccard_step_4" a "jaccard_step_". */
static const struct sh_metric *metric_of(const struct sh_result_kind *k, const char *name)
{
    for (const struct sh_metrics *const *g = k->metrics; *g; g++)
        for (const struct sh_metric *m = (*g)->metric; m < (*g)->metric + (*g)->n; m++) {
            size_t n = strlen(m->key);
            if (!strncmp(name, m->key, n) && (!name[n] || name[n] == '@' || m->key[n - 1] == '_'))
                return m;
        }
    return NULL;
}

struct reading {
    const struct sh_result_kind *kind;
    const char *store, *command;
    struct sh_results *out;
    int first;                          /* row of this reading                                    */
};

/* A store can come from anywhere: every figure must be a possible one. */
static int check(const struct reading *g, const struct sh_stored_result *r, struct sh_err *e)
{
    char expected[80];
    const struct sh_metric *m = metric_of(g->kind, r->metric);
    if (!m || (m->least == 0 && m->most == 0) || isnan(r->value) || (r->value >= m->least && r->value <= m->most))
        return 0;
    if (m->most > 0x1p53)
        snprintf(expected, sizeof expected, m->least < 0 ? "a finite number" : "%g or more", m->least);
    else
        snprintf(expected, sizeof expected, "%g to %g", m->least, m->most);
    return sh_result_damaged(g->store, g->command, r->settings, r->metric, r->value, expected, e);
}

/* Room for one more than n; the array grows by one element at a time. */
static void *grow(void *at, int n, size_t bytes)
{
    return n & (n - 1) ? at : xreallocarray(at, n ? 2 * (size_t)n : 1, bytes);
}

static struct sh_result_figure *add(struct sh_result_row *r, int layer, double value)
{
    r->at = grow(r->at, r->n, sizeof *r->at);
    struct sh_result_figure *f = &r->at[r->n++];
    f->layer = layer;
    f->value = value;
    return f;
}

static int take(void *to, const struct sh_stored_result *r, struct sh_err *e)
{
    const struct reading *g = to;
    struct sh_results *s = g->out;
    if (check(g, r, e))
        return -1;
    if (r->head >= 0)                   /* no command keeps figures of heads */
        return 0;
    if (s->n == g->first || strcmp(s->row[s->n - 1].text, r->settings)) {
        s->row = grow(s->row, s->n, sizeof *s->row);
        s->row[s->n++] = (struct sh_result_row){.text = xstrdup(r->settings)};
    }
    struct sh_result_figure *f = add(&s->row[s->n - 1], r->layer, r->value);
    snprintf(f->metric, sizeof f->metric, "%s", r->metric);
    return 0;
}

static int read_rows(struct sh_store *s, const char *command, const char *settings, struct sh_results *out,
                     struct sh_err *e)
{
    struct reading g = {kind_of(command), sh_store_path(s), command, out, out->n};
    return sh_store_read_results(s, command, settings, take, &g, e);
}

struct naming { struct sh_results *out; int at; };       /* both in order of settings */

static void take_measured(void *to, const char *settings, const struct sh_measured *on)
{
    struct naming *g = to;
    while (g->at < g->out->n && strcmp(g->out->row[g->at].text, settings) < 0)
        g->at++;
    if (g->at < g->out->n && !strcmp(g->out->row[g->at].text, settings))
        g->out->row[g->at].on = *on;
}

/* Results of before texts had names: the settings have a hash, or numbers. The first token of a text has no prediction,
 * so it is not among those that an evaluation counts. */
static void guess_measured(struct sh_result_row *r)
{
    double texts = sh_result(r, "sequences", -1), tokens = sh_result(r, "tokens", -1) + texts;
    if (sh_result_real(r, "sequences") > 0) {
        texts = sh_result_real(r, "sequences");
        tokens = sh_result_real(r, "tokens");
    }
    r->on = (struct sh_measured){.texts = texts >= 1 && texts < 1 << 30 ? (int)texts : 0,
                                 .tokens = tokens >= 1 && tokens < 0x1p53 ? (long long)tokens : 0};
    const char *hash = sh_result_text(r, "texts");
    r->on.hash = strtoull(*hash ? hash : sh_result_text(r, "items"), NULL, 16);
}

int sh_results_load(struct sh_store *s, const char *command, struct sh_results *out, struct sh_err *e)
{
    int before = out->n, n = before, bad = read_rows(s, command, NULL, out, e);
    for (int i = n; i < out->n; i++) {
        struct sh_result_row *r = &out->row[i];
        r->settings = json_loads(r->text, JSON_REJECT_DUPLICATES, NULL);
        if (!bad && json_is_object(r->settings))
            out->row[n++] = *r;
        else
            sh_result_free(r);
    }
    struct naming g = {out, before};
    out->n = n;
    bad = bad || sh_store_read_measured(s, command, take_measured, &g, e);
    for (int i = before; i < n && !bad; i++)
        if (!out->row[i].on.texts)
            guess_measured(&out->row[i]);
    if (!n)
        sh_results_free(out);
    return bad ? -1 : 0;
}

int sh_result_find(struct sh_store *s, const char *command, const char *settings, struct sh_result_row *row,
                   struct sh_err *e)
{
    struct sh_results all = {0};
    *row = (struct sh_result_row){0};
    int bad = read_rows(s, command, settings, &all, e), found = !bad && all.n;
    if (found)
        *row = all.row[0];
    all.n = found ? 0 : all.n;
    sh_results_free(&all);
    return bad ? -1 : found;
}

void sh_result_free(struct sh_result_row *r)
{
    json_decref(r->settings);
    free(r->text);
    free(r->at);
    *r = (struct sh_result_row){0};
}

void sh_results_free(struct sh_results *r)
{
    for (int i = 0; i < r->n; i++)
        sh_result_free(&r->row[i]);
    free(r->row);
    *r = (struct sh_results){0};
}

double sh_result(const struct sh_result_row *r, const char *metric, int layer)
{
    for (int i = 0; i < r->n; i++)
        if (r->at[i].layer == layer && !strcmp(r->at[i].metric, metric))
            return r->at[i].value;
    return (double)NAN;
}

int sh_result_get(const struct sh_result_row *r, const struct sh_metrics *m, double *at)
{
    int seen = 0;
    for (int i = 0; i < m->n; i++)
        at[i] = (double)NAN;
    for (int i = 0; i < r->n; i++) {
        int k = r->at[i].layer < 0 ? sh_metric_index(m, r->at[i].metric) : -1;
        if (k >= 0) {
            at[k] = r->at[i].value;
            seen++;
        }
    }
    return seen == m->n;
}

int sh_result_recall(struct sh_store *s, const char *command, const char *settings, const struct sh_metrics *m,
                     double *at, struct sh_err *e)
{
    struct sh_result_row row;
    int found = sh_result_find(s, command, settings, &row, e);
    found = found > 0 ? sh_result_get(&row, m, at) : found;
    sh_result_free(&row);
    return found;
}

const char *sh_result_text(const struct sh_result_row *r, const char *key)
{
    const char *text = json_string_value(json_object_get(r->settings, key));
    return text ? text : "";
}

long long sh_result_int(const struct sh_result_row *r, const char *key)
{
    return json_integer_value(json_object_get(r->settings, key));
}

double sh_result_real(const struct sh_result_row *r, const char *key)
{
    return json_number_value(json_object_get(r->settings, key));
}

int sh_result_is_of_model(const struct sh_result_row *r)
{
    int is_recoded = json_object_get(r->settings, "weight_bits") && sh_result_int(r, "weight_bits") < 16;
    return !is_recoded && !json_object_get(r->settings, "weight_prune") &&
           sh_result_int(r, "activation_bits") != 8;
}

char *sh_result_spec(const struct sh_result_row *r)
{
    const char *knobs = sh_result_text(r, "knobs");
    return xasprintf("%s%s%s", sh_result_text(r, "policy"), *knobs ? ":" : "", knobs);
}

char *sh_result_policy(const struct sh_result_row *r)
{
    int is_bound;
    char *spec = sh_result_spec(r), *label = sh_policy_label(spec, &is_bound);
    free(spec);
    return label;
}

char *sh_result_group(const struct sh_result_row *r, const char *const *apart)
{
    json_t *o = json_copy(r->settings);
    for (; *apart; apart++)
        json_object_del(o, *apart);
    char *text = json_dumps(o, JSON_SORT_KEYS);
    json_decref(o);
    return text;
}

/* ---- writing ---- */

void sh_result_add(struct sh_result_row *r, int layer, double value, const char *metric, ...)
{
    va_list more;
    struct sh_result_figure *f = add(r, layer, value);
    va_start(more, metric);
    vsnprintf(f->metric, sizeof f->metric, metric, more);
    va_end(more);
}

void sh_result_add_all(struct sh_result_row *r, const struct sh_metrics *m, int layer, const double *at)
{
    for (int i = 0; i < m->n; i++)
        sh_result_add(r, layer, at[i], "%s", m->metric[i].key);
}

int sh_result_keep(struct sh_store *s, const char *command, const char *settings, struct sh_result_row *r,
                   struct sh_err *e)
{
    int bad = sh_store_results_begin(s, command, settings, e);
    if (!bad && r->on.texts)
        bad = sh_store_measured(s, command, settings, &r->on, e);
    if (!bad && r->sums)
        bad = sh_store_sums(s, command, settings, r->sums, r->n_sums, e);
    for (int i = 0; i < r->n && !bad; i++)
        bad = sh_store_result(s, command, settings, r->at[i].metric, r->at[i].layer, -1, r->at[i].value, e);
    sh_result_free(r);
    return bad || sh_store_results_end(s, e) ? -1 : 0;
}

int sh_result_keep_all(struct sh_store *s, const char *command, const char *settings, const struct sh_metrics *m,
                       const double *at, const struct sh_measured *on, struct sh_err *e)
{
    struct sh_result_row row = {0};
    row.on = on ? *on : row.on;
    sh_result_add_all(&row, m, -1, at);
    return sh_result_keep(s, command, settings, &row, e);
}
