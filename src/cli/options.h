/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several commands take, each written once. A macro _OPT is one row of an option table and takes the
 * offset of its field. A macro _OPTS is several rows; it takes the name of the macro that turns a field's name into
 * its offset, so the fields have the same names in every command: text, jsonl, kv_bits, dump_every, ... */
#ifndef SH_CLI_OPTIONS_H
#define SH_CLI_OPTIONS_H

#include "planner/policy/budget.h"
#include "planner/policy/policy.h"
#include "planner/replay/replay.h"
#include "plots/gp.h"
#include "src/app/common/page_args.h"
#include "src/cli/commands.h"

/* ---- models and texts ---- */

#define SH_MODEL_OPT(field) \
    SH_TEXT("model", field, "DIR", "checkpoint folder (config.json, *.safetensors, tokenizer) or\n.gguf file")

#define SH_TEXT_OPT(field) \
    SH_LIST("text", field, "FILE...", "plain text, split into sequences of --length tokens; -: standard\n" \
        "input")
#define SH_JSONL_OPT(field) SH_TEXT("jsonl", field, "FILE", "JSON lines: each object is one document and one sequence")
#define SH_FIELD_OPT(field) SH_TEXT("field", field, "NAME", "key of the text in each --jsonl object (default: text)")
#define SH_TOKENS_OPT(field) \
    SH_TEXT("tokens", field, "FILE", "token ids: one JSON array, and so one sequence, per line")

/* shortest: the least --length; count: its default, in words. */
#define SH_TEXT_OPTS(F, shortest, of_count) \
    SH_TEXT_OPT(F(text)), SH_JSONL_OPT(F(jsonl)), SH_FIELD_OPT(F(field)), SH_TOKENS_OPT(F(tokens)), \
    SH_INT("length", F(length), "N", shortest, 1 << 22, "tokens per sequence (default: the model's context length)"), \
    SH_INT("min-tokens", F(least), "N", 1, 1 << 22, "skip texts and documents shorter than N tokens"), \
    SH_INT("count", F(count), "N", 1, 1e9, "read at most N sequences (default: " of_count ")")

/* ---- policies and budgets ---- */

#define SH_BUDGETS "tokens per KV head (such as 17 or 4k) or fractions of the sequence\n" \
    "(such as 0.2 or 20%), separated by commas"

/* Lists of policies and of budgets, for commands that compare them. */
#define SH_POLICIES_OPT(field, help) SH_LIST("policy", field, "NAME[:knob=value,...]...", help)
#define SH_BUDGETS_OPT(field) \
    SH_LIST("budget", field, "LIST", SH_BUDGETS \
        ";\n0.05..1.0/20 is 20 values, evenly spaced (default:\n0.1,0.2,0.3,0.5)")

#define SH_POLICY_OPT(field, help) SH_TEXT("policy", field, "NAME[:knob=value,...]", help)

#define SH_PREFILL_OPT(field, start) \
    SH_INT("prefill", field, "N", 0, 1 << 22, "tokens read with full attention before any eviction (default: " start \
        ")")

#define SH_ROWS_OPT(field) \
    SH_TEXT("rows", field, "renormalised|recorded", "attention that the policy sees: renormalised over the kept " \
        "tokens\n(default), or as recorded")

#define SH_RUN_OPT(field, first) \
    SH_INT("run", field, "N", first, 1e9, "use only run N of the store (default: all; they must be of one model)")

#define SH_MEASURED_ON_OPT(field, what) \
    SH_TEXT("measured-on", field, "TEXT", what "use only results of this text, such as book.txt (default:\n" \
        "the only one; results of several are not mixed)")

#define SH_PER_OPT(field) SH_TEXT("per", field, "layer|head", "one table row per layer (default) or per head")

#define SH_DUMP_OPTS(F) \
    SH_TEXT("dump-kept", F(dump), "FILE", "write the kept positions as JSON lines, one per layer, KV head and step"), \
    SH_INT("dump-every", F(dump_every), "N", 1, 1 << 22, "dump every N-th step only (default: 1)")

