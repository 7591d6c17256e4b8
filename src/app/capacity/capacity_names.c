/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/capacity/capacity_names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/mem.h"
#include "src/model/config/config.h"
#include "src/model/files/map.h"

#define MOST_BYTES ((size_t)4 << 20)
#define MOST_LINES ((size_t)4096)       /* each is compared with all others; built-in ones have hundreds */

static void free_lines(char **lines)
{
    for (int i = 0; lines && lines[i]; i++)
        free(lines[i]);
    free(lines);
}

static char **read_lines(const char *path, struct sh_err *e)
{
    struct sh_map m;
    if (sh_map_open(&m, path, e))
        return NULL;
    if (m.bytes > MOST_BYTES) {
        sh_fail(e, "%s: found %zu bytes, expected a catalogue of at most %zu", path, m.bytes, MOST_BYTES);
        sh_map_close(&m);
        return NULL;
    }
    if (m.bytes && memchr(m.at, '\0', m.bytes)) {       /* it would hide the rest of its line */
        sh_fail(e, "%s: found a NUL byte, expected text", path);
        sh_map_close(&m);
        return NULL;
    }
    char **lines = xcalloc(1, sizeof *lines);
    size_t n = 0;
    for (const char *at = (const char *)m.at, *end = at + m.bytes; at && at < end && n <= MOST_LINES; n++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        lines = xreallocarray(lines, n + 2, sizeof *lines);
        lines[n] = xcalloc(len + 1, 1);
        memcpy(lines[n], at, len);
        lines[n + 1] = NULL;
        at += len + 1;
    }
    sh_map_close(&m);
    if (n <= MOST_LINES)
        return lines;
    free_lines(lines);
    return sh_fail_null(e, "%s: found more than %zu lines, the most that a catalogue may have", path, MOST_LINES);
}

/* Of two rows of one name the second would never be found. */
static int check_once(const struct sh_catalog *c, int i, const char *name, struct sh_err *e)
{
    char at[256], first[256];
    const char *row = sh_catalog_row(c, i, at);
    return sh_catalog_find(c, name, first) == row ? 0
                                                 : sh_fail(e, "%s: %s: found twice, before in %s", at, name, first);
}

static int check_rows(const struct sh_capacity_names *n, struct sh_err *e)
{
    struct sh_gpu b;
    int end = 0;
    for (int i = 0; n->own_gpus && !end; i++)
        if ((end = sh_capacity_board(n, NULL, i, &b, e)) < 0 || (!end && check_once(&n->gpus, i, b.name, e)))
            return -1;
    end = 0;
    for (int i = 0; n->own_models && !end; i++) {
        struct sh_kv_shape s = {.layer = NULL};
        end = sh_capacity_model(n, NULL, i, &s, e);
        int bad = end < 0 || (!end && check_once(&n->models, i, s.f.name, e));
        sh_kv_shape_clear(&s);
        if (bad)
            return -1;
    }
    return 0;
}

int sh_capacity_names_open(struct sh_capacity_names *n, const char *gpus, const char *models, struct sh_err *e)
{
    *n = (struct sh_capacity_names){.gpus = {.built_in = sh_catalog_gpus, .own_path = gpus},
                                    .models = {.built_in = sh_catalog_models, .own_path = models}};
    if (gpus && !(n->own_gpus = read_lines(gpus, e)))
        return gpus[strspn(gpus, "0123456789")]
                   ? -1 : sh_hint(e, "--gpus FILE is a catalogue of your own GPUs; for groups of %s, give --tp %s",
                                  gpus, gpus);
    if (models && !(n->own_models = read_lines(models, e)))
        return -1;
    n->gpus.own = (const char *const *)n->own_gpus;
    n->models.own = (const char *const *)n->own_models;
    return check_rows(n, e);
}

void sh_capacity_names_close(struct sh_capacity_names *n)
{
    free_lines(n->own_gpus);
    free_lines(n->own_models);
    n->own_gpus = n->own_models = NULL;
}

/* The row of a name that is not exactly a row's; NULL with the error if there is none, or several. */
static const char *spelled(const struct sh_catalog *c, const char *what, const char *name, const char *more,
                           char at[256], struct sh_err *e)
{
    char several[SH_CATALOG_SEVERAL];
    const char *row = sh_catalog_spelled(c, name, at, several);
    if (row)
        return row;
    if (*several) {
        sh_misused(e, "%s \"%.100s\": found several: %s", what, name, several);
        sh_hint(e, "name one of them");
        return NULL;
    }
    char *all = sh_catalog_names(c);
    sh_misused(e, "%s \"%.100s\" is not known", what, name);
    sh_hint_near(e, name, strlen(name), all, more);
    free(all);
    return NULL;
}

int sh_capacity_model(const struct sh_capacity_names *n, const char *name, int i, struct sh_kv_shape *out,
                      struct sh_err *e)
{
    char at[256];
    struct sh_kv_facts f;
    const char *row = name ? sh_catalog_find(&n->models, name, at) : sh_catalog_row(&n->models, i, at);
    if (!row && name && access(name, F_OK) &&
        !(row = spelled(&n->models, "model", name, "shears info models lists them; a folder with config.json, that "
                        "file or a .gguf file is accepted, too", at, e)))
        return -1;
    if (row && sh_kv_facts_row(row, at, &f, e))
        return -1;
    if (row)
        return sh_kv_shape_build(&f, out, e) ? sh_err_prefix(e, "%s", at) : 0;
    if (!name)
        return 1;
    if (sh_config_facts(name, &f, e))
        return -1;
    if (sh_kv_shape_build(&f, out, e))
        return sh_err_prefix(e, "%s", name);
    if (sh_capacity_stored(name, out, e)) {
        sh_kv_shape_clear(out);
        return -1;
    }
    return 0;
}

/* "2xH100" or "2 x H100": the hint says how a group is asked for. */
static void hint_group(const char *name, struct sh_err *e)
{
    char old[sizeof e->hint];
    size_t digits = strspn(name, "0123456789"), blank = strspn(name + digits, " ");
    const char *rest = name + digits + blank + 1;
    if (!digits || digits > 4 || !strchr("xX*", name[digits + blank]) || !name[digits + blank])
        return;
    snprintf(old, sizeof old, "%s", e->hint);
    rest += strspn(rest, " ");
    sh_hint(e, "for a group of %.*s, give --gpu %.60s --tp %.*s; %s", (int)digits, name, rest, (int)digits, name, old);
}

int sh_capacity_board(const struct sh_capacity_names *n, const char *name, int i, struct sh_gpu *out,
                      struct sh_err *e)
{
    char at[256];
    const char *row = name ? sh_catalog_find(&n->gpus, name, at) : sh_catalog_row(&n->gpus, i, at);
    if (!row && name && !(row = spelled(&n->gpus, "GPU", name, "shears info gpus lists them", at, e))) {
        hint_group(name, e);
        return -1;
    }
    return row ? sh_gpu_row(row, at, out, e) : 1;
}
