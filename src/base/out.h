/* SPDX-License-Identifier: Apache-2.0 */
/* One writer for results. A command describes its result once, as named values and lists of items;
 * the text tables, --json, --csv and the tables of a page are renderings of that description, so they cannot drift.
 *
 *     struct sh_out *o = sh_out_new();
 *     sh_out_text(o, "model", "model", name);
 *     sh_out_list(o, "layers", "persistence per layer");
 *         sh_out_item(o);
 *         sh_out_int(o, "layer", "layer", 0);
 *         sh_out_real(o, "ratio", "ratio", 0.97, 4);
 *     sh_out_end(o);
 *     sh_out_write(o, SH_OUT_TEXT, stdout, &e);
 *     sh_out_free(o);
 *
 * Keys are the JSON names: they carry units and stay stable. Labels are the text headings.
 * Strings are copied. Real numbers that are not finite are written as null (JSON), an empty field
 * (CSV) or "-" (text). JSON reals are the shortest digits that read back as the same double. */
#ifndef SH_BASE_OUT_H
#define SH_BASE_OUT_H

#include <stdio.h>

#include "src/base/err.h"

enum sh_out_format { SH_OUT_TEXT, SH_OUT_JSON, SH_OUT_CSV, SH_OUT_HTML };

struct sh_out;

struct sh_out *sh_out_new(void);
void sh_out_free(struct sh_out *o);                     /* NULL is fine */

void sh_out_int(struct sh_out *o, const char *key, const char *label, long long value);
void sh_out_real(struct sh_out *o, const char *key, const char *label, double value, int digits);
void sh_out_text(struct sh_out *o, const char *key, const char *label, const char *value); /* NULL: null */
void sh_out_bool(struct sh_out *o, const char *key, const char *label, int value);

/* A list of items at the top level or inside an item. Between list and end, each item begins with
 * sh_out_item. Text and CSV show the lists of the top level; a list inside an item only when it is
 * named by sh_out_show, and then in place of its parent: one row per inner item, with the parent's
 * first value in front. */
void sh_out_list(struct sh_out *o, const char *key, const char *label);
void sh_out_item(struct sh_out *o);
void sh_out_end(struct sh_out *o);
void sh_out_show(struct sh_out *o, const char *key);

/* An object inside the open one: "ttft_s": {"p50": …, "p99": …}. In tables its values are columns like the
 * others, with their own labels, and with keys like ttft_s.p50 in CSV. Groups do not hold lists. */
void sh_out_group(struct sh_out *o, const char *key);
void sh_out_group_end(struct sh_out *o);

/* Where the open item's row leads to, "#figure": its first cell is a link in HTML, and that is all. */
void sh_out_link(struct sh_out *o, const char *address);

/* Text and CSV then show only these: "policy,budget,ttft_s.p50", keys with commas, of the tables that have most of
 * them; single values that no such table has, or all that are asked for where all are single values. JSON always has
 * everything. NULL: all, as at first. */
void sh_out_columns(struct sh_out *o, const char *columns);

/* A remark under the text output and the page's tables; absent from JSON and CSV. */
void sh_out_note(struct sh_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Foreign text into a page, between tags or inside a quoted attribute. Control characters, marks that turn the
 * direction of writing and what is not UTF-8 become U+FFFD. */
void sh_html_text(FILE *to, const char *text);

/* Writes everything (HTML: as a fragment of a page, <dl> and <table>); -1 if a column was named that
 * is not there, or the stream reports an error (a full disk, a closed pipe). */
int sh_out_write(const struct sh_out *o, enum sh_out_format format, FILE *to, struct sh_err *e);

#endif
