/* SPDX-License-Identifier: Apache-2.0 */
/* One writer for results. A command describes its result once, as named values and lists of items;
 * text tables, --json, --csv and the tables of the HTML report are renderings of that description, so they agree.
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

/* JSON writes the open list, of short items, on one line. */
void sh_out_compact(struct sh_out *o);

/* An object inside the open one: "ttft_s": {"p50": …, "p99": …}. In tables its values are columns like the
 * others, with their own labels, and with keys like ttft_s.p50 in CSV. Groups do not hold lists. */
void sh_out_group(struct sh_out *o, const char *key);
void sh_out_group_end(struct sh_out *o);

/* The value just added is a detail: text tables show its column only if sh_out_columns names it. For wide tables, which
 * should fit a terminal of 120 columns. */
void sh_out_detail(struct sh_out *o);

/* Text shows this in place of the value just added, unless columns are named: "h2o:recent=4" for "h2o". A long one in
 * the first column of a table continues on further lines, after a comma. */
void sh_out_shown(struct sh_out *o, const char *text);

/* Links the first cell of the open item's row to "#figure"; HTML only. */
void sh_out_link(struct sh_out *o, const char *address);

/* Called when the description is complete. Text and CSV then show only these columns, by their names
 * "policy,budget,ttft_s.p50" or else the headings of text tables in any case, "policy,TTFT p50, s", of the tables that
 * have most of them, and single values that no such table has; if all names are single values, just those. JSON always
 * has everything. NULL (the default): all. */
void sh_out_columns(struct sh_out *o, const char *columns);

/* -1: one of these is in nothing that was described, as sh_out_write would say; for a command that takes long. */
int sh_out_check_columns(const struct sh_out *o, struct sh_err *e);

/* A remark under the text output and the page's tables; absent from JSON and CSV. */
void sh_out_note(struct sh_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes untrusted text into HTML, between tags or in a quoted attribute. Control characters, marks that change the
 * writing direction, and invalid UTF-8 become U+FFFD. */
void sh_html_text(FILE *to, const char *text);

/* Writes everything (HTML: as a fragment with <dl> and <table>). -1 if a named column does not exist, or on a write
 * error (a full disk, a closed pipe). */
int sh_out_write(const struct sh_out *o, enum sh_out_format format, FILE *to, struct sh_err *e);

/* ---- times ---- */

/* The unit and digits in which times are shown to people: the step of a tiny model takes microseconds, a queue minutes.
 * Results for programs keep seconds. */

struct sh_time_unit {
    const char *name, *whole;           /* "ms", "milliseconds"                                   */
    double per_s;
    int digits;                         /* after the point, so that the smallest shows three       */
};

/* One unit for n times: the one in which the largest is at least 1. Times that are not positive are ignored. */
struct sh_time_unit sh_time_unit(const double *seconds, int n);

#endif
