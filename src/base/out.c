/* SPDX-License-Identifier: Apache-2.0 */
/* See out.h. The description is a small tree: an object holds fields, a list holds objects. */
#include "src/base/out.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/out_tree.h"
#include "src/base/utf8.h"

struct sh_out *sh_out_new(void)
{
    struct sh_out *o = xcalloc(1, sizeof *o);
    o->root.kind = SH_NODE_OBJECT;
    o->open[0] = &o->root;
    return o;
}

static void clear(struct sh_node *n)
{
    for (int i = 0; i < n->n_child; i++) {
        clear(n->child[i]);
        free(n->child[i]);
    }
    free(n->child);
    free(n->key);
    free(n->label);
    free(n->text);
    free(n->shown);
    free(n->link);
}

void sh_out_free(struct sh_out *o)
{
    if (!o)
        return;
    clear(&o->root);
    for (int i = 0; i < o->n_note; i++)
        free(o->note[i]);
    free(o->note);
    free(o->show);
    free(o->columns);
    free(o);
}

static struct sh_node *add(struct sh_out *o, enum sh_node_kind kind, const char *key, const char *label)
{
    struct sh_node *parent = o->open[o->depth], *n = xcalloc(1, sizeof *n);
    n->kind = kind;
    n->key = key ? xstrdup(key) : NULL;
    n->label = label ? xstrdup(label) : NULL;
    n->group = parent->kind == SH_NODE_OBJECT && parent->key ? parent : NULL;
    parent->child = xreallocarray(parent->child, (size_t)parent->n_child + 1, sizeof *parent->child);
    parent->child[parent->n_child++] = n;
    return n;
}

void sh_out_int(struct sh_out *o, const char *key, const char *label, long long value)
{
    add(o, SH_NODE_INT, key, label)->whole = value;
}

void sh_out_real(struct sh_out *o, const char *key, const char *label, double value, int digits)
{
    struct sh_node *n = add(o, SH_NODE_REAL, key, label);
    n->real = value;
    n->digits = digits;
}

void sh_out_text(struct sh_out *o, const char *key, const char *label, const char *value)
{
    add(o, SH_NODE_TEXT, key, label)->text = value ? xstrdup(value) : NULL;
}

void sh_out_bool(struct sh_out *o, const char *key, const char *label, int value)
{
    add(o, SH_NODE_BOOL, key, label)->whole = !!value;
}

void sh_out_list(struct sh_out *o, const char *key, const char *label)
{
    struct sh_node *n = add(o, SH_NODE_LIST, key, label);
    o->open[++o->depth] = n;
}

void sh_out_item(struct sh_out *o)
{
    if (o->open[o->depth]->kind == SH_NODE_OBJECT)
        o->depth--;
    struct sh_node *n = add(o, SH_NODE_OBJECT, NULL, NULL);
    o->open[++o->depth] = n;
}

void sh_out_detail(struct sh_out *o)
{
    const struct sh_node *n = o->open[o->depth];
    n->child[n->n_child - 1]->is_detail = 1;
}

void sh_out_shown(struct sh_out *o, const char *text)
{
    struct sh_node *n = o->open[o->depth]->child[o->open[o->depth]->n_child - 1];
    free(n->shown);
    n->shown = xstrdup(text);
}

void sh_out_compact(struct sh_out *o)
{
    o->open[o->depth]->is_compact = 1;
}

void sh_out_link(struct sh_out *o, const char *address)
{
    struct sh_node *n = o->open[o->depth];
    free(n->link);
    n->link = xstrdup(address);
}

void sh_out_end(struct sh_out *o)
{
    if (o->open[o->depth]->kind == SH_NODE_OBJECT)
        o->depth--;
    o->depth--;
}

void sh_out_group(struct sh_out *o, const char *key)
{
    struct sh_node *n = add(o, SH_NODE_OBJECT, key, NULL);
    o->open[++o->depth] = n;
}

