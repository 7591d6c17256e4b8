/* SPDX-License-Identifier: Apache-2.0 */
/* Results as an HTML fragment: single values as a definition list, lists as tables. All text is untrusted.
 * Numeric cells are marked so that the page can align and sort them, long texts so that it can wrap them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/out_tree.h"
#include "src/base/utf8.h"

enum { LONG = 40 };                     /* characters that one line of a cell holds               */

void sh_html_text(FILE *to, const char *text)
{
    for (int n, is_shown; *text; text += n) {
        n = sh_utf8_plain(text, &is_shown);
        if (!is_shown && *text != '\n')
            fputs("\xef\xbf\xbd", to);
        else if (*text == '&')
            fputs("&amp;", to);
        else if (*text == '<')
            fputs("&lt;", to);
        else if (*text == '>')
            fputs("&gt;", to);
        else if (*text == '"')
            fputs("&quot;", to);
        else if (*text == '\'')
            fputs("&#39;", to);
        else
            fwrite(text, 1, (size_t)n, to);
    }
}

/* Lines may end after a comma or a colon: policies and paths have no blanks. */
static void breakable(FILE *to, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, ",:");
        n += text[n] != '\0';
        char *part = xasprintf("%.*s", (int)n, text);
        sh_html_text(to, part);
        free(part);
        text += n;
        if (*text && *text != ' ')
            fputs("<wbr>", to);
    }
}

/* Long texts are written in full, not through the other writers' buffers. */
static void value(FILE *to, const struct sh_node *n)
{
    char buffer[512];
    if (n->kind == SH_NODE_TEXT) {
        breakable(to, n->text ? n->text : "-");
        return;
    }
    sh_node_cell(buffer, sizeof buffer, n, 0);
    sh_html_text(to, buffer);
}

static int is_number(const struct sh_node *n)
{
    return n->kind == SH_NODE_INT || n->kind == SH_NODE_REAL;
}

/* A column without any value is left out. */
static int is_empty(const struct sh_rows *r, int c)
{
    for (int i = 0; i < r->n_row; i++) {
        const struct sh_node *n = r->row[i][c];
        if (n->kind == SH_NODE_REAL ? isfinite(n->real) : n->kind != SH_NODE_TEXT || (n->text && *n->text))
            return 0;
    }
    return 1;
}

enum { SEVERAL = 3 };                   /* rows of which it is worth saying that they agree        */

/* Has the column one value in all of several rows? The first, which names and links a row, is always shown. */
static int is_same(const struct sh_rows *r, int c)
{
    char first[512], other[512];
    if (!c || r->n_row < SEVERAL)
        return 0;
    sh_node_cell(first, sizeof first, r->row[0][c], 0);
    for (int i = 1; i < r->n_row; i++) {
        sh_node_cell(other, sizeof other, r->row[i][c], 0);
        if (strcmp(first, other))
            return 0;
    }
    return 1;
}

/* What all rows have in common: a narrow page shows it in one line in place of these columns. */
static void in_common(FILE *to, const struct sh_rows *r)
{
    const char *separator = "<p class=\"caption common\">In all rows: ";
    for (int c = 0; c < r->n_col; c++)
        if (!is_empty(r, c) && is_same(r, c)) {
            fputs(separator, to);
            sh_html_text(to, r->row[0][c]->label);
            putc(' ', to);
            value(to, r->row[0][c]);
            separator = "; ";
        }
    fputs(*separator == ';' ? "</p>\n" : "", to);
}

/* Numbers are right-aligned; a text that would make its column too wide is wrapped. */
static const char *class_of(const struct sh_node *n)
{
    return is_number(n) ? "n" : n->kind == SH_NODE_TEXT && n->text && strlen(n->text) > LONG ? "long" : "";
}

/* "<th scope="col" class="n same">" */
static void open_cell(FILE *to, const char *tag, const char *is, int same)
{
    fprintf(to, "<%s", tag);
    if (*is || same)
        fprintf(to, " class=\"%s%s%s\"", is, *is && same ? " " : "", same ? "same" : "");
    putc('>', to);
}

static void cell(FILE *to, const struct sh_node *n, const char *link, int same)
{
    open_cell(to, "td", class_of(n), same);
    if (link) {
        fputs("<a href=\"", to);
        sh_html_text(to, link);
        fputs("\">", to);
    }
    value(to, n);
    fputs(link ? "</a></td>" : "</td>", to);
}

static void table(FILE *to, const char *caption, const struct sh_rows *r)
{
    int *same = xcalloc((size_t)r->n_col + 1, sizeof *same);
    for (int c = 0; c < r->n_col; c++)
        same[c] = is_same(r, c);
    if (caption && *caption) {          /* outside the scrolling box, so that it wraps on a narrow page */
        fputs("<p class=\"caption\">", to);
        sh_html_text(to, caption);
        fputs("</p>\n", to);
        in_common(to, r);
        fputs("<div class=\"scroll\"><table aria-label=\"", to);
        sh_html_text(to, caption);
        fputs("\">\n", to);
    } else {
        in_common(to, r);
        fputs("<div class=\"scroll\"><table>\n", to);
    }
    fputs("<thead><tr>", to);
    for (int c = 0; c < r->n_col; c++) {
        if (is_empty(r, c))
            continue;
        open_cell(to, "th scope=\"col\"", is_number(r->row[0][c]) ? "n" : "", same[c]);
        sh_html_text(to, r->row[0][c]->label);
        fputs("</th>", to);
    }
    fputs("</tr></thead>\n<tbody>\n", to);
    for (int i = 0; i < r->n_row; i++) {
        fputs("<tr>", to);
        for (int c = 0; c < r->n_col; c++)
            if (!is_empty(r, c))
                cell(to, r->row[i][c], c ? NULL : r->link[i], same[c]);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
    free(same);
}

/* The scalars before the first list. */
static void definitions(FILE *to, const struct sh_node *root)
{
    int n = sh_node_scalars(root, NULL);
    if (!n)
        return;
    const struct sh_node **scalar = xcalloc((size_t)n, sizeof *scalar);
    sh_node_scalars(root, scalar);
    fputs("<dl>\n", to);
    for (int i = 0; i < n; i++) {
        fputs("<div><dt>", to);
        sh_html_text(to, scalar[i]->label);
        fputs("</dt><dd>", to);
        value(to, scalar[i]);
        fputs("</dd></div>\n", to);
    }
    fputs("</dl>\n", to);
    free(scalar);
}

void sh_out_html(const struct sh_out *o, FILE *to)
{
    definitions(to, &o->root);
    for (int i = 0; i < o->root.n_child; i++) {
        if (o->root.child[i]->kind != SH_NODE_LIST)
            continue;
        struct sh_rows r = sh_rows_of(o->root.child[i], o->show);
        if (r.n_row)
            table(to, o->root.child[i]->label, &r);
        sh_rows_free(&r);
    }
    for (int i = 0; i < o->n_note; i++) {
        fputs("<p class=\"note\">", to);
        sh_html_text(to, o->note[i]);
        fputs("</p>\n", to);
    }
}
