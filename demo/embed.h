/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the demonstration, carried inside the program (embedded.S): the model, its tokenizer, a
 * text it never saw and recall documents. */
#ifndef SH_DEMO_EMBED_H
#define SH_DEMO_EMBED_H

struct sh_demo_file {
    const char *path;                   /* inside the demonstration's folder; NULL ends */
    const unsigned char *begin, *end;
};

extern const struct sh_demo_file sh_demo_files[];

#endif