void sh_out_group_end(struct sh_out *o)
{
    o->depth--;
}

void sh_out_show(struct sh_out *o, const char *key)
{
    free(o->show);
    o->show = xstrdup(key);
}

void sh_out_note(struct sh_out *o, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    o->note = xreallocarray(o->note, (size_t)o->n_note + 1, sizeof *o->note);
    o->note[o->n_note++] = xstrdup(text);
}

/* ---- JSON ---- */

/* Names come from file systems and untrusted files: invalid UTF-8 becomes U+FFFD. */
static void json_string(FILE *to, const char *s)
{
    fputc('"', to);
    for (int n; *s; s += n ? n : 1) {
        unsigned char c = (unsigned char)*s;
        n = sh_utf8_bytes(s);
        if (!n)
            fputs("\\ufffd", to);
        else if (n > 1)
            fwrite(s, 1, (size_t)n, to);
        else if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", to);
        else if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

static void shortest(char *buffer, size_t bytes, double x)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, bytes, "%.*g", digits, x);
        if (strtod(buffer, NULL) == x)
            break;
    }
    if (!strpbrk(buffer, ".e"))
        strncat(buffer, ".0", bytes - strlen(buffer) - 1);
}

/* A line break with this indentation; below 0: everything is on one line. */
static void json_break(FILE *to, int first, int indent)
{
    if (indent >= 0)
        fprintf(to, "\n%*s", indent, "");
    else if (!first)
        fputc(' ', to);
}

static void json_value(FILE *to, const struct sh_node *n, int indent)
{
    int within = n->is_compact || indent < 0 ? -1 : indent + 1;
    char number[40];
    switch (n->kind) {
    case SH_NODE_INT: fprintf(to, "%lld", n->whole); break;
    case SH_NODE_BOOL: fputs(n->whole ? "true" : "false", to); break;
    case SH_NODE_TEXT:
        if (n->text)
            json_string(to, n->text);
        else
            fputs("null", to);
        break;
    case SH_NODE_REAL:
        if (isfinite(n->real))
            shortest(number, sizeof number, n->real);
        fputs(isfinite(n->real) ? number : "null", to);
        break;
    case SH_NODE_LIST:
    case SH_NODE_OBJECT:
        fputc(n->kind == SH_NODE_LIST ? '[' : '{', to);
        for (int i = 0; i < n->n_child; i++) {
            fputs(i ? "," : "", to);
            json_break(to, !i, within);
            if (n->kind == SH_NODE_OBJECT) {
                json_string(to, n->child[i]->key);
                fputs(": ", to);
            }
            json_value(to, n->child[i], within);
        }
        if (n->n_child && within >= 0)
            json_break(to, 1, indent);
        fputc(n->kind == SH_NODE_LIST ? ']' : '}', to);
        break;
    }
}

/* ---- tables: text and CSV ---- */

/* Names come from untrusted files: terminal control characters are replaced. */
static void text_cell(char *buffer, size_t bytes, const char *text, int csv)
{
    snprintf(buffer, bytes, "%s", text);
    char *to = buffer;
    for (const char *from = buffer; *from && !csv;) {
        int is_shown, n = sh_utf8_plain(from, &is_shown);
        if (!is_shown)
            *to++ = '?';
        for (int i = 0; i < n && is_shown; i++)
            *to++ = from[i];
        from += n;
    }
    if (!csv)
        *to = '\0';
}

void sh_node_cell(char *buffer, size_t bytes, const struct sh_node *n, int csv)
{
    if (n->kind == SH_NODE_INT)
        snprintf(buffer, bytes, "%lld", n->whole);
    else if (n->kind == SH_NODE_BOOL)
        snprintf(buffer, bytes, "%s", n->whole ? "yes" : "no");
    else if (n->kind == SH_NODE_TEXT)
        text_cell(buffer, bytes, n->text ? n->text : csv ? "" : "-", csv);
    else if (!isfinite(n->real))
        snprintf(buffer, bytes, "%s", csv ? "" : "-");
    else if (csv)
        shortest(buffer, bytes, n->real);
    else
        snprintf(buffer, bytes, "%.*f", n->digits, n->real);
}

