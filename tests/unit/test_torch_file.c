/* SPDX-License-Identifier: Apache-2.0 */
/* Files of torch.save: what PyTorch reads is what we read, whatever the form; a pickle that wants more than
 * tensors, and an archive or a pickle that lies about itself, is refused and named. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/model/files/map.h"
#include "src/model/files/pickle.h"
#include "src/model/weights.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

static int refused(const char *path, const char *part)
{
    snprintf(e.text, sizeof e.text, "(accepted)");
    struct sh_weights *w = sh_weights_open(path, &e);
    sh_weights_close(w);
    return tap_says(e.text, part) && w == NULL && strstr(e.text, path) == e.text;
}

static struct sh_weights *open_folder(const char *name)
{
    const char *folder = tap_fixture(name);
    struct sh_weights *w = folder ? sh_weights_open_folder(folder, &e) : NULL;
    if (!w)
        printf("# %s: %s\n", name, e.text);
    return w;
}

static struct sh_weights *open_golden(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "torch/%s", name);
    const char *full = tap_golden(path);
    struct sh_weights *w = full ? sh_weights_open(full, &e) : NULL;
    if (!w)
        printf("# %s: %s\n", name, e.text);
    return w;
}

/* ---- real files ---- */

static uint32_t crc32_of(const unsigned char *at, size_t bytes)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void check_tensor(const struct sh_stored *t, const char *dtype, const char *shape, unsigned crc)
{
    char found[100] = "-";
    size_t used = 0;
    for (int i = 0; t && i < t->rank; i++)
        used += (size_t)snprintf(found + used, sizeof found - used, i ? "x%zu" : "%zu", t->shape[i]);
    CU_ASSERT_FATAL(t != NULL);
    CU_ASSERT_STRING_EQUAL(t->dtype, dtype);
    CU_ASSERT_STRING_EQUAL(found, shape);
    CU_ASSERT(crc32_of(t->at, t->bytes) == crc);
}

/* What `list` says of each file that `open` opens by its name; how many those were. */
static int check_list(const char *list, struct sh_weights *(*open)(const char *))
{
    const char *path = tap_golden(list);
    FILE *f = path ? fopen(path, "r") : NULL;
    CU_ASSERT_FATAL(f != NULL);
    char file[64], name[128], dtype[16], shape[64], now[64] = "";
    unsigned crc;
    size_t n = 0;
    int n_file = 0;
    struct sh_weights *w = NULL;
    while (fscanf(f, "%63s %127s %15s %63s %u", file, name, dtype, shape, &crc) == 5) {
        if (strcmp(now, file)) {
            CU_ASSERT(!w || sh_weights_count(w) == n);
            sh_weights_close(w);
            w = open(file);
            CU_ASSERT_FATAL(w != NULL);
            snprintf(now, sizeof now, "%s", file);
            n = 0;
            n_file++;
        }
        check_tensor(sh_weights_find(w, name), dtype, shape, crc);
        n++;
    }
    CU_ASSERT_FATAL(w && sh_weights_count(w) == n);
    sh_weights_close(w);
    fclose(f);
    return n_file;
}

static void real_files(void)
{
    CU_ASSERT(check_list("torch/expected.tsv", open_golden) == 9);
}

static void published_folders(void)
{
    if (!tap_fixture("opt_bin_fp32"))
        tap_skip("the shared fixtures are not here");
    else
        CU_ASSERT(check_list("torch/fixtures.tsv", open_folder) == 3);
}

