/* SPDX-License-Identifier: Apache-2.0 */
/* See embed.h. */
#include "demo/embed.h"

#include <stddef.h>

#define FILES(X) \
    X(config, "demo-opt/config.json") \
    X(tokenizer, "demo-opt/tokenizer.json") \
    X(tokenizer_config, "demo-opt/tokenizer_config.json") \
    X(weights, "demo-opt/model.safetensors") \
    X(natural, "natural.txt") \
    X(recall, "recall.jsonl")

#define DECLARE(name, path) extern const unsigned char sh_demo_##name##_begin[], sh_demo_##name##_end[];
FILES(DECLARE)

#define ENTRY(name, path) {path, sh_demo_##name##_begin, sh_demo_##name##_end},
const struct sh_demo_file sh_demo_files[] = {FILES(ENTRY) {NULL, NULL, NULL}};
