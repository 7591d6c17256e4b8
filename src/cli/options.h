/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several commands take, each written once. A macro _OPT is one row of an option table and takes the
 * offset of its field. A macro _OPTS is several rows; it takes the name of the macro that turns a field's name into
 * its offset, so the fields have the same names in every command: text, jsonl, kv_bits, dump_every, ... */
#ifndef SH_CLI_OPTIONS_H
#define SH_CLI_OPTIONS_H

#include "src/cli/args.h"

/* ---- models and texts ---- */

#define SH_MODEL_OPT(field) {"model", SH_OPT_TEXT, field, "DIR", "checkpoint folder (config.json, *.safetensors, " \
    "tokenizer) or\n.gguf file", 0, 0, 0}

#define SH_TEXT_OPT(field) {"text", SH_OPT_LIST, field, "FILE...", "plain text, split into sequences of --length " \
    "tokens", 0, 0, 0}
#define SH_JSONL_OPT(field) {"jsonl", SH_OPT_TEXT, field, "FILE", "JSON lines: each object is one document and one " \
    "sequence", 0, 0, 0}
#define SH_FIELD_OPT(field) {"field", SH_OPT_TEXT, field, "NAME", "key of the text in each --jsonl object (default: " \
    "text)", 0, 0, 0}
#define SH_TOKENS_OPT(field) {"tokens", SH_OPT_TEXT, field, "FILE", "token ids: one JSON array per line and sequence", \
    0, 0, 0}

/* shortest: the least --length; count: its default, in words. */
#define SH_TEXT_OPTS(F, shortest, of_count) \
    SH_TEXT_OPT(F(text)), SH_JSONL_OPT(F(jsonl)), SH_FIELD_OPT(F(field)), SH_TOKENS_OPT(F(tokens)), \
    {"length", SH_OPT_INT, F(length), "N", "tokens per sequence (default: the model's context length)", shortest, \
     1 << 22, 0}, \
    {"min-tokens", SH_OPT_INT, F(least), "N", "skip texts and documents shorter than N tokens", 1, 1 << 22, 0}, \
    {"count", SH_OPT_INT, F(count), "N", "read at most N sequences (default: " of_count ")", 1, 1e9, 0}

/* ---- policies and budgets ---- */

#define SH_BUDGETS "tokens per KV head (17) or a fraction of the sequence (0.2), separated by\ncommas"

/* Lists of policies and of budgets, for commands that compare them. */
#define SH_POLICIES_OPT(field, help) {"policy", SH_OPT_LIST, field, "NAME[:knob=value,...]...", help, 0, 0, 0}
#define SH_BUDGETS_OPT(field) {"budget", SH_OPT_LIST, field, "LIST", SH_BUDGETS "; 0.05..1.0/20 is 20 values, evenly " \
    "spaced\n(default: 0.1,0.2,0.3,0.5)", 0, 0, 0}

#define SH_POLICY_OPT(field, help) {"policy", SH_OPT_TEXT, field, "NAME[:knob=value,...]", help, 0, 0, 0}

#define SH_PREFILL_OPT(field, start) {"prefill", SH_OPT_INT, field, "N", "tokens read with full attention before any " \
    "eviction (default: " start ")", 0, 1 << 22, 0}

#define SH_ROWS_OPT(field) {"rows", SH_OPT_TEXT, field, "renormalised|recorded", "attention that the policy sees: " \
    "renormalised over the kept tokens\n(default), or as recorded", 0, 0, 0}

#define SH_RUN_OPT(field, first) {"run", SH_OPT_INT, field, "N", "use only run N of the store (default: all; they " \
    "must be of one model)", first, 1e9, 0}

#define SH_PER_OPT(field) {"per", SH_OPT_TEXT, field, "layer|head", "one table row per layer (default) or per head", \
    0, 0, 0}

#define SH_DUMP_OPTS(F) \
    {"dump-kept", SH_OPT_TEXT, F(dump), "FILE", "write the kept positions as JSON lines, one per layer, KV head and " \
     "step", 0, 0, 0}, \
    {"dump-every", SH_OPT_INT, F(dump_every), "N", "dump every N-th step only (default: 1)", 1, 1 << 22, 0}

/* The limits differ from command to command. */
#define SH_SAMPLER_OPTS(F, hottest, most_k, least_p) \
    {"temperature", SH_OPT_REAL, F(temperature), "T", "sampling temperature; 0 takes the most likely token (default)", \
     0, hottest, 0}, \
    {"top-k", SH_OPT_INT, F(top_k), "K", "sample from the K most likely tokens; 0: from all (default)", 0, most_k, 0}, \
    {"top-p", SH_OPT_REAL, F(top_p), "P", "sample from the fewest tokens whose probabilities sum to P\n(default: 1)", \
     least_p, 1, 0}

/* ---- number formats and devices ---- */

#define SH_KV_OPTS(F) \
    {"kv-bits", SH_OPT_INT, F(kv_bits), "32|16|8|4", "bits per cached key or value: f32, f16, or 8- or 4-bit codes\n" \
     "(default: 32 with --dtype f32, else 16)", 1, 1024, 0}, \
    {"kv-group", SH_OPT_INT, F(kv_group), "N", "codes that share a scale (default: 64)", 8, 1024, 0}

