/* SPDX-License-Identifier: Apache-2.0 */
/* See embed.h. */
#include "demo/embed.h"

#include <stddef.h>

#define FILE_OF(name) extern const unsigned char sh_demo_##name##_begin[], sh_demo_##name##_end[];
FILE_OF(config)
FILE_OF(tokenizer)
FILE_OF(tokenizer_config)
FILE_OF(weights)
FILE_OF(natural)
FILE_OF(recall)

#define ENTRY(name, path) {path, sh_demo_##name##_begin, sh_demo_##name##_end}

const struct sh_demo_file sh_demo_files[] = {
    ENTRY(config, "demo-opt/config.json"),
    ENTRY(tokenizer, "demo-opt/tokenizer.json"),
    ENTRY(tokenizer_config, "demo-opt/tokenizer_config.json"),
    ENTRY(weights, "demo-opt/model.safetensors"),
    ENTRY(natural, "natural.txt"),
    ENTRY(recall, "recall.jsonl"),
    {NULL, NULL, NULL}};
