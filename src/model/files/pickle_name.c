/* SPDX-License-Identifier: Apache-2.0 */
/* The names of things in a pickle, for messages. The opcodes are all of protocols 0 to 5, as Python's
 * pickletools calls them. */
#include "src/model/files/pickle.h"

const char *sh_pickle_opcode(unsigned char code)
{
    static const char *const names[256] = {
        ['('] = "MARK", ['.'] = "STOP", ['0'] = "POP", ['1'] = "POP_MARK", ['2'] = "DUP", ['F'] = "FLOAT",
        ['I'] = "INT", ['J'] = "BININT", ['K'] = "BININT1", ['L'] = "LONG", ['M'] = "BININT2", ['N'] = "NONE",
        ['P'] = "PERSID", ['Q'] = "BINPERSID", ['R'] = "REDUCE", ['S'] = "STRING", ['T'] = "BINSTRING",
        ['U'] = "SHORT_BINSTRING", ['V'] = "UNICODE", ['X'] = "BINUNICODE", ['a'] = "APPEND", ['b'] = "BUILD",
        ['c'] = "GLOBAL", ['d'] = "DICT", ['}'] = "EMPTY_DICT", ['e'] = "APPENDS", ['g'] = "GET", ['h'] = "BINGET",
        ['i'] = "INST", ['j'] = "LONG_BINGET", ['l'] = "LIST", [']'] = "EMPTY_LIST", ['o'] = "OBJ", ['p'] = "PUT",
        ['q'] = "BINPUT", ['r'] = "LONG_BINPUT", ['s'] = "SETITEM", ['t'] = "TUPLE", [')'] = "EMPTY_TUPLE",
        ['u'] = "SETITEMS", ['G'] = "BINFLOAT", ['B'] = "BINBYTES", ['C'] = "SHORT_BINBYTES", [0x80] = "PROTO",
        [0x81] = "NEWOBJ", [0x82] = "EXT1", [0x83] = "EXT2", [0x84] = "EXT4", [0x85] = "TUPLE1", [0x86] = "TUPLE2",
        [0x87] = "TUPLE3", [0x88] = "NEWTRUE", [0x89] = "NEWFALSE", [0x8a] = "LONG1", [0x8b] = "LONG4",
        [0x8c] = "SHORT_BINUNICODE", [0x8d] = "BINUNICODE8", [0x8e] = "BINBYTES8", [0x8f] = "EMPTY_SET",
        [0x90] = "ADDITEMS", [0x91] = "FROZENSET", [0x92] = "NEWOBJ_EX", [0x93] = "STACK_GLOBAL", [0x94] = "MEMOIZE",
        [0x95] = "FRAME", [0x96] = "BYTEARRAY8", [0x97] = "NEXT_BUFFER", [0x98] = "READONLY_BUFFER"};
    return names[code] ? names[code] : "";
}

const char *sh_pickle_kind(const struct sh_pickle_value *v)
{
    static const char *const names[] = {
        [SH_PICKLE_NONE] = "None", [SH_PICKLE_BOOL] = "a truth value", [SH_PICKLE_INT] = "a whole number",
        [SH_PICKLE_FLOAT] = "a real number", [SH_PICKLE_LONG] = "a large whole number", [SH_PICKLE_STRING] = "a string",
        [SH_PICKLE_TUPLE] = "a tuple", [SH_PICKLE_LIST] = "a list", [SH_PICKLE_DICT] = "a dictionary",
        [SH_PICKLE_GLOBAL] = "a global", [SH_PICKLE_CALL] = "the result of a call",
        [SH_PICKLE_PERSISTENT] = "a persistent id"};
    return v ? names[v->kind] : "nothing";
}
