/* SPDX-License-Identifier: Apache-2.0 */
/* Where backends come from. "cpu" is part of the program; any other is a module: a shared object NAME.so with one
 * exported struct sh_backend (SH_BACKEND_SYMBOL), which imports nothing from the program. The first one found in the
 * places of src/base/file.h (in a build: kernels/) counts. A module is loaded once, when its name is asked for, and
 * never unloaded, because its runtime would not survive that. One thread at a time. */
#ifndef SH_KERNELS_LOAD_H
#define SH_KERNELS_LOAD_H

#include "kernels/backend.h"

enum sh_module_state {
    SH_MODULE_READY,                    /* can be opened; whether that succeeds only open() knows */
    SH_MODULE_NOT_BUILT,                /* no such file in any of the places                      */
    SH_MODULE_CANNOT_LOAD               /* a file that is not a backend of this program           */
};

struct sh_module {
    enum sh_module_state state;
    const struct sh_backend *backend;   /* NULL unless ready                                      */
    char path[4096];                    /* path of the file; "" when linked in or not built       */
    struct sh_err why;                  /* unless ready; status SH_ABSENT                         */
};

/* The backends that are known, the fastest first; ends with NULL. */
extern const char *const sh_backend_names[];

/* Looks for the backend and loads it; the answer stays the same until the program ends. NULL: unknown name. */
const struct sh_module *sh_backend_look(const char *name);

#endif
