/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

void sh_task_item_free(struct sh_task_item *item)
{
    for (int i = 0; i < SH_TASK_CHOICES; i++) {
        free(item->context[i]);
        free(item->choice[i]);
    }
    *item = (struct sh_task_item){0};
}

static int read_line(const struct sh_task *t, const char *text, size_t bytes, struct sh_task_item *item,
                     struct sh_err *e)
{
    json_error_t why;
    json_t *record = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    int bad;
    if (!record)
        bad = sh_fail(e, "not valid JSON: %s", why.text);
    else if (!json_is_object(record))
        bad = sh_fail(e, "expected a JSON object");
    else
        bad = sh_task_read(t, record, item, e);
    for (int i = 0; i < item->n && !bad; i++)
        if (!*item->context[i])
            bad = sh_fail(e, "the question is empty");
        else if (!*item->choice[i])
            bad = sh_fail(e, "choice %d is empty", i);
    json_decref(record);
    return bad ? -1 : 0;
}

int sh_task_load(const struct sh_task *t, const char *path, int most, struct sh_task_item **out, int *n,
                 struct sh_err *e)
{
    FILE *f = sh_stream_open(path, NULL);
    char *line = NULL;
    size_t cap = 0;
    ssize_t bytes;
    struct sh_task_item *all = NULL;
    int number = 0, count = 0, bad = 0;
    if (!f)
        return sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
    while (!bad && (!most || count < most) && (bytes = xgetline(&line, &cap, SH_MOST_TEXT, f)) >= 0) {
        number++;
        if (strspn(line, " \t\r\n") == (size_t)bytes)
            continue;
        if ((size_t)bytes > SH_MOST_TEXT) {
            bad = sh_fail(e, "%s: line %d is too long, expected at most %zu bytes", path, number, SH_MOST_TEXT);
            break;
        }
        all = xreallocarray(all, (size_t)count + 1, sizeof *all);
        all[count] = (struct sh_task_item){.line = number};
        size_t mark = number == 1 ? sh_utf8_mark(line, (size_t)bytes) : 0;
        if (read_line(t, line + mark, (size_t)bytes - mark, &all[count++], e))
            bad = sh_err_prefix(e, "%s: line %d", path, number);
    }
    if (!bad && ferror(f))
        bad = sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
    if (!bad && !count)
        bad = sh_fail(e, "%s: found no records, expected one JSON object per line", path);
    fclose(f);
    free(line);
    if (!bad) {
        *out = all;
        *n = count;
        return 0;
    }
    while (count)
        sh_task_item_free(&all[--count]);
    free(all);
    return -1;
}
