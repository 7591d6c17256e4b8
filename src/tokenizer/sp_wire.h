/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers on the wire: the fields of one message, one after the other. The bytes may be
 * hostile: a field that is not whole is an error, never read past the end. */
#ifndef SH_TOKENIZER_SP_WIRE_H
#define SH_TOKENIZER_SP_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

struct sh_wire { const char *at; size_t n; };   /* what is left of a message */

enum sh_wire_type {
    SH_WIRE_VARINT = 0, SH_WIRE_FIXED64 = 1, SH_WIRE_BYTES = 2, SH_WIRE_FIXED32 = 5
};

struct sh_wire_field {
    uint32_t number;
    enum sh_wire_type type;
    uint64_t value;                     /* all but BYTES; floats as their bits */
    struct sh_wire bytes;               /* BYTES: points into the message      */
};

/* Takes the first field off `m`. 1: done, 0: nothing is left, -1: error. */
int sh_wire_next(struct sh_wire *m, struct sh_wire_field *f, struct sh_err *e);

float sh_wire_float(const struct sh_wire_field *f);
int32_t sh_wire_int(const struct sh_wire_field *f);     /* an int32 or enum, as protobuf cuts it */

#endif
