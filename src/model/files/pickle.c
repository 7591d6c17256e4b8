/* SPDX-License-Identifier: Apache-2.0 */
/* See pickle.h. One value is one place in a growing table; members of containers are chains through a
 * second table, so that nothing has to move when a dictionary grows between other values. What an
 * opcode takes from the stack never reaches below the innermost mark. */
#include "src/model/files/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/files/map.h"

enum { MOST_VALUES = 1 << 22, MOST_LINKS = 1 << 22, MOST_MEMO = 1 << 22, MOST_STACK = 1 << 20, MOST_MARKS = 256,
       MOST_DEPTH = 64 };

#define NOTHING UINT32_MAX

/* The links count from 1, so that 0 ends a chain. */
struct sh_pickle_link { uint32_t key, value, next; };   /* key: NOTHING except in dictionaries       */

struct machine {
    struct sh_pickle *p;
    const unsigned char *at;
    size_t bytes, next, op;                     /* of the input; place of the opcode being run   */
    const struct sh_pickle_global *globals;
    uint32_t *stack, *memo;
    uint32_t n_stack, n_memo, n_mark;
    uint32_t marks[MOST_MARKS];                 /* heights of the stack                          */
    struct sh_err *e;
};

static int refuse(const struct machine *m, const char *found, const char *expected)
{
    return sh_fail(m->e, "found %s, expected %s", found, expected);
}

/* Room for element n of a table that doubles: sizes of 64, 128, … hold at least n elements. */
static void *grown(void *table, uint32_t n, size_t bytes)
{
    int full = n == 0 || (n >= 64 && (n & (n - 1)) == 0);
    return full ? xreallocarray(table, n ? 2 * (size_t)n : 64, bytes) : table;
}

/* ---- input ---- */

static const unsigned char *take(struct machine *m, uint64_t n)
{
    if (n > m->bytes - m->next)
        return sh_fail_null(m->e, "found %zu bytes left, expected %llu (is the file truncated?)", m->bytes - m->next,
                            (unsigned long long)n);
    m->next += (size_t)n;
    return m->at + m->next - n;
}

static int take_number(struct machine *m, int n, uint64_t *out)
{
    const unsigned char *at = take(m, (uint64_t)n);
    *out = 0;
    for (int i = n; at && i-- > 0;)
        *out = *out << 8 | at[i];
    return at ? 0 : -1;
}

/* ---- values and the stack ---- */

static int push(struct machine *m, uint32_t value)
{
    if (m->n_stack == MOST_STACK)
        return refuse(m, "more values at once than the limit of 1048576", "a checkpoint");
    m->stack = grown(m->stack, m->n_stack, sizeof *m->stack);
    m->stack[m->n_stack++] = value;
    return 0;
}

static int push_new(struct machine *m, struct sh_pickle_value v)
{
    struct sh_pickle *p = m->p;
    if (p->n_value == MOST_VALUES)
        return refuse(m, "more values than the limit of 4194304", "a checkpoint");
    p->values = grown(p->values, p->n_value, sizeof *p->values);
    v.place = m->op;
    p->values[p->n_value] = v;
    return push(m, p->n_value++);
}

static struct sh_pickle_value *value(const struct machine *m, uint32_t i)
{
    return &m->p->values[i];
}

/* How many values lie above the innermost mark. */
static uint32_t above(const struct machine *m)
{
    return m->n_stack - (m->n_mark ? m->marks[m->n_mark - 1] : 0);
}

/* At least n values above the mark. */
static int need(const struct machine *m, uint32_t n)
{
    return above(m) >= n ? 0 : refuse(m, "an empty stack", "operands");
}

/* The values above the mark, which goes: *n of them from m->stack[returned]; they stay until the
 * caller lowers the stack. */
static uint32_t take_mark(struct machine *m, uint32_t *n)
{
    *n = above(m);
    m->n_mark--;
    return m->n_stack - *n;
}

static int need_mark(const struct machine *m)
{
    return m->n_mark ? 0 : refuse(m, "no mark on the stack", "an earlier MARK");
}

