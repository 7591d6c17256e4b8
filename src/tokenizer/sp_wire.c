/* SPDX-License-Identifier: Apache-2.0 */
/* See sp_wire.h; protobuf.dev/programming-guides/encoding describes the format. */
#include "src/tokenizer/sp_wire.h"

#include <string.h>

static int take_varint(struct sh_wire *m, uint64_t *value)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 10 && i < m->n; i++) {
        unsigned char c = (unsigned char)m->at[i];
        v |= (uint64_t)(c & 0x7f) << (7 * i);
        if (c < 0x80) {
            m->at += i + 1;
            m->n -= i + 1;
            *value = v;
            return 0;
        }
    }
    return -1;
}

static int take_fixed(struct sh_wire *m, unsigned bytes, uint64_t *value)
{
    if (m->n < bytes)
        return -1;
    *value = 0;
    for (unsigned i = 0; i < bytes; i++)
        *value |= (uint64_t)(unsigned char)m->at[i] << (8 * i);
    m->at += bytes;
    m->n -= bytes;
    return 0;
}

static int take_content(struct sh_wire *m, struct sh_wire_field *f)
{
    switch (f->type) {
    case SH_WIRE_VARINT: return take_varint(m, &f->value);
    case SH_WIRE_FIXED64: return take_fixed(m, 8, &f->value);
    case SH_WIRE_FIXED32: return take_fixed(m, 4, &f->value);
    case SH_WIRE_BYTES: break;
    }
    uint64_t length;
    if (take_varint(m, &length) || length > m->n)
        return -1;
    f->bytes = (struct sh_wire){m->at, (size_t)length};
    m->at += length;
    m->n -= (size_t)length;
    return 0;
}

int sh_wire_next(struct sh_wire *m, struct sh_wire_field *f, struct sh_err *e)
{
    uint64_t tag;
    if (!m->n)
        return 0;
    if (take_varint(m, &tag) || tag > UINT32_MAX || tag < 8)
        return sh_fail(e, "not a protobuf message: expected the start of a field");
    unsigned type = tag & 7;
    *f = (struct sh_wire_field){.number = (uint32_t)tag >> 3, .type = (enum sh_wire_type)type};
    if (type != SH_WIRE_VARINT && type != SH_WIRE_FIXED64 && type != SH_WIRE_BYTES && type != SH_WIRE_FIXED32)
        return sh_fail(e, "field %u has wire type %u, expected 0, 1, 2 or 5", f->number, type);
    if (take_content(m, f))
        return sh_fail(e, "field %u extends past the end of its message", f->number);
    return 1;
}

float sh_wire_float(const struct sh_wire_field *f)
{
    uint32_t bits = (uint32_t)f->value;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int32_t sh_wire_int(const struct sh_wire_field *f)
{
    uint32_t bits = (uint32_t)f->value;
    int32_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