/* The limits differ from command to command. */
#define SH_SAMPLER_OPTS(F, hottest, most_k, least_p) \
    SH_REAL("temperature", F(temperature), "T", 0, hottest, \
        "sampling temperature; 0 takes the most likely token (default)"), \
    SH_INT("top-k", F(top_k), "K", 0, most_k, "sample from the K most likely tokens; 0: from all (default)"), \
    SH_REAL("top-p", F(top_p), "P", least_p, 1, "sample from the fewest tokens whose probabilities sum to P\n" \
        "(default: 1)")

/* What these options say; policies and budgets are added to the n of `to`. */
int sh_read_policies(const struct sh_list *typed, struct sh_policy_spec *to, int most, int *n, struct sh_err *e);
int sh_read_budgets(const struct sh_list *typed, struct sh_budget *to, int *n, struct sh_err *e);
int sh_read_budget(const char *text, struct sh_budget *to, struct sh_err *e);
int sh_read_rows(const char *text, enum sh_rows *to, struct sh_err *e);

/* A remark if a budget is a single token: "1", where the whole sequence, 1.0, may have been meant. */
void sh_note_one_token(struct sh_out *o, const struct sh_budget *budget, int n);

/* ---- figures ---- */

#define SH_FIGURE_FILES "FILE.{svg,png,pdf,eps,tex}"

/* The page of figures; a macro of a member `paper`, a struct sh_page_args. */
#define SH_PAGE_OPTS(F) \
    SH_TEXT("width", F(paper.width), "SIZE", "page width: 3.3in, 16cm, 84mm, 240pt, or a number of inches (default:\n" \
        "set by the figure)"), \
    SH_TEXT("height", F(paper.height), "SIZE", "page height (default: follows from the width; at most 4in on\n" \
        "pages up to 4in wide)"), \
    SH_TEXT("panels", F(paper.panels), "N,...", "draw only these panels, counted from 1 in the figure's order"), \
    SH_TEXT("title", F(paper.title), "TEXT", "heading instead of the figure's own"), \
    SH_FLAG("no-title", F(paper.no_title), "draw neither heading nor settings"), \
    SH_TEXT("font", F(paper.font), "NAME", "font of all text (default: sans-serif; .tex has LaTeX's)"), \
    SH_REAL("font-size", F(paper.font_size), "PT", 4, 40, "size of text in points (default: follows from the width)"), \
    SH_INT("dpi", F(paper.dpi), "N", 50, 1200, "dots per inch of a .png (default: 200)")

/* What these options say; strings are not copied. */
int sh_read_page(const struct sh_page_args *typed, struct sh_gp_look *to, struct sh_err *e);

/* Fails before the work if a figure cannot be written, or its page cannot be as typed. path NULL is fine. */
int sh_check_figure(const char *path, const struct sh_page_args *typed, struct sh_err *e);

/* ---- number formats and devices ---- */

#define SH_KV_OPTS(F) \
    SH_INT("kv-bits", F(kv_bits), "32|16|8|4", 1, 1024, "bits per cached key or value: f32, f16, or 8- or 4-bit " \
        "codes\n(default: 32 with --dtype f32, else 16)"), \
    SH_INT("kv-group", F(kv_group), "N", 8, 1024, "codes that share a scale (default: 64)")

#define SH_KV_KEYS_OPTS(F) \
    SH_TEXT("kv-keys", F(kv_keys), "token|channel", "key codes share scales within a token (default) or, channel by\n" \
        "channel, across slots; a cache that never evicts always uses channel"), \
    SH_INT("kv-residual", F(kv_residual), "N", 1, 1024, \
        "with --kv-keys channel: newest keys kept in f16 (default: 8)")

#define SH_WEIGHT_OPTS(F) \
    {"dtype", SH_OPT_FORMAT, F(dtype), "f32|f16|bf16", "operand type of matrix products (default: f32)", 0, 0, 0}, \
    SH_INT("weight-bits", F(weight_bits), "16|8|4", 0, 0, "bits per weight of the layers: 16 (default) stores " \
        "them as --dtype,\n" \
        "8 and 4 as codes in groups of 64 (the output matrix then has 8)"), \
    SH_REAL("weight-prune", F(weight_prune), "F", 0, 0.99, "zero the smallest fraction F of each layer matrix's " \
        "weights, by\nmagnitude (default: 0)")

#define SH_ACTIVATION_OPT(field, usual) \
    SH_INT("activation-bits", field, "32|16|8", 1, 1024, "bits of the activations that are multiplied with packed " \
        "weights\n(GGUF, AWQ, GPTQ, MXFP4 ...): 32, as they are; 16, nearly the same\nbut faster; 8, with a scale " \
        "for each 32 numbers, much as in\nllama.cpp (default: " usual ")")