static int add_member(struct machine *m, uint32_t to, uint32_t key, uint32_t v)
{
    struct sh_pickle *p = m->p;
    struct sh_pickle_value *container = value(m, to);
    unsigned depth = value(m, v)->depth + 1;
    if (key != NOTHING && value(m, key)->depth >= depth)
        depth = value(m, key)->depth + 1;
    if (depth > MOST_DEPTH)
        return refuse(m, "values nested deeper than the limit of 64", "a checkpoint");
    if (p->n_link == MOST_LINKS)
        return refuse(m, "more members than the limit of 4194304", "a checkpoint");
    p->links = grown(p->links, p->n_link, sizeof *p->links);
    p->links[p->n_link] = (struct sh_pickle_link){key, v, 0};
    if (container->last)
        p->links[container->last].next = p->n_link;
    else
        container->first = p->n_link;
    container->last = p->n_link++;
    container->count++;
    if (container->depth < depth)
        container->depth = depth;
    return 0;
}

/* ---- opcodes ---- */

static int push_whole(struct machine *m, enum sh_pickle_kind kind, int64_t whole)
{
    return push_new(m, (struct sh_pickle_value){.kind = kind, .whole = whole});
}

static int number(struct machine *m, int bytes)
{
    uint64_t n;
    if (take_number(m, bytes, &n))
        return -1;
    return push_whole(m, SH_PICKLE_INT, bytes == 4 ? (int32_t)(uint32_t)n : (int64_t)n);  /* only BININT has a sign */
}

static int plain(struct machine *m, enum sh_pickle_kind kind)
{
    return push_new(m, (struct sh_pickle_value){.kind = kind});
}

static int long1(struct machine *m)
{
    uint64_t n, bits = 0;
    const unsigned char *at = take_number(m, 1, &n) ? NULL : take(m, n);
    if (!at)
        return -1;
    if (n > 8)
        return push_new(m, (struct sh_pickle_value){.kind = SH_PICKLE_LONG, .text = at, .bytes = (size_t)n});
    for (size_t i = 0; i < 8; i++)                      /* the last byte's sign goes on              */
        bits |= (uint64_t)(i < n ? at[i] : n && at[n - 1] & 0x80 ? 0xff : 0) << 8 * i;
    return push_whole(m, SH_PICKLE_INT, (int64_t)bits);
}

static int real(struct machine *m)
{
    const unsigned char *at = take(m, 8);
    uint64_t bits = 0;
    double x;
    if (!at)
        return -1;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | at[i];
    memcpy(&x, &bits, 8);
    return push_new(m, (struct sh_pickle_value){.kind = SH_PICKLE_FLOAT, .real = x});
}

static int string(struct machine *m, int length_bytes)
{
    uint64_t n;
    const unsigned char *at = take_number(m, length_bytes, &n) ? NULL : take(m, n);
    if (!at)
        return -1;
    return push_new(m, (struct sh_pickle_value){.kind = SH_PICKLE_STRING, .text = at, .bytes = (size_t)n});
}

/* The tuple of what lies from m->stack[from] on. */
static int tuple(struct machine *m, uint32_t from)
{
    uint32_t n = m->n_stack - from;
    if (plain(m, SH_PICKLE_TUPLE))
        return -1;
    uint32_t made = m->stack[m->n_stack - 1];
    for (uint32_t i = 0; i < n; i++)
        if (add_member(m, made, NOTHING, m->stack[from + i]))
            return -1;
    m->stack[from] = made;
    m->n_stack = from + 1;
    return 0;
}

static int set_mark(struct machine *m)
{
    if (m->n_mark == MOST_MARKS)
        return refuse(m, "marks nested deeper than the limit of 256", "a checkpoint");
    m->marks[m->n_mark++] = m->n_stack;
    return 0;
}

/* Puts what lies from m->stack[from] on into the container below: pairs into a dictionary, single
 * values into a list. */