#define SH_KV_KEYS_OPTS(F) \
    {"kv-keys", SH_OPT_TEXT, F(kv_keys), "token|channel", \
     "codes of keys share scales within a token (default) or, channel by\n" \
     "channel, across slots; a cache that never evicts always uses channel", 0, 0, 0}, \
    {"kv-residual", SH_OPT_INT, F(kv_residual), "N", "with --kv-keys channel: newest keys kept in f16 (default: 8)", \
     1, 1024, 0}

#define SH_WEIGHT_OPTS(F) \
    {"dtype", SH_OPT_TEXT, F(dtype), "f32|f16|bf16", "operand type of matrix products (default: f32)", 0, 0, 0}, \
    {"weight-bits", SH_OPT_INT, F(weight_bits), "16|8|4", \
     "bits per layer weight: 16 stores them as --dtype (default), 8 and\n" \
     "4 as codes in groups of 64 (the output matrix: 8)", 0, 0, 0}, \
    {"weight-prune", SH_OPT_REAL, F(weight_prune), "F", "zero the fraction F of the smallest weights of each layer " \
     "matrix,\nby magnitude (default: 0)", 0, 0.99, 0}

#define SH_DEVICE_MEMORY_OPT(field) {"device-memory", SH_OPT_BYTES, field, "BYTES", "limit on the memory used " \
    "of each device (default: what is free)", 0, 0, 0}

#define SH_TIMING_OPT(field) {"timing", SH_OPT_FLAG, field, NULL, "print the time spent in each stage: products, " \
    "attention, softmax\nand packing, copy, statistics, compression, writer, tokens, eviction", 0, 0, 0}

/* ---- results in a store, and jobs ---- */

#define SH_STORE_OPT(field) {"db", SH_OPT_TEXT, field, "FILE", "trace store", 0, 0, 0}
#define SH_NEW_STORE_OPT(field) {"db", SH_OPT_TEXT, field, "FILE", "trace store to create or append to", 0, 0, 0}
#define SH_FORCE_OPT(field) {"force", SH_OPT_FLAG, field, NULL, "recompute results that the store already has", 0, 0, 0}
#define SH_RESULTS_OPTS(F) \
    {"db", SH_OPT_TEXT, F(db), "FILE", "store for the results; those it already has are not recomputed", 0, 0, 0}, \
    SH_FORCE_OPT(F(force))

#define SH_PART_OPT(field) {"shard", SH_OPT_TEXT, field, "I/N", "do only part I of N and write it to " \
    "FILE.shard-I-of-N next to\n--db FILE (I zero-padded to the width of N); shears merge joins them", 0, 0, 0}

#define SH_CLUSTER_OPT(field) {"rank-timeout", SH_OPT_REAL, field, "S", "under mpirun or srun: mark a rank lost " \
    "after S seconds without\nprogress and give its work to others (default: 600)", 0.1, 1e6, 0}

/* ---- the hardware and the server that capacity and simulate assume ---- */

#define SH_GPUS_OPT(field) {"gpus", SH_OPT_TEXT, field, "FILE", "catalogue of your own GPUs, searched before the " \
    "built-in one", 0, 0, 0}

#define SH_HARDWARE_OPTS(F) \
    {"weights", SH_OPT_TEXT, F(weights), "TYPE", "weight format (default: as published, or as stored in the file)", 0, \
     0, 0}, \
    {"windows", SH_OPT_TEXT, F(windows), "HOW", "how sliding-window layers are charged: model (default), ignore,\n" \
     "vllm:TOKENS or llama:TOKENS in flight", 0, 0, 0}, \
    {"headroom", SH_OPT_INT, F(headroom), "N", "tokens that arrive between two evictions (default: 0)", 0, 1e9, 0}, \
    {"state", SH_OPT_INT, F(state), "BYTES", "policy state per kept token, layer and KV head (default: 0)", 0, 1e6, \
     0}, \
    {"memory", SH_OPT_BYTES, F(memory), "BYTES", "memory per GPU, overriding the catalogue", 1, 0x1p62, 0}, \
    {"util", SH_OPT_REAL, F(util), "F", "usable fraction of that memory (default: 1)", 0, 1, 0}, \
    {"reserve", SH_OPT_REAL, F(reserve), "F", "fraction reserved for the framework; the same as --util 1-F", 0, 0.999, \
     0}, \
    {"overhead", SH_OPT_BYTES, F(overhead), "BYTES", "memory taken by the runtime, where known (default: 0)", 0, 0, \
     0}, \
    {"bandwidth", SH_OPT_REAL, F(bandwidth), "BYTES_PER_S", "memory bandwidth per GPU, overriding the catalogue", 1, \
     1e18, 0}, \
    {"flops", SH_OPT_REAL, F(flops), "F", "FLOP/s per GPU, overriding the catalogue", 1, 1e21, 0}, \
    {"link", SH_OPT_FLAG, F(link), NULL, "include the time of transfers between GPUs", 0, 0, 0}, \
    {"uneven", SH_OPT_FLAG, F(uneven), NULL, "allow a --tp that does not divide the heads", 0, 0, 0}, \
    SH_GPUS_OPT(F(gpus)), \
    {"models", SH_OPT_TEXT, F(models), "FILE", "catalogue of your own models, searched before the built-in one", 0, 0, \
     0}

#endif
