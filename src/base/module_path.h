/* SPDX-License-Identifier: Apache-2.0 */
/* Where modules are: shared objects NAME.so that are opened on demand. The search looks in
 *
 *     $SH_MODULE_DIR                    if that is set and not empty, and then nowhere else
 *     `beside` in the program's folder  for a program that runs from its build folder
 *     the folder of installed modules   $(pkglibdir)
 *
 * and never in the current folder. Relies on /proc/self/exe for the program's own folder. */
#ifndef SH_BASE_MODULE_PATH_H
#define SH_BASE_MODULE_PATH_H

enum { SH_PATH = 4096 };

/* 1 and the first existing file in path; 0 and the searched places in path, for a message, if there is none. A file
 * that cannot be examined counts as existing: opening it says why. */
int sh_module_find(const char *name, const char *beside, char path[SH_PATH]);

#endif