static int fill(struct machine *m, uint32_t from, enum sh_pickle_kind kind)
{
    uint32_t n = m->n_stack - from, width = kind == SH_PICKLE_DICT ? 2 : 1;
    uint32_t to = m->stack[from - 1];
    if (value(m, to)->kind != kind)
        return refuse(m, sh_pickle_kind(value(m, to)), kind == SH_PICKLE_DICT ? "a dictionary" : "a list");
    if (n % width)
        return refuse(m, "a key without a value", "pairs");
    for (uint32_t i = from; i < m->n_stack; i += width)
        if (add_member(m, to, width == 2 ? m->stack[i] : NOTHING, m->stack[i + width - 1]))
            return -1;
    m->n_stack = from;
    return 0;
}

static int fill_one(struct machine *m, enum sh_pickle_kind kind)
{
    uint32_t n = kind == SH_PICKLE_DICT ? 2 : 1;
    return need(m, n + 1) ? -1 : fill(m, m->n_stack - n, kind);
}

static int fill_from_mark(struct machine *m, enum sh_pickle_kind kind)
{
    uint32_t n;
    if (need_mark(m))
        return -1;
    uint32_t from = take_mark(m, &n);
    if (above(m) == n)                                  /* nothing between this mark and the one below */
        return refuse(m, "an empty stack", "a container to fill");
    return fill(m, from, kind);
}

static int put(struct machine *m, uint64_t i)
{
    if (need(m, 1))
        return -1;
    if (i >= MOST_MEMO)
        return refuse(m, "a memo index beyond the limit of 4194303", "a checkpoint");
    while (m->n_memo <= i) {
        m->memo = grown(m->memo, m->n_memo, sizeof *m->memo);
        m->memo[m->n_memo++] = NOTHING;
    }
    m->memo[i] = m->stack[m->n_stack - 1];
    return 0;
}

static int put_at(struct machine *m, int index_bytes)
{
    uint64_t i;
    return take_number(m, index_bytes, &i) ? -1 : put(m, i);
}

static int get(struct machine *m, int index_bytes)
{
    uint64_t i;
    if (take_number(m, index_bytes, &i))
        return -1;
    if (i >= m->n_memo || m->memo[i] == NOTHING)
        return refuse(m, "an unused memo index", "one that was stored before");
    return push(m, m->memo[i]);
}

static int says(const unsigned char *text, size_t bytes, const char *what)
{
    return strlen(what) == bytes && !memcmp(text, what, bytes);
}

static int global(struct machine *m, const unsigned char *module, size_t module_bytes, const unsigned char *name,
                  size_t name_bytes)
{
    char shown[2][80];
    for (const struct sh_pickle_global *g = m->globals; g->name; g++)
        if (says(module, module_bytes, g->module) && says(name, name_bytes, g->name))
            return push_new(m, (struct sh_pickle_value){.kind = SH_PICKLE_GLOBAL, .global = g});
    return sh_fail(m->e, "found the global '%s.%s', expected only what tensors need (nothing was run)",
                   sh_shown(module, module_bytes, shown[0], sizeof shown[0]),
                   sh_shown(name, name_bytes, shown[1], sizeof shown[1]));
}

static int global_in_lines(struct machine *m)
{
    const unsigned char *at = m->at + m->next, *stop = m->at + m->bytes;
    const unsigned char *end = memchr(at, '\n', (size_t)(stop - at));
    const unsigned char *name = end ? end + 1 : stop;
    const unsigned char *name_end = memchr(name, '\n', (size_t)(stop - name));
    if (!name_end)
        return refuse(m, "the end of the file", "two lines with its names");
    m->next = (size_t)(name_end + 1 - m->at);
    return global(m, at, (size_t)(end - at), name, (size_t)(name_end - name));
}

static int global_on_stack(struct machine *m)
{
    if (need(m, 2))
        return -1;
    const struct sh_pickle_value *name = value(m, m->stack[m->n_stack - 1]);
    const struct sh_pickle_value *module = value(m, m->stack[m->n_stack - 2]);
    if (name->kind != SH_PICKLE_STRING || module->kind != SH_PICKLE_STRING)
        return refuse(m, sh_pickle_kind(name->kind == SH_PICKLE_STRING ? module : name), "two strings with its names");
    m->n_stack -= 2;
    return global(m, module->text, module->bytes, name->text, name->bytes);
}

