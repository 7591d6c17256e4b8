/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a task's record. Every reader gives -1 with the field's name when it is not what it must
 * be. Texts hold no NUL: the JSON reader refuses it. */
#ifndef SH_ENGINE_TASK_FIELDS_H
#define SH_ENGINE_TASK_FIELDS_H

#include "src/engine/task.h"

int sh_task_text(const json_t *record, const char *field, const char **out, struct sh_err *e);

/* A whole number, or one as text, in [first, first + n); *out counts from 0. */
int sh_task_index(const json_t *record, const char *field, int first, int n, int *out, struct sh_err *e);

/* One more choice; both are formatted here and owned by the item. -1: there are too many. */
int sh_task_add(struct sh_task_item *item, char *context, char *choice, struct sh_err *e);

/* The ready-made shape: "query", whose trailing white space is cut, then `behind`; "choices", "gold". */
int sh_task_is_ready(const json_t *record);
int sh_task_ready(const json_t *record, const char *behind, struct sh_task_item *out, struct sh_err *e);

/* choices {text, label} with answerKey among the labels. */
int sh_task_labelled(const json_t *record, const char *question, struct sh_task_item *out, struct sh_err *e);

/* Bytes of `text` without the white space at its end. */
int sh_task_trimmed(const char *text);

#endif
