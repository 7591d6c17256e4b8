/* SPDX-License-Identifier: Apache-2.0 */
/* Where modules are: a shared object NAME.so that is opened when it is asked for. It is looked for in
 *
 *     $SH_MODULE_DIR                    if that is set and not empty, and then nowhere else
 *     `beside` beside the program       a program that runs from its build folder
 *     the folder of installed modules   $(pkglibdir)
 *
 * and never in the current folder. Relies on /proc/self/exe for the program's own folder. */
#ifndef SH_BASE_MODULE_PATH_H
#define SH_BASE_MODULE_PATH_H

enum { SH_PATH = 4096 };

/* The first file that is there, in path: 1. None: 0, and path says where was looked, for a message.
 * What cannot even be looked at counts as there: opening it says why. */
int sh_module_find(const char *name, const char *beside, char path[SH_PATH]);

#endif
