/* SPDX-License-Identifier: Apache-2.0 */
/* In place of embed.c where the program is to be small (make gpu-pack): there is no demonstration in it. */
#include "demo/embed.h"

#include <stddef.h>

const struct sh_demo_file sh_demo_files[] = {{NULL, NULL, NULL}};
