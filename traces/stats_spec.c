/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_spec.h. */
#include "traces/stats_spec.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

/* ---- thresholds ---- */

/* A plain decimal number; *end is the rest of the text. strtod alone would accept "inf", "0x1", blanks. */
static int read_number(const char *text, double *out, const char **end)
{
    size_t span = strspn(text, "0123456789.eE+-");
    char digits[64], *stop;
    if (!span || span >= sizeof digits || text[0] == '+' || text[0] == '-')
        return -1;
    memcpy(digits, text, span);
    digits[span] = '\0';
    *out = strtod(digits, &stop);
    *end = text + span;
    return *stop || !isfinite(*out) ? -1 : 0;
}

static int alpha_is_valid(const struct sh_alpha *a)
{
    return a->kind == SH_ALPHA_ROW     ? isfinite(a->value) && a->value > 0
           : a->kind == SH_ALPHA_SPLIT ? a->value == 0
                                       : a->kind == SH_ALPHA_VALUE && a->value > 0 && a->value < 1;
}

int sh_alpha_parse(const char *text, struct sh_alpha *out, struct sh_err *e)
{
    struct sh_alpha a = {SH_ALPHA_ROW, 1.0};
    const char *end = "";
    int bad = 0;
    if (!strcmp(text, "split"))
        a = (struct sh_alpha){SH_ALPHA_SPLIT, 0.0};
    else if (strcmp(text, "row")) {
        bad = read_number(text, &a.value, &end);
        if (!bad && *end == '\0')
            a.kind = SH_ALPHA_VALUE;
        else if (!bad)
            bad = strcmp(end, "/t");
    }
    if (bad || !alpha_is_valid(&a))
        return sh_misused(e, "found \"%.40s\", expected row, split, a number between 0 and 1, or K/t with K above 0",
                          text);
    *out = a;
    return 0;
}

void sh_alpha_name(const struct sh_alpha *a, char out[SH_ALPHA_NAME])
{
    if (a->kind == SH_ALPHA_SPLIT || (a->kind == SH_ALPHA_ROW && a->value == 1)) {
        snprintf(out, SH_ALPHA_NAME, "%s", a->kind == SH_ALPHA_SPLIT ? "split" : "row");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, SH_ALPHA_NAME, "%.*g", digits, a->value);
        if (strtod(out, NULL) == a->value)
            break;
    }
    size_t used = strlen(out);
    if (a->kind == SH_ALPHA_ROW)
        snprintf(out + used, SH_ALPHA_NAME - used, "/t");
}

int sh_alpha_equal(const struct sh_alpha *a, const struct sh_alpha *b)
{
    return a->kind == b->kind && a->value == b->value;
}

/* ---- the grid ---- */

void sh_stats_spec_default(struct sh_stats_spec *out)
{
    *out = (struct sh_stats_spec){
        .n_alpha = 5, .n_recent = 4, .n_split = 3, .window = 400,
        .alpha = {{SH_ALPHA_ROW, 1}, {SH_ALPHA_ROW, 2}, {SH_ALPHA_ROW, 5}, {SH_ALPHA_ROW, 10}, {SH_ALPHA_SPLIT, 0}},
        .recent = {0, 1, 10, 50},
        .split = {0.25, 0.5, 0.75},
    };
}

static int check_count(const char *what, int n, struct sh_err *e)
{
    if (n < 0 || n > SH_STATS_MAX)
        return sh_misused(e, "attention statistics: found %d %s, expected 0 to %d", n, what, SH_STATS_MAX);
    return 0;
}

static int check_alphas(const struct sh_stats_spec *spec, struct sh_err *e)
{
    for (int i = 0; i < spec->n_alpha; i++) {
        if (!alpha_is_valid(&spec->alpha[i]))
            return sh_misused(e, "attention statistics: alpha %d: found kind %d with value %g, expected a threshold "
                              "above 0", i, (int)spec->alpha[i].kind, spec->alpha[i].value);
        if (spec->alpha[i].kind == SH_ALPHA_SPLIT && !spec->n_split)
            return sh_misused(e, "attention statistics: alpha \"split\" needs at least one split");
        for (int k = 0; k < i; k++)
            if (sh_alpha_equal(&spec->alpha[k], &spec->alpha[i]))
                return sh_misused(e, "attention statistics: alphas %d and %d are the same", k, i);
    }
    return 0;
}

int sh_stats_spec_check(const struct sh_stats_spec *spec, struct sh_err *e)
{
    if (check_count("alphas", spec->n_alpha, e) || check_count("recents", spec->n_recent, e) ||
        check_count("splits", spec->n_split, e) || check_alphas(spec, e))
        return -1;
    for (int i = 0; i < spec->n_recent; i++)
        if (spec->recent[i] < (i ? spec->recent[i - 1] + 1 : 0) || spec->recent[i] > SH_STATS_MAX_RECENT)
            return sh_misused(e, "attention statistics: recent %d: found %d, expected ascending numbers from 0 to %d",
                              i, spec->recent[i], SH_STATS_MAX_RECENT);
    for (int i = 0; i < spec->n_split; i++)
        if (!(spec->split[i] > (i ? spec->split[i - 1] : 0) && spec->split[i] < 1))
            return sh_misused(e, "attention statistics: split %d: found %g, expected ascending fractions between 0 "
                              "and 1", i, spec->split[i]);
    if (spec->window < 1 || spec->window > SH_STATS_MAX_WINDOW)
        return sh_misused(e, "attention statistics: window: found %d, expected 1 to %d", spec->window,
                          SH_STATS_MAX_WINDOW);
    return 0;
}