#define SH_DEVICE_MEMORY_OPT(field) \
    SH_BYTES("device-memory", field, "BYTES", 0, 0, "limit on the memory used on each device (default: what is free)")

#define SH_TIMING_OPT(field) \
    SH_FLAG("timing", field, "print the time spent in each stage: products, attention, softmax\n" \
        "and packing, copy, statistics, compression, writer, tokens, eviction")

/* ---- results in a store, and jobs ---- */

#define SH_STORE_OPT(field) SH_TEXT("db", field, "FILE", "trace store")
#define SH_NEW_STORE_OPT(field) SH_TEXT("db", field, "FILE", "trace store to create or append to")
#define SH_FORCE_OPT(field) SH_FLAG("force", field, "recompute results that the store already has")
#define SH_RESULTS_OPTS(F) \
    SH_TEXT("db", F(db), "FILE", "store for the results; those it already has are not recomputed"), \
    SH_FORCE_OPT(F(force))

#define SH_PART_OPT(field) \
    SH_TEXT("shard", field, "I/N", "do only part I of N and write it to FILE.shard-I-of-N next to\n" \
        "--db FILE (I zero-padded to the width of N); shears merge joins them")

#define SH_CLUSTER_OPT(field) \
    SH_SECONDS("rank-timeout", field, 0.1, 1e6, "under mpirun or srun: mark a rank as lost after S seconds\n" \
        "without progress and give its work to others (default: 600)")

/* ---- the hardware and the server that capacity and simulate assume ---- */

#define SH_GPUS_OPT(field) \
    SH_TEXT("gpus", field, "FILE", "catalogue of your own GPUs, searched before the built-in one")

#define SH_HARDWARE_OPTS(F) \
    SH_TEXT("weights", F(weights), "TYPE", "weight format (default: as published, or as stored in the file)"), \
    SH_TEXT("weights-attention", F(weights_attention), "TYPE", "format of the attention matrices (default: that of\n" \
        "--weights)"), \
    SH_INT("lora", F(lora), "N", 0, 100000, "LoRA adapters that the GPU holds; each sequence has one at random\n" \
        "(default: 0)"), \
    SH_INT("lora-rank", F(lora_rank), "N", 1, 4096, "largest rank of these adapters (default: 16)"), \
    SH_TEXT("windows", F(windows), "HOW", "how the cache of sliding-window layers is counted: model (default),\n" \
        "ignore, vllm:TOKENS or llama:TOKENS (TOKENS in flight)"), \
    SH_INT("headroom", F(headroom), "N", 0, 1e9, "tokens that arrive between two evictions (default: 0)"), \
    SH_INT("state", F(state), "BYTES", 0, 1e6, "policy state per kept token, layer and KV head (default: 0)"), \
    SH_FLAG("policy-state", F(policy_state), "instead of --state: count what the policy of the plan or measured\n" \
        "budget stores in this program's caches, also to choose the smallest one;\n" \
        "without both it counts as 0"), \
    SH_BYTES("memory", F(memory), "BYTES", 1, 0x1p62, "memory per GPU, overriding the catalogue"), \
    SH_REAL("util", F(util), "F", 0, 1, "usable fraction of that memory (default: 1)"), \
    SH_REAL("reserve", F(reserve), "F", 0, 0.999, "fraction reserved for the framework; the same as --util 1-F"), \
    SH_BYTES("overhead", F(overhead), "BYTES", 0, 0, "memory taken by the runtime, where known (default: 0)"), \
    SH_REAL("bandwidth", F(bandwidth), "BYTES_PER_S", 1, 1e18, "memory bandwidth per GPU, overriding the catalogue"), \
    SH_REAL("flops", F(flops), "F", 1, 1e21, "FLOP/s per GPU, overriding the catalogue"), \
    SH_FLAG("link", F(link), "include the time of transfers between GPUs"), \
    SH_FLAG("uneven", F(uneven), "allow a --tp that does not divide the heads"), \
    SH_GPUS_OPT(F(gpus)), \
    SH_TEXT("models", F(models), "FILE", "catalogue of your own models, searched before the built-in one")

#endif
