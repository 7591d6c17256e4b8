/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that results were measured on: their names, and the choice among several. */
#ifndef SH_APP_STORE_MEASURED_H
#define SH_APP_STORE_MEASURED_H

#include "src/base/out.h"
#include "traces/store.h"

/* Adds a text, ids[n], whose source is "book.txt:3". Start with {0}. Ids that are not known (-1) give no hash. */
void sh_measured_add(struct sh_measured *m, const char *source, const int32_t *ids, int n);

/* Adds a file to the name alone: its last part, once. */
void sh_measured_name(struct sh_measured *m, const char *path);

/* "text" and "text_hash" of an item or a result; NULL where not known. */
void sh_measured_write(const struct sh_measured *m, struct sh_out *o);

/* The sequences of runs, [n_run], in order. */
int sh_measured_runs(struct sh_measured *m, struct sh_store *s, const struct sh_stored_run *run, int n_run,
                     struct sh_err *e);

/* Are they the same texts? Where one has neither name nor hash, numbers of texts and tokens decide. */
int sh_measured_same(const struct sh_measured *a, const struct sh_measured *b);

/* ---- several ---- */

struct sh_texts_met {                   /* each once; start with {0}, free at                     */
    const struct sh_measured **at;      /* [n], borrowed                                          */
    int n;
};

void sh_texts_meet(struct sh_texts_met *t, const struct sh_measured *m);

/* "book.txt"; where another text has that name, "book.txt (12 texts, 6144 tokens)", or with a hash too. "unknown"
 * without a name. For free(). */
char *sh_text_label(const struct sh_texts_met *t, const struct sh_measured *m);

/* Is it the text that is asked for by name, label or the beginning of its hash? */
int sh_text_answers(const struct sh_measured *m, const char *asked);

/* The text of that name, label or hash; asked NULL: the only one. NULL: it is not there, or several are; e lists the
 * texts and names the option. t->n > 0; of: where they are from, "traces.db". */
const struct sh_measured *sh_text_choose(const struct sh_texts_met *t, const char *asked, const char *of,
                                         struct sh_err *e);

#endif