int sh_stats_split_at(double fraction, int length)
{
    int t = (int)floor((double)length * fraction);
    return t < 1 || t >= length ? 0 : t;
}

/* ---- lanes ---- */

int sh_stats_lane(const struct sh_stats_spec *spec, int i_alpha, int i_split)
{
    int lane = 0;
    for (int i = 0; i < i_alpha; i++)
        lane += spec->alpha[i].kind == SH_ALPHA_SPLIT ? spec->n_split : 1;
    return lane + (spec->alpha[i_alpha].kind == SH_ALPHA_SPLIT ? i_split : 0);
}

int sh_stats_n_lane(const struct sh_stats_spec *spec)
{
    if (!spec->n_alpha || !spec->n_recent)
        return 0;
    int i = spec->n_alpha - 1;
    return sh_stats_lane(spec, i, 0) + (spec->alpha[i].kind == SH_ALPHA_SPLIT ? spec->n_split : 1);
}

int sh_stats_limits(const struct sh_stats_spec *spec, int length, struct sh_stats_limit out[SH_STATS_MAX_LANES])
{
    int n = sh_stats_n_lane(spec), lane = 0;
    for (int i = 0; n && i < spec->n_alpha; i++) {
        const struct sh_alpha *a = &spec->alpha[i];
        if (a->kind != SH_ALPHA_SPLIT)
            out[lane++] = (struct sh_stats_limit){a->value, a->kind == SH_ALPHA_ROW};
        for (int k = 0; a->kind == SH_ALPHA_SPLIT && k < spec->n_split; k++) {
            int t = sh_stats_split_at(spec->split[k], length);
            out[lane++] = (struct sh_stats_limit){t ? 1.0 / t : INFINITY, 0};
        }
    }
    return n;
}

int sh_stats_sparse_can(const struct sh_alpha *a)
{
    return a->kind == SH_ALPHA_ROW && a->value >= 1;
}

int sh_stats_log8_can(const struct sh_alpha *a)
{
    return a->kind == SH_ALPHA_ROW && (a->value == 1 || a->value == 2 || a->value == 5 || a->value == 10);
}

/* ---- JSON ---- */

char *sh_stats_spec_write(const struct sh_stats_spec *spec)
{
    json_t *alphas = json_array(), *recents = json_array(), *splits = json_array();
    for (int i = 0; i < spec->n_alpha; i++) {
        char name[SH_ALPHA_NAME];
        sh_alpha_name(&spec->alpha[i], name);
        json_array_append_new(alphas, json_string(name));
    }
    for (int i = 0; i < spec->n_recent; i++)
        json_array_append_new(recents, json_integer(spec->recent[i]));
    for (int i = 0; i < spec->n_split; i++)
        json_array_append_new(splits, json_real(spec->split[i]));
    json_t *root = json_pack("{so,so,so,si}", "alphas", alphas, "recents", recents, "splits", splits, "window",
                             spec->window);
    char *dumped = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    char *text = xstrdup(dumped ? dumped : "");
    free(dumped);
    json_decref(root);
    return text;
}

/* The array `key` of `root` and its length, which must be within the cap. */
static json_t *list(json_t *root, const char *key, int *n, struct sh_err *e)
{
    json_t *found = json_object_get(root, key);
    if (!json_is_array(found) || json_array_size(found) > SH_STATS_MAX) {
        sh_fail(e, "attention statistics: key \"%s\": expected an array of at most %d items", key, SH_STATS_MAX);
        return NULL;
    }
    *n = (int)json_array_size(found);
    return found;
}

static int whole(const json_t *value, const char *key, int *out, struct sh_err *e)
{
    json_int_t x = json_is_integer(value) ? json_integer_value(value) : -1;
    if (x < 0 || x > SH_STATS_MAX_RECENT)
        return sh_fail(e, "attention statistics: key \"%s\": expected a whole number from 0 to %d", key,
                       SH_STATS_MAX_RECENT);
    *out = (int)x;
    return 0;
}

static int read_spec(json_t *root, struct sh_stats_spec *s, struct sh_err *e)
{
    json_t *alphas = list(root, "alphas", &s->n_alpha, e);
    json_t *recents = alphas ? list(root, "recents", &s->n_recent, e) : NULL;
    json_t *splits = recents ? list(root, "splits", &s->n_split, e) : NULL;
    if (!splits || whole(json_object_get(root, "window"), "window", &s->window, e))
        return -1;
    for (int i = 0; i < s->n_alpha; i++) {
        const char *name = json_string_value(json_array_get(alphas, (size_t)i));
        if (sh_alpha_parse(name ? name : "", &s->alpha[i], e))
            return sh_err_prefix(e, "attention statistics: key \"alphas\"");
    }
    for (int i = 0; i < s->n_recent; i++)
        if (whole(json_array_get(recents, (size_t)i), "recents", &s->recent[i], e))
            return -1;
    for (int i = 0; i < s->n_split; i++)
        s->split[i] = json_number_value(json_array_get(splits, (size_t)i));
    return sh_stats_spec_check(s, e);
}

int sh_stats_spec_parse(const char *text, struct sh_stats_spec *out, struct sh_err *e)
{
    json_error_t why;
    struct sh_stats_spec spec = {0};
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(root)) {
        json_decref(root);
        return sh_fail(e, "attention statistics: expected a JSON object: %s", why.text);
    }
    int bad = read_spec(root, &spec, e);
    json_decref(root);
    if (!bad)
        *out = spec;
    return bad;
}