static void csv_field(FILE *to, const char *s, int first)
{
    if (!first)
        fputc(',', to);
    if (!strpbrk(s, ",\"\n\r")) {
        fputs(s, to);
        return;
    }
    fputc('"', to);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', to);
        fputc(*s, to);
    }
    fputc('"', to);
}

int sh_node_scalars(const struct sh_node *object, const struct sh_node **to)
{
    int n = 0;
    for (int i = 0; i < object->n_child; i++) {
        const struct sh_node *c = object->child[i];
        if (c->kind == SH_NODE_OBJECT)
            n += sh_node_scalars(c, to ? to + n : NULL);
        else if (c->kind != SH_NODE_LIST) {
            if (to)
                to[n] = c;
            n++;
        }
    }
    return n;
}

static void add_row(struct sh_rows *r, const struct sh_node *lead, const struct sh_node *item)
{
    const struct sh_node **cells = xcalloc((size_t)sh_node_scalars(item, NULL) + 1, sizeof *cells);
    int n = 0;
    if (lead)
        cells[n++] = lead;
    n += sh_node_scalars(item, cells + n);
    r->row = xreallocarray(r->row, (size_t)r->n_row + 1, sizeof *r->row);
    r->link = xreallocarray(r->link, (size_t)r->n_row + 1, sizeof *r->link);
    r->link[r->n_row] = item->link;
    r->row[r->n_row++] = cells;
    if (!r->n_col || n < r->n_col)
        r->n_col = n;
}

struct sh_rows sh_rows_of(const struct sh_node *list, const char *show)
{
    struct sh_rows r = {0};
    for (int i = 0; i < list->n_child; i++) {
        const struct sh_node *item = list->child[i], *inner = NULL;
        for (int j = 0; show && j < item->n_child; j++)
            if (item->child[j]->kind == SH_NODE_LIST && !strcmp(item->child[j]->key, show))
                inner = item->child[j];
        if (!inner)
            add_row(&r, NULL, item);
        for (int j = 0; inner && j < inner->n_child; j++)
            add_row(&r, item->child[0], inner->child[j]);
    }
    return r;
}

void sh_rows_free(struct sh_rows *r)
{
    for (int i = 0; i < r->n_row; i++)
        free(r->row[i]);
    free(r->row);
    free(r->link);
    *r = (struct sh_rows){0};
}