/* Row-major tensors are views into the file, tied ones the same; only the others are copied. */
static void views(void)
{
    static const char *const forms[] = {"zip.bin", "stacked.bin"};
    for (int i = 0; i < 2; i++) {
        struct sh_weights *w = open_golden(forms[i]);
        CU_ASSERT_FATAL(w != NULL);
        const struct sh_stored *embed = sh_weights_find(w, "embed.weight"), *rows = sh_weights_find(w, "rows");
        const struct sh_stored *turned = sh_weights_find(w, "transposed");
        CU_ASSERT(sh_weights_find(w, "head.weight")->at == embed->at && !embed->copy);
        CU_ASSERT(rows->at == embed->at + 32 && !rows->copy && !sh_weights_find(w, "one_row")->copy);
        CU_ASSERT(turned->copy == turned->at && sh_weights_find(w, "column")->copy);
        enum sh_type type;
        CU_ASSERT(!sh_stored_type(sh_weights_find(w, "brain"), &type, &e) && type == SH_BF16);
        CU_ASSERT(sh_stored_type(sh_weights_find(w, "buffer.f64"), &type, &e) == -1 &&
                  tap_says(e.text, "found dtype F64"));
        unsigned char before[96];
        memcpy(before, turned->at, sizeof before);
        for (size_t k = 0; k < sh_weights_count(w); k++)
            sh_stored_drop(sh_weights_at(w, k));
        CU_ASSERT(!memcmp(before, turned->at, sizeof before));
        sh_weights_close(w);
    }
}

/* ---- pickles that want more ---- */

