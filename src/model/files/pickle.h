/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a Python pickle (protocols 2 to 5) as data. Nothing in it is ever executed: the machine builds numbers,
 * strings, tuples, lists and dictionaries, and records the call of a global that the caller has listed: the global and
 * its arguments. Every other global and every other opcode is refused with its name and place.
 *
 * The bytes are hostile: values, stack, memo and nesting have fixed limits, so that reading takes at most some hundred
 * megabytes and no recursion for any input.
 *
 * Ownership: values belong to the struct sh_pickle; strings point into the bytes that were read. */
#ifndef SH_MODEL_FILES_PICKLE_H
#define SH_MODEL_FILES_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

enum sh_pickle_kind {
    SH_PICKLE_NONE, SH_PICKLE_BOOL, SH_PICKLE_INT, SH_PICKLE_FLOAT,
    SH_PICKLE_LONG,                 /* an integer of more than 8 bytes: text, bytes (little-endian)  */
    SH_PICKLE_STRING,               /* text, bytes; no terminating NUL                               */
    SH_PICKLE_TUPLE, SH_PICKLE_LIST, SH_PICKLE_DICT,
    SH_PICKLE_GLOBAL,               /* global                                                        */
    SH_PICKLE_CALL,                 /* global, and the tuple of arguments as its one member          */
    SH_PICKLE_PERSISTENT            /* a persistent id: its one member is the id                     */
};

/* What a pickle may name, and what calling it means. */
struct sh_pickle_global {
    const char *module, *name;      /* both NULL: end of the list                                    */
    enum { SH_PICKLE_TYPE, SH_PICKLE_FUNCTION, SH_PICKLE_NEW_DICT } use;   /* never called; kept as a call;
                                                                        called with () a dictionary */
};

struct sh_pickle_value {
    enum sh_pickle_kind kind;
    unsigned depth;                 /* of the nesting below it                                       */
    uint32_t first, last, count;    /* members, by link; 0: none                                     */
    size_t place;                   /* of the opcode that made it                                    */
    const struct sh_pickle_global *global;
    union {
        int64_t whole;              /* also of SH_PICKLE_BOOL                                        */
        double real;
        struct { const unsigned char *text; size_t bytes; };
    };
};

struct sh_pickle {
    struct sh_pickle_value *values; /* [n_value], nested ones included                               */
    struct sh_pickle_link *links;   /* see sh_pickle_next                                            */
    uint32_t n_value, n_link, root;
};

/* The pickle that begins at bytes[from]; it may end before `bytes` do, *end is the place after it.
 * Messages count places from bytes[0]. `globals` must outlive the result. */
struct sh_pickle *sh_pickle_read(const unsigned char *at, size_t bytes, size_t from, size_t *end,
                                 const struct sh_pickle_global *globals, struct sh_err *e);
void sh_pickle_free(struct sh_pickle *p);                       /* NULL is fine                      */

/* Member i of a tuple, call or persistent id; NULL after the last and for values without members. */
const struct sh_pickle_value *sh_pickle_member(const struct sh_pickle *p, const struct sh_pickle_value *of, size_t i);

/* Walks a list or dictionary: *link begins as 0; 0 after the last. `key` is NULL in a list. */
int sh_pickle_next(const struct sh_pickle *p, const struct sh_pickle_value *of, uint32_t *link,
                   const struct sh_pickle_value **key, const struct sh_pickle_value **value);

int sh_pickle_is(const struct sh_pickle_value *v, const char *text);   /* a string that says this    */

/* The kind of a value, for messages: "a dictionary". NULL: "nothing". */
const char *sh_pickle_kind(const struct sh_pickle_value *v);

/* The name of an opcode, "" when there is none. */
const char *sh_pickle_opcode(unsigned char code);

#endif
