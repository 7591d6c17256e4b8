/* SPDX-License-Identifier: Apache-2.0 */
/* Files: streams that resume interrupted calls, and outputs that are complete or absent.
 *
 *     struct sh_file *f = sh_file_begin("page.html", &e);
 *     if (!f) return -1;
 *     int bad = write_page(sh_file_stream(f), &e);
 *     return sh_file_end(f, bad, &e);
 *
 * An output is written to a temporary file next to it, its name with ".shears-new" appended, and renamed once it is
 * on disk; the previous file stays until then. If several programs write the same file, all but one are refused; the
 * file that a killed one left is taken over by the next. A path that exists and is not a regular file (a pipe, a
 * terminal) is written to directly. */
#ifndef SH_BASE_FILE_H
#define SH_BASE_FILE_H

#include <stdio.h>
#include <sys/stat.h>

#include "src/base/err.h"

#define SH_MOST_TEXT ((size_t)1 << 30)          /* bytes of a text, or of a line with one */

/* A stream over the descriptor, which is closed with it. It resumes reads and writes that a signal interrupts, as stdio
 * does not. `how` as for fopen, "r" or "w". NULL: errno says why, and the descriptor is closed. */
FILE *sh_stream_of(int fd, const char *how);

/* Standard output, a stream of sh_stream_of, could not be written: fills `e` with why (an errno, or 0: not known), or
 * with SH_UNREAD if its reader has gone, as `head` does. Returns -1. */
int sh_output_failed(const char *what, int why, struct sh_err *e);

/* A file for reading; *about, unless NULL, gets what fstat says of it. NULL: errno says why. */
FILE *sh_stream_open(const char *path, struct stat *about);

/* All bytes of a file, or of standard input, in a new array, with a zero after them; NULL and the reason in `e` when it
 * cannot be read or has more than `most`. */
char *sh_file_read(const char *path, size_t most, size_t *bytes, struct sh_err *e);
char *sh_input_read(size_t most, size_t *bytes, struct sh_err *e);

/* A temporary file in that folder, for reading and writing, which has no name, so that a kill at any moment leaves
 * none; where the file system has no such files, one that loses its name at once. -1 and errno. */
int sh_file_nameless(const char *folder);

/* Writes all bytes, in as many calls as it takes; -1 and errno. */
int sh_write_all(int fd, const void *from, size_t bytes);

struct sh_file;

/* On failure NULL and the reason in `e`, and no file is left. */
struct sh_file *sh_file_begin(const char *path, struct sh_err *e);

FILE *sh_file_stream(struct sh_file *f);        /* ends with the file                                */
int sh_file_fd(const struct sh_file *f);        /* descriptor for a child process that writes past the stream */

/* Ends an output: if it is bad (incomplete), no file is left; else the file gets its name. Returns `bad`, or -1 if the
 * file could not be written. f may be NULL. */
int sh_file_end(struct sh_file *f, int bad, struct sh_err *e);

/* ---- modules (module_path.c) ---- */

/* Where modules are: shared objects NAME.so that are opened on demand. The search looks in
 *
 *     $SH_MODULE_DIR                    if that is set and not empty, and then nowhere else
 *     `in_build` in the program's folder  for a program that runs from its build folder
 *     the folder of installed modules   for a program that runs from its installation: at the place that $(pkglibdir)
 *                                       has relative to $(bindir), wherever the installation is now
 *     $(pkglibdir)
 *
 * and never in the current folder. Relies on /proc/self/exe for the program's own folder. */

enum { SH_PATH = 4096 };

/* 1 and the first existing file in path; 0 and the searched places in path, for a message, if there is none. A file
 * that cannot be examined counts as existing: opening it says why. */
int sh_module_find(const char *name, const char *in_build, char path[SH_PATH]);

#endif
