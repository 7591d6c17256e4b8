/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces embed.c in a small program (make gpu-pack), which has no demonstration. */
#include "demo/embed.h"

#include <stddef.h>

const struct sh_demo_file sh_demo_files[] = {{NULL, NULL, NULL}};
