/* SPDX-License-Identifier: Apache-2.0 */
/* How figures should look, as it was typed: the options that every command that draws has. NULL and 0: not typed. */
#ifndef SH_APP_COMMON_PAGE_ARGS_H
#define SH_APP_COMMON_PAGE_ARGS_H

struct sh_page_args {
    const char *width, *height, *panels, *title, *font;
    double font_size;
    long long dpi;
    int no_title;
};

#endif
