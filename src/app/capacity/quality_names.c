/* SPDX-License-Identifier: Apache-2.0 */
/* Names of measured budgets (capacity_quality.h): points with the same name are on one line of a figure, so a name
 * contains all settings that differ among them. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/policy_label.h"
#include "src/base/mem.h"
#include "src/app/capacity/capacity_quality.h"

/* Settings that the name says anyway, that only count the texts, and the bits, which are chosen before. */
static int is_known(const char *key, int bits)
{
    static const char *const known[] = {"policy", "knobs", "budget", "model", "kv_bits", "tokens", "layers_done"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(key, known[i]))
            return 1;
    return bits >= 16 && !strcmp(key, "group");
}

void sh_quality_settings(const json_t *settings, int bits, char *to, size_t bytes)
{
    const char *key;
    json_t *value;
    size_t used = 0;
    *to = '\0';
    json_object_foreach((json_t *)settings, key, value) {
        char *text = json_is_string(value) ? xstrdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        size_t n = strlen(key) + (text ? strlen(text) : 0) + 2;
        if (text && !is_known(key, bits) && used + n < bytes)
            used += (size_t)snprintf(to + used, bytes - used, "%s=%s\n", key, text);
        free(text);
    }
}

/* Is the line, which ends with a newline, one of the settings? */
static int has_line(const char *settings, const char *line)
{
    const char *at = strstr(settings, line);
    while (at && at != settings && at[-1] != '\n')
        at = strstr(at + 1, line);
    return at != NULL;
}

static int is_common(const struct sh_quality_point *const *all, int n, const char *line)
{
    for (int i = 0; i < n; i++)
        if (!has_line(all[i]->settings, line))
            return 0;
    return 1;
}

/* "prefill=64\n" as ", prefill 64"; of a hash the first digits. */
static void say(FILE *to, const char *line)
{
    size_t key = strcspn(line, "="), value = strcspn(line + key + 1, "\n");
    int is_hash = !strncmp(line, "texts=", 6) && value > 6;
    fputs(", ", to);
    for (size_t i = 0; i < key; i++)
        putc(line[i] == '_' ? ' ' : line[i], to);
    fprintf(to, " %.*s", is_hash ? 6 : (int)value, line + key + 1);
}

char *sh_quality_policy(const struct sh_quality_point *p)
{
    int is_bound;
    char *whole = xasprintf("%s%s%s", p->policy, *p->knobs ? ":" : "", p->knobs),
         *label = sh_policy_label(whole, &is_bound);
    free(whole);
    return label;
}

char *sh_quality_name(const struct sh_quality_point *const *all, int n, const struct sh_quality_point *p)
{
    char *name, *policy = sh_quality_policy(p), line[SH_QUALITY_SETTINGS];
    size_t bytes;
    FILE *to = xmemstream(&name, &bytes);
    fputs(policy, to);
    free(policy);
    for (const char *at = p->settings; *at; at += strlen(line)) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n") + 1, at);
        if (!is_common(all, n, line))
            say(to, line);
    }
    xmemclose(to, &name, &bytes);
    return name;
}
