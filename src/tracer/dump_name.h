/* SPDX-License-Identifier: Apache-2.0 */
/* Sequence, layer and kind of a tensor, from its name. */
#ifndef SH_TRACER_DUMP_NAME_H
#define SH_TRACER_DUMP_NAME_H

#include "src/tracer/dump.h"

struct sh_dump_name {
    enum sh_dump_kind kind;             /* attn if the pattern does not give it                   */
    int sequence, layer;                /* -1: the pattern does not give it                       */
};

/* Each of {sequence}, {layer}, {kind} at most once, nothing else in braces. */
int sh_dump_name_check(const char *pattern, struct sh_err *e);

/* 1: the name is of that pattern. */
int sh_dump_name_match(const char *pattern, const char *name, struct sh_dump_name *out);

#endif