static void attacks(void)
{
    static const struct { const char *file, *says; } bad[] = {
        {"bad_system.bin", "opcode GLOBAL: found the global 'posix.system'"},
        {"bad_module.bin", "found the global 'torch.nn.modules.linear.Linear'"},
        {"bad_list.bin", "found a list, expected a dictionary of tensors"},
        {"bad_deflated.bin", "data.pkl': found compressed data"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char name[100], path[400];
        snprintf(name, sizeof name, "torch/%s", bad[i].file);
        CU_ASSERT_FATAL(tap_golden(name) != NULL);
        snprintf(path, sizeof path, "%s", tap_golden(name));
        CU_ASSERT(refused(path, bad[i].says));
    }
    CU_ASSERT(access("/tmp/shears-was-here", F_OK) != 0);
}

/* One pickle in the older form, between its three pickles of facts and the key of storage "0", which has
 * 4 elements of 4 bytes. */
#define TEXT(s) s, sizeof s - 1
#define HEAD                                                                                                           \
    "\x80\2\x8a\n\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\2M\xe9\3.\x80\2}X\r\0\0\0little_endian\x88s."
#define KEYS "\x80\2]X\1\0\0\0" "0a."
#define ID(type, rest) "(X\7\0\0\0storage" type "X\1\0\0\0" "0X\3\0\0\0cpu" rest "tQ"
#define FLOATS "ctorch\nFloatStorage\n"
#define STORAGE_OF(n) ID(FLOATS, "K" n)
#define STORAGE STORAGE_OF("\4")
#define TENSOR(window) "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE window "\x89NtR"
#define ROW(n) TENSOR("K\0K" n "\x85K\1\x85")
#define ENTRY(tensor) "\x80\2}X\1\0\0\0w" tensor "s."
#define SECOND(tensor) "\x80\2}X\1\0\0\0v" ROW("\4") "sX\1\0\0\0w" tensor "s."
#define HUGE_INT "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"

static const char *stacked(const void *pickle, size_t bytes, const void *keys, size_t keys_bytes, uint64_t n)
{
    size_t data = (size_t)n * 4, all = sizeof HEAD - 1 + bytes + keys_bytes + 8 + data;
    unsigned char *file = xcalloc(all, 1), *to = file;
    memcpy(to, TEXT(HEAD));
    to += sizeof HEAD - 1;
    memcpy(to, pickle, bytes);
    memcpy(to += bytes, keys, keys_bytes);
    memcpy(to += keys_bytes, &n, 8);
    const char *path = scratch_write("pytorch_model.bin", file, all);
    free(file);
    return path;
}

static int pickle_refused(const void *pickle, size_t bytes, const char *part)
{
    return refused(stacked(pickle, bytes, TEXT(KEYS), 4), part);
}

static const struct bad { const char *pickle; size_t bytes; const char *says; } pickles[] = {
    {TEXT("\x80\2cos\nsystem\nX\2\0\0\0id\x85R."), "opcode GLOBAL: found the global 'os.system'"},
    {TEXT("\x80\2c__builtin__\neval\n."), "found the global '__builtin__.eval'"},
    {TEXT("\x80\4\x8c\2os\x8c\6system\x93."), "opcode STACK_GLOBAL: found the global 'os.system'"},
    {TEXT("\x80\2ctorch._utils\n_rebuild_tensor\n."), "found the global 'torch._utils._rebuild_tensor'"},
    {TEXT("\x80\2ctorch\nFloatStorage2\n."), "found the global 'torch.FloatStorage2'"},
    {TEXT("\x80\2c\x1b[2J\nx\n."), "found the global '?[2J.x'"},
    {TEXT("\x80\2cos"), "opcode GLOBAL: found the end of the file"},
    {TEXT("\x80\4NN\x93."), "opcode STACK_GLOBAL: found None, expected two strings"},
    {TEXT("\x80\2ctorch\nFloatStorage\n)R."), "found a call of torch.FloatStorage"},
    {TEXT("\x80\2ccollections\nOrderedDict\nK\1\x85R."), "found a call of collections.OrderedDict with arguments"},
    {TEXT("\x80\2})R."), "opcode REDUCE: found a dictionary, expected a global"},
    {TEXT("\x80\2ccollections\nOrderedDict\n}R."), "found a dictionary, expected a global and a tuple"},
    {TEXT("\x80\2})b."), "opcode BUILD: found a tuple, expected a dictionary"},
    {TEXT("\x80\2ccollections\nOrderedDict\n}b."), "opcode BUILD: found a global"},
    {TEXT("\x80\1N."), "found protocol 1, expected 2 to 5"},
    {TEXT("\x80\6N."), "found protocol 6"},
    {TEXT("N."), "found no protocol, expected a pickle"},
    {TEXT("\x80\2NN."), "found unfinished values, expected one value"},
    {TEXT("\x80\2."), "found unfinished values"},
    {TEXT("\x80\2N(."), "found unfinished values"},
    {TEXT("\x80\2h\5."), "opcode BINGET: found an unused memo index"},
    {TEXT("\x80\2Nq\7h\6."), "opcode BINGET: found an unused memo index"},
    {TEXT("\x80\2Nr\xff\xff\xff\xff."), "opcode LONG_BINPUT: found a memo index beyond the limit"},
    {TEXT("\x80\2q\1."), "opcode BINPUT: found an empty stack"},
    {TEXT("\x80\2R."), "opcode REDUCE: found an empty stack"},
    {TEXT("\x80\2Q."), "opcode BINPERSID: found an empty stack"},
    {TEXT("\x80\2b."), "opcode BUILD: found an empty stack"},
    {TEXT("\x80\2t."), "opcode TUPLE: found no mark"},
    {TEXT("\x80\2N\x86."), "opcode TUPLE2: found an empty stack"},
    {TEXT("\x80\2NN(\x86."), "opcode TUPLE2: found an empty stack"},
    {TEXT("\x80\2(u."), "opcode SETITEMS: found an empty stack"},
    {TEXT("\x80\2}((u."), "opcode SETITEMS: found an empty stack"},
    {TEXT("\x80\2}(Nu."), "opcode SETITEMS: found a key without a value"},
    {TEXT("\x80\2](NNu."), "opcode SETITEMS: found a list, expected a dictionary"},
    {TEXT("\x80\2}(Ne."), "opcode APPENDS: found a dictionary, expected a list"},
    {TEXT("\x80\2)Na."), "opcode APPEND: found a tuple, expected a list"},
    {TEXT("\x80\2Na."), "opcode APPEND: found an empty stack"},
    {TEXT("\x80\2X\xff\xff\xff\xff."), "bytes left, expected 4294967295"},
    {TEXT("\x80\2\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), "bytes left, expected 18446744073709551615"},
    {TEXT("\x80\2\x8a\xff."), "opcode LONG1: found"},
    {TEXT("\x80\4\x95\xff\xff\xff\xff\xff\xff\xff\x7f" "N."), "found a frame that extends past the end of the file"},
    {TEXT("\x80\2" STORAGE "."), "found a persistent id, expected a dictionary of tensors"}};

static void pickles_are_refused(void)
{
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++)
        CU_ASSERT(pickle_refused(pickles[i].pickle, pickles[i].bytes, pickles[i].says));
    scratch_clear();
}

/* Every opcode that tensors do not need, by its name. */
static void opcodes_are_refused(void)
{
    static const unsigned char used[] = "(.JKMNQRTUXabc}ehj]qrst)uG\x85\x86\x87\x88\x89\x8a\x8c\x8d\x93\x94\x95";
    for (int code = 0; code < 256; code++) {
        unsigned char pickle[] = {0x80, 2, 'N', 'N', (unsigned char)code, '.'};
        char wanted[80];
        const char *name = sh_pickle_opcode((unsigned char)code);
        snprintf(wanted, sizeof wanted, "pickle at byte %zu: found opcode 0x%02x (%s)", sizeof HEAD - 1 + 4,
                 (unsigned)code, *name ? name : "there is no such opcode");
        if (!memchr(used, code, sizeof used - 1))
            CU_ASSERT(pickle_refused(pickle, sizeof pickle, wanted));
    }
    scratch_clear();
}

/* `unit` n times after `head`. */
static int bomb_refused(const char *head, size_t head_bytes, const char *unit, size_t unit_bytes, size_t n,
                        const char *part)
{
    unsigned char *pickle = xmalloc(head_bytes + n * unit_bytes);
    memcpy(pickle, head, head_bytes);
    for (size_t i = 0; i < n; i++)
        memcpy(pickle + head_bytes + i * unit_bytes, unit, unit_bytes);
    int result = pickle_refused(pickle, head_bytes + n * unit_bytes, part);
    free(pickle);
    return result;
}

static void bombs_are_refused(void)
{
    CU_ASSERT(bomb_refused(TEXT("\x80\2)"), TEXT("\x85"), 65, "values nested deeper than the limit of 64"));
    CU_ASSERT(bomb_refused(TEXT("\x80\2]q\0"), TEXT("h\0a"), 65, "values nested deeper than the limit of 64"));
    CU_ASSERT(bomb_refused(TEXT("\x80\2"), TEXT("("), 257, "marks nested deeper than the limit of 256"));
    CU_ASSERT(bomb_refused(TEXT("\x80\2Nq\0"), TEXT("h\0"), 1 << 20, "more values at once than the limit"));
    CU_ASSERT(bomb_refused(TEXT("\x80\2]"), TEXT("Na"), 1 << 22, "more values than the limit of 4194304"));
    CU_ASSERT(bomb_refused(TEXT("\x80\2Nq\0]"), TEXT("h\0a"), 1 << 22, "more members than the limit of 4194304"));
    scratch_clear();
}

/* ---- storages and tensors ---- */

#define WINDOW(offset, sizes, strides) TENSOR(offset sizes strides)

static const struct bad tensors[] = {
    {TEXT(ENTRY(ROW("\5"))), "tensor 'w': found a storage '0' of 4 elements, expected room for shape [5] from "
                             "element 0 on"},
    {TEXT(ENTRY(WINDOW("K\1", "K\4\x85", "K\1\x85"))), "shape [4] from element 1 on"},
    {TEXT(ENTRY(WINDOW("K\4", ")", ")"))), "shape [] from element 4 on"},
    {TEXT(ENTRY(WINDOW("K\0", "K\2\x85", "K\4\x85"))), "shape [2] from element 0 on"},
    {TEXT(ENTRY(WINDOW(HUGE_INT, "K\2\x85", "K\1\x85"))), "from element 9223372036854775807 on"},
    {TEXT(ENTRY(WINDOW("K\0", HUGE_INT "\x85", "K\1\x85"))), "shape [9223372036854775807] from element 0"},
    {TEXT(ENTRY(WINDOW("K\0", HUGE_INT HUGE_INT "\x86", HUGE_INT "K\1\x86"))), "storage is shorter than the tensor"},
    {TEXT(ENTRY(WINDOW("K\0", HUGE_INT "K\3\x86", "K\3K\1\x86"))), "storage is shorter than the tensor"},
    {TEXT(ENTRY(WINDOW("K\0", "K\2\x85", HUGE_INT "\x85"))), "storage is shorter than the tensor"},
    {TEXT(ENTRY(WINDOW("K\0", "K\2K\2\x86", "K\0K\1\x86"))), "found stride 0 in dimension 0 of shape [2, 2]"},
    {TEXT(ENTRY(WINDOW("K\0", "K\2K\2\x86", "K\1K\1\x86"))), "elements overlap"},
    {TEXT(ENTRY(WINDOW("J\xff\xff\xff\xff", "K\2\x85", "K\1\x85"))), "found unknown arguments of _rebuild_tensor_v2"},
    {TEXT(ENTRY(WINDOW("K\0", "J\xff\xff\xff\xff\x85", "K\1\x85"))), "found unknown arguments of _rebuild_tensor_v2"},
    {TEXT(ENTRY(WINDOW("K\0", "K\2\x85", "\x8a\1\xff\x85"))), "found unknown arguments of _rebuild_tensor_v2"},
    {TEXT(ENTRY(WINDOW("K\0", "K\2\x85", "K\1K\1\x86"))), "equally many sizes and strides"},
    {TEXT(ENTRY(WINDOW("K\0", "K\2", "K\1\x85"))), "found unknown arguments"},
    {TEXT(ENTRY(WINDOW("K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t"))), "at most 8"},
    {TEXT(SECOND("ctorch._utils\n_rebuild_tensor_v2\n)R")), "found unknown arguments"},
    {TEXT(SECOND("ctorch._utils\n_rebuild_tensor_v2\n(NK\0K\2\x85K\1\x85\x89NtR")), "found unknown arguments"},
    {TEXT(SECOND("ctorch._utils\n_rebuild_parameter\nN\x85R")), "found None in a parameter, expected a tensor"},
    {TEXT(SECOND("ctorch._utils\n_rebuild_parameter\n)R")), "found nothing in a parameter, expected a tensor"},
    {TEXT("\x80\2}K\1" ROW("\4") "s."), "found a whole number as a tensor name"},
    {TEXT("\x80\2}X\2\0\0\0w\n" ROW("\4") "s."), "control character in the name of tensor 'w?'"},
    {TEXT("\x80\2}X\1\0\0\0w" ROW("\4") "sX\1\0\0\0w" ROW("\2") "s."),
     "tensor 'w': found a duplicate"},
    {TEXT(ENTRY("NQ")), "found an unknown persistent id, expected ('storage', type, key"},
    {TEXT(ENTRY("X\7\0\0\0storage\x85Q")), "found an unknown persistent id"},
    {TEXT(ENTRY(ID("N", "K\4"))), "found an unknown persistent id"},
    {TEXT(ENTRY("(X\6\0\0\0modulectorch\nFloatStorage\nX\1\0\0\0" "0X\3\0\0\0cpuK\4tQ")), "an unknown persistent id"},
    {TEXT(ENTRY(ID("ccollections\nOrderedDict\n", "K\4"))), "an unknown persistent id"},
    {TEXT(ENTRY(ID(FLOATS, "J\xff\xff\xff\xff"))), "an unknown persistent id"},
    {TEXT(ENTRY(ID(FLOATS, "K\4)"))), "found a view of another storage"},
    {TEXT(ENTRY(ID(FLOATS, HUGE_INT))), "more than any file"},
    {TEXT(ENTRY(STORAGE_OF("\5"))), "storage '0': found elements: 4, expected 5"},
    {TEXT("\x80\2}X\1\0\0\0w" STORAGE "sX\1\0\0\0x" STORAGE_OF("\3") "s."), "storage '0': found "}};

static void tensors_are_refused(void)
{
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        CU_ASSERT(pickle_refused(tensors[i].pickle, tensors[i].bytes, tensors[i].says));
    scratch_clear();
}

static void older_form_is_checked(void)
{
    static const char fine[] = ENTRY(ROW("\4"));
    struct sh_weights *w = sh_weights_open(stacked(TEXT(fine), TEXT(KEYS), 4), &e);
    CU_ASSERT_FATAL(w != NULL);
    CU_ASSERT(sh_weights_find(w, "w")->bytes == 16);
    sh_weights_close(w);
    CU_ASSERT(refused(stacked(TEXT(fine), TEXT(KEYS), 3), "storage '0': found elements: 3, expected 4"));
    CU_ASSERT(refused(stacked(TEXT(fine), TEXT(KEYS "1234"), 4), "storage '0': found elements: "));
    CU_ASSERT(refused(stacked(TEXT(fine), TEXT("\x80\2]."), 4), "storage '0': found elements: 0, expected 4"));
    CU_ASSERT(refused(stacked(TEXT(fine), TEXT("\x80\2]X\1\0\0\0" "1a."), 4), "found a key of an unknown storage"));
    CU_ASSERT(refused(stacked(TEXT(fine), TEXT("\x80\2]K\0a."), 4), "found a key of an unknown storage"));
    CU_ASSERT(refused(stacked(TEXT(fine), TEXT("\x80\2}."), 4), "found a dictionary, expected the list of storages"));
    CU_ASSERT(refused(stacked(TEXT("\x80\2}."), TEXT("\x80\2]."), 1), "found 12 bytes after the last storage"));
    CU_ASSERT(refused(scratch_write("m.bin", TEXT("\x80\2K\1.")), "expected the magic number of torch.save"));
    CU_ASSERT(refused(scratch_write("m.bin", TEXT("\x80\2cos\nsystem\n.")), "found the global 'os.system'"));
    CU_ASSERT(refused(scratch_write("m.bin", TEXT("{}")), "found neither a zip archive nor a pickle in its 2 bytes"));
    CU_ASSERT(refused(scratch_write("m.bin", "", 0), "found neither a zip archive nor a pickle in its 0 bytes"));
    scratch_clear();
}

/* Copies of tensors in another order: many small tensors of one large storage must not add up. */
static void copies_are_bounded(void)
{
    static const char turned[] = "X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(" ID(FLOATS, "M\xe8\3")
                                 "K\0K\x28K\x19\x86K\1K\x28\x86\x89NtRs";
    unsigned char pickle[40 * sizeof turned] = "\x80\2}";
    size_t n = 3;
    for (int i = 0; i < 20; i++, n += sizeof turned - 1) {
        memcpy(pickle + n, turned, sizeof turned - 1);
        pickle[n + 5] = (unsigned char)('a' + i);
    }
    pickle[n++] = '.';
    CU_ASSERT(refused(stacked(pickle, n, TEXT(KEYS), 1000), "row-major"));
    pickle[3 + sizeof turned - 1] = '.';
    struct sh_weights *w = sh_weights_open(stacked(pickle, 3 + sizeof turned, TEXT(KEYS), 1000), &e);
    CU_ASSERT(w != NULL && sh_weights_find(w, "a")->bytes == 4000);
    sh_weights_close(w);
    scratch_clear();
}

/* ---- archives that lie ---- */

static unsigned char archive[1 << 14];
static size_t archive_bytes;

static void load_archive(void)
{
    struct sh_map map = {0};
    const char *path = tap_golden("torch/zip.bin");
    CU_ASSERT_FATAL(path && !sh_map_open(&map, path, &e) && map.bytes < sizeof archive);
    memcpy(archive, map.at, archive_bytes = map.bytes);
    sh_map_close(&map);
}

/* The header, local or central, of the entry whose name ends so; its name begins `name_at` after it. */
static unsigned char *find_header(const char *signature, size_t name_at, const char *end)
{
    size_t n = strlen(end);
    for (size_t i = 0; i + name_at + 100 < archive_bytes; i++) {
        size_t length = archive[i + name_at - (name_at == 30 ? 4 : 18)];
        if (!memcmp(archive + i, signature, 4) && length > n &&
            !memcmp(archive + i + name_at + length - n, end, n))
            return archive + i;
    }
    CU_FAIL_FATAL("no such entry");
    return NULL;
}

static unsigned char *central(const char *end)
{
    return find_header("PK\1\2", 46, end);
}

static unsigned char *local(const char *end)
{
    return find_header("PK\3\4", 30, end);
}

static unsigned char *end_record(void)
{
    return archive + archive_bytes - 22;
}

/* Of zip64, which PyTorch always writes. Without its locator the old record counts. */
static unsigned char *wide_end_record(void)
{
    return archive + archive_bytes - 22 - 20 - 56;
}

static void drop_locator(void)
{
    memset(archive + archive_bytes - 22 - 20, 0, 4);
}

static void store(unsigned char *at, uint64_t n, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(n >> 8 * i);
}

static void entry_lies(int which)
{
    unsigned char *c = central("/data/0"), *l = local("/data/0"), *order = local("byteorder");
    switch (which) {
    case 0: store(c + 10, 8, 2); break;
    case 1: store(c + 8, 1, 2); break;
    case 2: store(c + 24, 95, 4); break;
    case 3: store(c + 42, 0xfffffff0, 4); break;
    case 4: store(c + 42, (uint64_t)(local("/data/1") - archive), 4); break;
    case 5: store(c + 42, 7, 4); break;
    case 6: store(l + 28, 0xffff, 2); break;
    case 7: store(c + 20, 92, 4); store(c + 24, 92, 4); break;
    case 8: store(c + 20, 300, 4); store(c + 24, 300, 4); break;
    case 9: store(c + 20, 0x7fffffff, 4); store(c + 24, 0x7fffffff, 4); break;
    case 10: store(c + 20, 0xffffffff, 4); store(c + 24, 0xffffffff, 4); break;
    case 11: c[46 + c[28] - 1] = l[30 + l[26] - 1] = '1'; break;
    case 12: c[46 + c[28] - 1] = l[30 + l[26] - 1] = 'Z'; break;
    case 13: store(c + 28, 0xffff, 2); break;
    case 14: memcpy(order + 30 + order[26] + order[28], "biggie", 6); break;
    case 15: c = central("data.pkl"); c[46 + c[28] - 1] = local("data.pkl")[30 + c[28] - 1] = 'x'; break;
    default: l[0] = 'Q';
    }
}

static void entries_are_checked(void)
{
    static const char *const wanted[] = {
        "data/0': found compressed data", "data/0': found encrypted data", "data/0': found different",
        "data/0': its data extend past", "data/0': found a different name in its local header",
        "data/0': found no local header", "data/0': its local header extends past",
        "storage '0': found bytes: 92, expected 96", "its bytes overlap those of another entry",
        "data/0': its data extend past", "data/0': its data extend past", "data/1': found a duplicate",
        "found no entry */data/0, expected the storage", "directory entry at byte",
        "a byte order other than 'little'", "found no entry */data.pkl", "data/0': found no local header"};
    for (int i = 0; i < (int)(sizeof wanted / sizeof *wanted); i++) {
        load_archive();
        entry_lies(i);
        CU_ASSERT(refused(scratch_write("model.bin", archive, archive_bytes), wanted[i]));
    }
    scratch_clear();
}

/* The end record in both widths: entries, bytes and place of the directory, disk. */
static void ends_are_checked(void)
{
    static const struct { int at[2], bytes[2]; uint64_t n[2]; const char *says; } lies[] = {
        {{10, 32}, {2, 8}, {0xffff, 1ull << 60}, " entries, expected at most the "},
        {{10, 32}, {2, 8}, {24, 24}, "found no directory entry at byte"},
        {{10, 32}, {2, 8}, {2, 2}, "bytes after the last directory entry"},
        {{12, 40}, {4, 8}, {0xffffffff, UINT64_MAX}, "found a central directory of "},
        {{16, 48}, {4, 8}, {0xffffffff, UINT64_MAX - 5}, "expected it before its end record"},
        {{4, 16}, {2, 4}, {1, 1}, "a multi-disk archive"}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        for (int wide = 0; wide < 2; wide++) {
            load_archive();
            if (!wide)
                drop_locator();
            store((wide ? wide_end_record() : end_record()) + lies[i].at[wide], lies[i].n[wide], lies[i].bytes[wide]);
            CU_ASSERT(refused(scratch_write("model.bin", archive, archive_bytes), lies[i].says));
        }
    load_archive();
    store(wide_end_record() + 56 + 8, UINT64_MAX - 3, 8);
    CU_ASSERT(refused(scratch_write("model.bin", archive, archive_bytes), "no zip64 end record at byte 1844674407370"));
    store(end_record() + 20, 1, 2);
    CU_ASSERT(refused(scratch_write("model.bin", archive, archive_bytes), "no end of the central directory"));
    load_archive();
    drop_locator();
    struct sh_weights *w = sh_weights_open(scratch_write("model.bin", archive, archive_bytes), &e);
    CU_ASSERT(w != NULL);
    sh_weights_close(w);
    scratch_clear();
}

static void cut_files_are_refused(void)
{
    static const char *const forms[] = {"torch/zip.bin", "torch/zip64.bin", "torch/stacked.bin", "torch/protocol4.bin"};
    for (int i = 0; i < 4; i++) {
        struct sh_map map = {0};
        CU_ASSERT_FATAL(tap_golden(forms[i]) && !sh_map_open(&map, tap_golden(forms[i]), &e));
        for (size_t cut = 0; cut < map.bytes; cut += 1 + cut / 40)
            CU_ASSERT(refused(scratch_write("cut.bin", map.at, cut), ""));
        CU_ASSERT(refused(scratch_write("cut.bin", map.at, map.bytes - 1), ""));
        sh_map_close(&map);
    }
    scratch_clear();
}

/* ---- folders ---- */

static void folders(void)
{
    static const char shards[] = "{\"weight_map\":{\"w\":\"part.bin\"}}";
    static const char absent[] = "{\"weight_map\":{\"w\":\"part.bin\",\"v\":\"part.bin\"}}";
    char whole[300], part[300];
    snprintf(whole, sizeof whole, "%s", stacked(TEXT(ENTRY(ROW("\4"))), TEXT(KEYS), 4));
    struct sh_weights *w = sh_weights_open_folder(scratch_folder(), &e);
    CU_ASSERT(w != NULL && sh_weights_find(w, "w") != NULL);
    sh_weights_close(w);
    const char *header = "{\"s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    scratch_safetensors("model.safetensors", header, shards, 4);
    w = sh_weights_open_folder(scratch_folder(), &e);
    CU_ASSERT(w != NULL && sh_weights_find(w, "s") && !sh_weights_find(w, "w"));
    sh_weights_close(w);
    CU_ASSERT(unlink(scratch_path("model.safetensors")) == 0);
    snprintf(part, sizeof part, "%s", scratch_path("part.bin"));
    CU_ASSERT(rename(whole, part) == 0);
    scratch_write("pytorch_model.bin.index.json", shards, sizeof shards - 1);
    w = sh_weights_open_folder(scratch_folder(), &e);
    CU_ASSERT(w != NULL && sh_weights_find(w, "w") && !strcmp(sh_weights_find(w, "w")->file, part));
    sh_weights_close(w);
    scratch_write("pytorch_model.bin.index.json", absent, sizeof absent - 1);
    CU_ASSERT(sh_weights_open_folder(scratch_folder(), &e) == NULL &&
              tap_says(e.text, "'v' is missing from its shard part.bin"));
    scratch_clear();
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"what PyTorch reads is what is read, in every form", real_files},
        {"folders as they are published", published_folders},
        {"tensors are views; only those in another order are copied", views},
        {"files of an attacker are refused and run nothing", attacks},
        {"pickles: globals, stack, memo, lengths", pickles_are_refused},
        {"pickles: every other opcode is refused by name", opcodes_are_refused},
        {"pickles: nesting, marks, stack, values and members have limits", bombs_are_refused},
        {"tensors and storages that lie are refused", tensors_are_refused},
        {"the older form: keys, sizes, magic", older_form_is_checked},
        {"copies are bounded by the file", copies_are_bounded},
        {"archives: entries that lie are refused", entries_are_checked},
        {"archives: end records that lie are refused, in both widths", ends_are_checked},
        {"files that were cut are refused", cut_files_are_refused},
        {"folders: safetensors before pytorch_model.bin, and its shards", folders},
        {0}};
    return tap_run("torch_file", tests);
}
