/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors reader: real files, and files that lie about themselves. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/rng.h"
#include "src/model/files/map.h"
#include "src/model/weights.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

static int refused(const char *path, const char *part)
{
    snprintf(e.text, sizeof e.text, "(accepted)");
    struct sh_weights *s = sh_weights_open(path, &e);
    sh_weights_close(s);
    return tap_says(e.text, part) && s == NULL && strstr(e.text, path) == e.text;
}

static int folder_refused(const char *part)
{
    snprintf(e.text, sizeof e.text, "(accepted)");
    struct sh_weights *s = sh_weights_open_folder(scratch_folder(), &e);
    sh_weights_close(s);
    return tap_says(e.text, part) && s == NULL;
}

/* A header, the bytes of data after it, and what the refusal must say. */
static const struct lie { const char *header; size_t bytes; const char *says; } lies[] = {
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4,
     "data_offsets [0, 8] extend past the 4 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 12,
     "found 12 bytes of data, expected 8"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "[8, 0] are reversed"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8,
     "'data_offsets' is not a pair"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8,
     "'data_offsets' is not a pair"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8.0]}}", 8,
     "'data_offsets' is not a pair"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":\"08\"}}", 8,
     "'data_offsets' is not a pair"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "'data_offsets' is not a pair"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[9223372036854775800,"
     "9223372036854775807]}}",
     8, "extend past"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,99999999999999999999]}}", 8,
     "too big integer"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
     "found 8 bytes, expected 12 for shape [3] of F32"},
    {"{\"a\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,8]}}", 8,
     "found 8 bytes, expected 12 for shape [2, 3] of F16"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
     "more elements than any file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[576460752303423488],\"data_offsets\":[0,0]}}", 0,
     "more elements than any file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0,
     "more elements than any file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8,
     "'shape' is not a list of whole"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[true],\"data_offsets\":[0,8]}}", 8,
     "'shape' is not a list of whole"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, "'shape' is not a list"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
     "at most 8"},
    {"{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "'dtype' is not a string"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2,
     "expected 2 for shape [3] of F4"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1,
     "expected 2 for shape [3] of F4"},
    {"{\"a\":[0,8]}", 8, "'a' in the header is not an object"},
    {"{\"__metadata__\":3}", 0, "'__metadata__' in the header is not an object"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     12, "overlap the data of tensor 'a'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     8, "overlap the data of tensor"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
     12, "found a gap of 4 bytes before its data"},
    {"{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "a gap of 4 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, "duplicate object key"},
    {"[]", 0, "the header is not a JSON object"},
    {"not json", 0, "the header is not valid JSON"},
    {"{} {}", 0, "the header is not valid JSON"},
    {"", 0, "the header is not valid JSON"},
    {"{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "the header is not valid JSON"}};

static void lies_are_refused(void)
{
    static const unsigned char data[16];
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        CU_ASSERT(refused(scratch_safetensors("m.safetensors", lies[i].header, data, lies[i].bytes),
                          lies[i].says));
    scratch_clear();
}

static void broken_files_are_refused(void)
{
    static const uint64_t huge[] = {UINT64_MAX, 0}, limit[] = {100000001, 0}, past[] = {9, 0};
    CU_ASSERT(refused(scratch_path("absent.safetensors"), "No such file"));
    CU_ASSERT(refused(scratch_folder(), "not a regular file"));
    CU_ASSERT(refused(scratch_write("m.safetensors", "", 0), "found 0 bytes"));
    CU_ASSERT(refused(scratch_write("m.safetensors", huge, 7), "found 7 bytes"));
    CU_ASSERT(
        refused(scratch_write("m.safetensors", huge, 16), "found a header of 18446744073709551615 bytes"));
    CU_ASSERT(refused(scratch_write("m.safetensors", limit, 16), "expected at most 100000000"));
    CU_ASSERT(refused(scratch_write("m.safetensors", past, 16), "found 16 bytes, expected at least 17"));
    CU_ASSERT(mkfifo(scratch_path("pipe.safetensors"), 0600) == 0);
    CU_ASSERT(refused(scratch_path("pipe.safetensors"), "not a regular file"));
    scratch_clear();
}

static void odd_but_valid_files_are_read(void)
{
    static const unsigned char data[21] = {0};
    const char *path = scratch_safetensors("m.safetensors",
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"z\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"extra\":1},"
        "\"mask\":{\"dtype\":\"U8\",\"shape\":[1,5],\"data_offsets\":[4,9]},"
        "\"empty\":{\"dtype\":\"F16\",\"shape\":[0,7],\"data_offsets\":[9,9]},"
        "\"new\":{\"dtype\":\"F99\",\"shape\":[3],\"data_offsets\":[9,13]},"
        "\"long\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[13,21]}}   \n", data, 21);
    struct sh_weights *s = sh_weights_open(path, &e);
    CU_ASSERT_FATAL(s != NULL);
    CU_ASSERT(sh_weights_count(s) == 5);
    enum sh_type type = SH_BF16;
    char shape[32], tiny[4];
    CU_ASSERT(sh_stored_type(sh_weights_find(s, "z"), &type, &e) == 0 && type == SH_F32);
    CU_ASSERT(sh_stored_type(sh_weights_find(s, "new"), &type, &e) == -1 &&
              tap_says(e.text, "found dtype F99, expected F32"));
    CU_ASSERT(sh_stored_type(sh_weights_find(s, "mask"), &type, &e) == -1 &&
              tap_says(e.text, "found dtype U8"));
    CU_ASSERT_STRING_EQUAL(sh_stored_shape(sh_weights_find(s, "mask"), shape, sizeof shape),
                           "[1, 5]");
    CU_ASSERT_STRING_EQUAL(sh_stored_shape(sh_weights_find(s, "mask"), tiny, sizeof tiny),
                           "[1,");
    CU_ASSERT(sh_weights_find(s, "y") == NULL &&
              sh_weights_find(s, "__metadata__") == NULL);
    CU_ASSERT_STRING_EQUAL(sh_weights_at(s, 0)->name, "empty");
    CU_ASSERT(sh_weights_find(s, "long")->bytes == 8 &&
              sh_weights_find(s, "empty")->bytes == 0);
    sh_weights_close(s);
    s = sh_weights_open(scratch_safetensors("m.safetensors", "{}", data, 0), &e);
    CU_ASSERT(s != NULL && sh_weights_find(s, "a") == NULL);
    sh_weights_close(s);
    scratch_clear();
}

/* One tensor "a" and one "b" in shards of their own; the index says where they are. */
static void write_shards(const char *index)
{
    static const float data[1] = {1};
    scratch_safetensors("one.safetensors",
                        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", data,
                        4);
    scratch_safetensors("two.safetensors",
                        "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", data,
                        4);
    scratch_write("model.safetensors.index.json", index, strlen(index));
}

static void indexes(void)
{
    CU_ASSERT(folder_refused("found no weights, expected model.safetensors"));
    scratch_write("tf_model.h5", "HDF", 3);
    CU_ASSERT(folder_refused("found tf_model.h5, expected model.safetensors"));
    CU_ASSERT(strstr(e.hint, "save_pretrained") != NULL);
    write_shards("{\"weight_map\":{\"b\":\"two.safetensors\",\"a\":\"one.safetensors\"}}");
    struct sh_weights *s = sh_weights_open_folder(scratch_folder(), &e);
    CU_ASSERT_FATAL(s != NULL);
    CU_ASSERT(sh_weights_count(s) == 2 &&
              strstr(sh_weights_find(s, "b")->file, "/two.safetensors") != NULL);
    sh_weights_close(s);
    static const struct { const char *map, *says; } bad[] = {
        {"{\"a\":\"three.safetensors\"}", "three.safetensors: cannot be opened: No such file"},
        {"{\"a\":\"../one.safetensors\"}",
         "found the shard '../one.safetensors', expected the name of a file"},
        {"{\"a\":\"/etc/passwd\"}", "found the shard '/etc/passwd'"},
        {"{\"a\":\"..\"}", "found the shard '..'"},
        {"{\"a\":\"\"}", "found the shard ''"},
        {"{\"a\":1}", "found the shard '(not a string)'"},
        {"{\"a\":\"two.safetensors\"}", "tensor 'a' is missing from its shard two.safetensors"},
        {"{\"a\":\"one.safetensors\",\"a\":\"two.safetensors\"}", "duplicate object key"},
        {"[]", "'weight_map' is missing or not an object"},
        {"}", "not valid JSON"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char index[200];
        snprintf(index, sizeof index, "{\"weight_map\":%s}", bad[i].map);
        write_shards(index);
        CU_ASSERT(folder_refused(bad[i].says));
    }
    scratch_clear();
}

/* A real file, cut anywhere or with a damaged header, is refused or read within its bounds. */
static void damage(void)
{
    struct sh_map whole = {0};
    const char *path = tap_golden("checkpoints/opt_f16/model.safetensors");
    CU_ASSERT_FATAL(path != NULL && sh_map_open(&whole, path, &e) == 0);
    for (size_t cut = 0; cut < whole.bytes; cut += cut < 40 ? 1 : 997)
        CU_ASSERT(refused(scratch_write("cut.safetensors", whole.at, cut), ""));
    CU_ASSERT(refused(scratch_write("cut.safetensors", whole.at, whole.bytes - 1), "truncated?"));
    unsigned char *copy = malloc(whole.bytes);
    unsigned sum = 0;
    for (uint64_t trial = 0; trial < 1500; trial++) {
        memcpy(copy, whole.at, whole.bytes);
        for (uint64_t i = 0; i < 1 + trial % 3; i++)
            copy[sh_rng(1, 8 * trial + i) % 3568] = (unsigned char)sh_rng(2, 8 * trial + i);
        struct sh_weights *s = sh_weights_open(scratch_write("bad.safetensors", copy, whole.bytes), &e);
        for (size_t i = 0; s && i < sh_weights_count(s); i++)
            for (size_t j = 0; j < sh_weights_at(s, i)->bytes; j++)
                sum += sh_weights_at(s, i)->at[j];
        sh_weights_close(s);
    }
    CU_ASSERT(sum != 0);
    free(copy);
    sh_map_close(&whole);
    scratch_clear();
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"headers that lie are refused and named", lies_are_refused},
        {"broken files are refused", broken_files_are_refused},
        {"odd but valid files are read", odd_but_valid_files_are_read},
        {"indexes: shards next_to the index, nothing else", indexes},
        {"damage: a real file cut or garbled never leads outside of it", damage},
        {0}};
    return tap_run("safetensors", tests);
}