/* A value of one member, which is the top of the stack. */
static int wrap(struct machine *m, enum sh_pickle_kind kind, const struct sh_pickle_global *g)
{
    uint32_t member = m->stack[--m->n_stack];
    if (push_new(m, (struct sh_pickle_value){.kind = kind, .global = g}))
        return -1;
    return add_member(m, m->stack[m->n_stack - 1], NOTHING, member);
}

/* Notes the call; the only one that is carried out is that of an empty dictionary. */
static int reduce(struct machine *m)
{
    if (need(m, 2))
        return -1;
    const struct sh_pickle_value *args = value(m, m->stack[m->n_stack - 1]);
    const struct sh_pickle_value *callee = value(m, m->stack[m->n_stack - 2]);
    const struct sh_pickle_global *g = callee->global;
    if (callee->kind != SH_PICKLE_GLOBAL || args->kind != SH_PICKLE_TUPLE)
        return refuse(m, sh_pickle_kind(callee->kind == SH_PICKLE_GLOBAL ? args : callee),
                      "a global and a tuple of arguments");
    if (g->use == SH_PICKLE_TYPE || (g->use == SH_PICKLE_NEW_DICT && args->count))
        return sh_fail(m->e, "found a call of %s.%s%s, expected none", g->module, g->name,
                       args->count ? " with arguments" : "");
    m->stack[m->n_stack - 2] = m->stack[m->n_stack - 1];
    m->n_stack--;
    if (g->use == SH_PICKLE_FUNCTION)
        return wrap(m, SH_PICKLE_CALL, g);
    m->n_stack--;
    return plain(m, SH_PICKLE_DICT);
}

/* The attributes of an ordered dictionary (PyTorch keeps its version there) are of no interest. */
static int build(struct machine *m)
{
    if (need(m, 2))
        return -1;
    const struct sh_pickle_value *state = value(m, m->stack[m->n_stack - 1]);
    const struct sh_pickle_value *of = value(m, m->stack[m->n_stack - 2]);
    if (of->kind != SH_PICKLE_DICT || state->kind != SH_PICKLE_DICT)
        return refuse(m, sh_pickle_kind(of->kind == SH_PICKLE_DICT ? state : of), "a dictionary and its attributes");
    m->n_stack--;
    return 0;
}

static int frame(struct machine *m)
{
    uint64_t n;
    if (take_number(m, 8, &n))
        return -1;
    return n <= m->bytes - m->next ? 0 : refuse(m, "a frame that extends past the end of the file", "one within it");
}

/* 1: an opcode that is not known here. */
static int run(struct machine *m, unsigned char code)
{
    uint32_t n;
    switch (code) {
    case '(': return set_mark(m);
    case 'N': return plain(m, SH_PICKLE_NONE);
    case 0x88: case 0x89: return push_whole(m, SH_PICKLE_BOOL, code == 0x88);
    case 'J': return number(m, 4);
    case 'K': return number(m, 1);
    case 'M': return number(m, 2);
    case 0x8a: return long1(m);
    case 'G': return real(m);
    case 'U': case 0x8c: return string(m, 1);
    case 'T': case 'X': return string(m, 4);
    case 0x8d: return string(m, 8);
    case ')': return plain(m, SH_PICKLE_TUPLE);
    case 0x85: case 0x86: case 0x87: return need(m, code - 0x84u) ? -1 : tuple(m, m->n_stack - (code - 0x84u));
    case 't': return need_mark(m) ? -1 : tuple(m, take_mark(m, &n));
    case ']': return plain(m, SH_PICKLE_LIST);
    case 'a': return fill_one(m, SH_PICKLE_LIST);
    case 'e': return fill_from_mark(m, SH_PICKLE_LIST);
    case '}': return plain(m, SH_PICKLE_DICT);
    case 's': return fill_one(m, SH_PICKLE_DICT);
    case 'u': return fill_from_mark(m, SH_PICKLE_DICT);
    case 'q': return put_at(m, 1);
    case 'r': return put_at(m, 4);
    case 0x94: return put(m, m->n_memo);
    case 'h': return get(m, 1);
    case 'j': return get(m, 4);
    case 'c': return global_in_lines(m);
    case 0x93: return global_on_stack(m);
    case 'R': return reduce(m);
    case 'b': return build(m);
    case 'Q': return need(m, 1) ? -1 : wrap(m, SH_PICKLE_PERSISTENT, NULL);
    case 0x95: return frame(m);
    default: return 1;
    }
}