/* Terminal columns of a UTF-8 string, approximately: one per code point. */
static int width_of(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void drop_details(struct sh_rows *r)
{
    int n = 0;
    for (int c = 0; r->n_row && c < r->n_col; c++) {
        if (r->row[0][c]->is_detail)
            continue;
        for (int i = 0; i < r->n_row; i++)
            r->row[i][n] = r->row[i][c];
        n++;
    }
    r->n_col = n;
}

enum { TERMINAL = 120 };                /* columns                                                */

/* The last cell of a row, broken at spaces to end within a terminal; later lines begin at column `at` as well. */
static void last_cell(FILE *to, const char *s, int at)
{
    enum { LEAST = 24 };                /* columns of a cell worth breaking                       */
    int room = TERMINAL - at;
    while (room >= LEAST && width_of(s) > room) {
        const char *end = NULL;
        for (int i = 0, n = 0; s[i] && n <= room; i++) {
            n += ((unsigned char)s[i] & 0xc0) != 0x80;
            if (s[i] == ' ')
                end = s + i;
        }
        if (!end)
            end = strchr(s, ' ');
        if (!end)
            break;
        fprintf(to, "%.*s\n%*s", (int)(end - s), s, at, "");
        s = end + 1;
    }
    fputs(s, to);
}

/* What is shown of a first cell: up to the last comma that fits on a line, with the rest on further lines. */
static int first_line(const char *s)
{
    enum { LONGEST = 28 };
    int n = (int)strcspn(s, ","), all = (int)strlen(s);
    if (all <= LONGEST || n == all)
        return all;
    for (int next = n; next < LONGEST && s[next]; next += 1 + (int)strcspn(s + next + 1, ","))
        n = next;
    return n + 1;
}

static void brief_cell(char *buffer, size_t bytes, const struct sh_node *n, int is_brief)
{
    if (is_brief && n->shown)
        text_cell(buffer, bytes, n->shown, 0);
    else
        sh_node_cell(buffer, bytes, n, 0);
}

static int *widths_of(const struct sh_rows *r, int is_brief)
{
    char buffer[512];
    int *width = xcalloc((size_t)r->n_col + 1, sizeof *width);
    for (int c = 0; c < r->n_col; c++) {
        width[c] = width_of(r->row[0][c]->label);
        for (int i = 0; i < r->n_row; i++) {
            brief_cell(buffer, sizeof buffer, r->row[i][c], is_brief);
            for (char *s = buffer, *end = s; *s; s = end) {
                end = c || !is_brief || !r->row[i][c]->shown ? s + strlen(s) : s + first_line(s);
                char kept = *end;
                *end = '\0';
                width[c] = width_of(s) > width[c] ? width_of(s) : width[c];
                *end = kept;
            }
        }
    }
    return width;
}

static void text_table(FILE *to, const struct sh_rows *r, int is_brief)
{
    char buffer[512], first[512];
    int *width = widths_of(r, is_brief);
    for (int i = -1; i < r->n_row; i++) {
        const char *rest = "";
        for (int c = 0, at = 2; c < r->n_col; at += width[c++] + 2) {
            const struct sh_node *n = r->row[i < 0 ? 0 : i][c];
            const char *s = n->label;
            if (i >= 0) {
                brief_cell(buffer, sizeof buffer, n, is_brief);
                s = buffer;
            }
            if (i >= 0 && !c && is_brief && n->shown) {
                snprintf(first, sizeof first, "%s", buffer);
                buffer[first_line(first)] = '\0';
                rest = first + strlen(buffer);
            }
            int pad = width[c] - width_of(s), left = r->row[0][c]->kind == SH_NODE_TEXT;
            int last = c + 1 == r->n_col;
            fprintf(to, "  %*s", left ? 0 : pad, "");
            if (last && left)
                last_cell(to, s, at);
            else
                fprintf(to, "%s%*s", s, left ? pad : 0, "");
        }
        fputc('\n', to);
        for (; *rest; rest += first_line(rest))
            fprintf(to, "    %.*s\n", first_line(rest), rest);
    }
    free(width);
}

/* As a last cell, unless it has lines of its own, or options of a command, which is to be copied. */
static void put_wrapped(FILE *to, const char *text, int at)
{
    if (strstr(text, " --") || strchr(text, '\n'))
        fputs(text, to);
    else
        last_cell(to, text, at);
}

static void write_text(const struct sh_out *o, FILE *to)
{
    char buffer[1024];
    int width = 0, shown = 0, n_scalar = sh_node_scalars(&o->root, NULL);
    const struct sh_node **scalar = xcalloc((size_t)n_scalar + 1, sizeof *scalar);
    sh_node_scalars(&o->root, scalar);
    for (int i = 0; i < n_scalar; i++)
        if (sh_out_shows(o, scalar[i]))
            width = width_of(scalar[i]->label) > width ? width_of(scalar[i]->label) : width;
    for (int i = 0, k = 0; i < o->root.n_child; i++) {
        const struct sh_node *n = o->root.child[i];
        int is_list = n->kind == SH_NODE_LIST, own = n->kind == SH_NODE_OBJECT ? sh_node_scalars(n, NULL) : 1;
        for (int end = k + (is_list ? 0 : own); k < end; k++) {
            if (!sh_out_shows(o, scalar[k]))
                continue;
            brief_cell(buffer, sizeof buffer, scalar[k], 1);
            shown++;
            fprintf(to, "%s%*s  ", scalar[k]->label, width - width_of(scalar[k]->label), "");
            put_wrapped(to, buffer, o->columns ? TERMINAL : width + 2);
            fputc('\n', to);
        }
        if (n->kind != SH_NODE_LIST)
            continue;
        struct sh_rows r = sh_out_rows(o, n);
        if (r.n_row) {
            if (!o->columns)
                drop_details(&r);
            fprintf(to, "%s%s\n", shown++ ? "\n" : "", n->label);
            text_table(to, &r, !o->columns);
        }
        sh_rows_free(&r);
    }
    free(scalar);
    for (int i = 0; i < o->n_note && !o->columns; i++) {
        fputs(i ? "" : "\n", to);
        put_wrapped(to, o->note[i], 0);
        fputc('\n', to);
    }
}

/* CSV has one header line, so it shows the first list; without a list, the scalars as one row. */
static void write_csv(const struct sh_out *o, FILE *to)
{
    char buffer[4096];
    struct sh_rows r = {0};
    for (int i = 0; i < o->root.n_child && !r.n_col; i++)
        if (o->root.child[i]->kind == SH_NODE_LIST) {
            sh_rows_free(&r);
            r = sh_out_rows(o, o->root.child[i]);
        }
    if (!r.n_col) {
        sh_rows_free(&r);
        add_row(&r, NULL, &o->root);
        if (o->columns)
            sh_rows_pick(&r, o->columns);
    }
    for (int i = -1; i < r.n_row; i++) {
        for (int c = 0; c < r.n_col; c++) {
            const struct sh_node *n = r.row[i < 0 ? 0 : i][c];
            if (i < 0)
                sh_node_name(n, buffer);
            else
                sh_node_cell(buffer, sizeof buffer, n, 1);
            csv_field(to, buffer, c == 0);
        }
        fputc('\n', to);
    }
    sh_rows_free(&r);
}

int sh_out_write(const struct sh_out *o, enum sh_out_format format, FILE *to, struct sh_err *e)
{
    if (format != SH_OUT_JSON && sh_out_check_columns(o, e))
        return -1;
    if (format == SH_OUT_JSON) {
        json_value(to, &o->root, 0);
        fputc('\n', to);
    } else if (format == SH_OUT_CSV) {
        write_csv(o, to);
    } else if (format == SH_OUT_HTML) {
        sh_out_html(o, to);
    } else {
        write_text(o, to);
    }
    int why = fflush(to) ? errno : 0;
    if (why || ferror(to))
        return sh_output_failed("the result ", why, e);
    return 0;
}

/* ---- times ---- */

struct sh_time_unit sh_time_unit(const double *seconds, int n)
{
    static const struct sh_time_unit units[] = {
        {"s", "seconds", 1, 3}, {"ms", "milliseconds", 1e3, 3}, {"µs", "microseconds", 1e6, 3},
        {"ns", "nanoseconds", 1e9, 3}};
    double least = INFINITY, most = 0;
    for (int i = 0; i < n; i++)
        if (seconds[i] > 0 && isfinite(seconds[i])) {
            least = fmin(least, seconds[i]);
            most = fmax(most, seconds[i]);
        }
    size_t at = 0;
    while (at + 1 < sizeof units / sizeof *units && most > 0 && most * units[at].per_s < 1)
        at++;
    struct sh_time_unit u = units[at];
    if (most > 0)                       /* 0.0512: 4 digits, 51.2: 1 */
        u.digits = (int)fmin(fmax(2 - floor(log10(least * u.per_s)), 0), 6);
    return u;
}