static int begin(struct machine *m, size_t from)
{
    m->next = m->op = from;
    if (m->bytes - from < 2 || m->at[from] != 0x80)
        return sh_fail(m->e, "found no protocol, expected a pickle");
    unsigned protocol = m->at[from + 1];
    m->next += 2;
    if (protocol < 2 || protocol > 5)
        return sh_fail(m->e, "found protocol %u, expected 2 to 5", protocol);
    return 0;
}

static int run_all(struct machine *m, size_t from)
{
    if (begin(m, from))
        return -1;
    for (;;) {
        m->op = m->next;
        if (m->next == m->bytes)
            return sh_fail(m->e, "found the end of the data, expected an opcode (is the file truncated?)");
        m->next++;
        if (m->at[m->op] == '.')
            break;
        const char *name = sh_pickle_opcode(m->at[m->op]);
        int bad = run(m, m->at[m->op]);
        if (bad > 0)
            return sh_fail(m->e, "found opcode 0x%02x (%s), expected only what tensors need (nothing was run)",
                           m->at[m->op], *name ? name : "there is no such opcode");
        if (bad)
            return sh_err_prefix(m->e, "opcode %s", name);
    }
    if (m->n_stack != 1 || m->n_mark)
        return sh_fail(m->e, "opcode STOP: found unfinished values, expected one value");
    m->p->root = m->stack[0];
    return 0;
}

struct sh_pickle *sh_pickle_read(const unsigned char *at, size_t bytes, size_t from, size_t *end,
                                 const struct sh_pickle_global *globals, struct sh_err *e)
{
    struct sh_pickle *p = xcalloc(1, sizeof *p);
    struct machine m = {.p = p, .at = at, .bytes = bytes, .globals = globals, .e = e};
    p->links = xcalloc(64, sizeof *p->links);
    p->n_link = 1;
    int bad = run_all(&m, from);
    *end = m.next;
    free(m.stack);
    free(m.memo);
    if (!bad)
        return p;
    sh_err_prefix(e, "pickle at byte %zu", m.op);
    sh_pickle_free(p);
    return NULL;
}

void sh_pickle_free(struct sh_pickle *p)
{
    if (!p)
        return;
    free(p->values);
    free(p->links);
    free(p);
}

const struct sh_pickle_value *sh_pickle_member(const struct sh_pickle *p, const struct sh_pickle_value *of, size_t i)
{
    uint32_t link = of->first;
    while (link && i--)
        link = p->links[link].next;
    return link ? &p->values[p->links[link].value] : NULL;
}

int sh_pickle_next(const struct sh_pickle *p, const struct sh_pickle_value *of, uint32_t *link,
                   const struct sh_pickle_value **key, const struct sh_pickle_value **v)
{
    *link = *link ? p->links[*link].next : of->first;
    if (!*link)
        return 0;
    const struct sh_pickle_link *l = &p->links[*link];
    *key = l->key == NOTHING ? NULL : &p->values[l->key];
    *v = &p->values[l->value];
    return 1;
}

int sh_pickle_is(const struct sh_pickle_value *v, const char *text)
{
    return v && v->kind == SH_PICKLE_STRING && says(v->text, v->bytes, text);
}

/* ---- names, for messages: the opcodes of protocols 0 to 5, as Python's pickletools calls them ---- */

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
