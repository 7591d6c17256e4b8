/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the layout of what shears.h makes public, for tests/cli/library.sh to compare with tests/golden/abi.txt: a
 * program that was built with another one would read the wrong bytes. */
#include <stddef.h>
#include <stdio.h>

#include <shears.h>

#define SIZE(type) printf("struct %s: %zu bytes\n", #type, sizeof(struct type))
#define AT(type, field) \
    printf("  %s at %zu, %zu bytes\n", #field, offsetof(struct type, field), sizeof((struct type *)0)->field)
#define NUMBER(name) printf("%s = %d\n", #name, (int)name)

static void print_inputs(void)
{
    SIZE(shears_option);
    AT(shears_option, name);
    AT(shears_option, value);
    SIZE(shears_watch);
    AT(shears_watch, progress);
    AT(shears_watch, to);
    SIZE(shears_column);
    AT(shears_column, name);
    AT(shears_column, kind);
    AT(shears_column, ints);
    AT(shears_column, reals);
    AT(shears_column, texts);
    SIZE(shears_row);
    AT(shears_row, q);
    AT(shears_row, first_key);
    AT(shears_row, n);
    AT(shears_row, rest);
    AT(shears_row, score);
}

static void print_recording(void)
{
    SIZE(shears_recorded);
    AT(shears_recorded, bytes);
    AT(shears_recorded, model);
    AT(shears_recorded, family);
    AT(shears_recorded, weights);
    AT(shears_recorded, fingerprint);
    AT(shears_recorded, n_layer);
    AT(shears_recorded, n_head);
    AT(shears_recorded, n_kv_head);
    AT(shears_recorded, d_head);
    AT(shears_recorded, d_model);
    AT(shears_recorded, n_vocab);
    AT(shears_recorded, max_pos);
    AT(shears_recorded, backend);
    AT(shears_recorded, device);
    AT(shears_recorded, dtype);
    AT(shears_recorded, command);
    AT(shears_recorded, attention);
    AT(shears_recorded, record);
    AT(shears_recorded, codec);
    AT(shears_recorded, vectors);
    SIZE(shears_rows);
    AT(shears_rows, sequence);
    AT(shears_rows, layer);
    AT(shears_rows, first_row);
    AT(shears_rows, n_row);
    AT(shears_rows, first_key);
    AT(shears_rows, n_key);
    AT(shears_rows, window);
    AT(shears_rows, n_head);
    AT(shears_rows, score);
    AT(shears_rows, logit);
    AT(shears_rows, log8);
    AT(shears_rows, sink);
    SIZE(shears_vectors);
    AT(shears_vectors, sequence);
    AT(shears_vectors, layer);
    AT(shears_vectors, kind);
    AT(shears_vectors, n_head);
    AT(shears_vectors, n_row);
    AT(shears_vectors, width);
    AT(shears_vectors, at);
}

static void print_policy(void)
{
    SIZE(shears_head);
    AT(shears_head, knob);
    AT(shears_head, layer);
    AT(shears_head, head);
    AT(shears_head, n_layer);
    AT(shears_head, budget);
    AT(shears_head, prefill);
    AT(shears_head, capacity);
    AT(shears_head, n_token);
    AT(shears_head, d_head);
    AT(shears_head, seed);
    SIZE(shears_cache);
    AT(shears_cache, head);
    AT(shears_cache, n_slot);
    AT(shears_cache, n);
    AT(shears_cache, newest);
    AT(shears_cache, pos);
    AT(shears_cache, k);
    AT(shears_cache, v);
    AT(shears_cache, d_head);
    AT(shears_cache, rows_by_slot);
    SIZE(shears_step);
    AT(shears_step, t);
    AT(shears_step, n_row);
    AT(shears_step, row);
    AT(shears_step, q);
    AT(shears_step, n_query);
    AT(shears_step, future);
    SIZE(shears_knob);
    AT(shears_knob, name);
    AT(shears_knob, value);
    AT(shears_knob, least);
    AT(shears_knob, most);
    AT(shears_knob, is_whole);
    SIZE(shears_policy);
    AT(shears_policy, bytes);
    AT(shears_policy, name);
    AT(shears_policy, knobs);
    AT(shears_policy, needs);
    AT(shears_policy, rows);
    AT(shears_policy, admit);
    AT(shears_policy, observe);
    AT(shears_policy, score);
}

static void print_evictor(void)
{
    SIZE(shears_evictor_setup);
    AT(shears_evictor_setup, bytes);
    AT(shears_evictor_setup, policy);
    AT(shears_evictor_setup, budget);
    AT(shears_evictor_setup, plan);
    AT(shears_evictor_setup, model);
    AT(shears_evictor_setup, layers);
    AT(shears_evictor_setup, kv_heads);
    AT(shears_evictor_setup, length);
    AT(shears_evictor_setup, prefill);
    AT(shears_evictor_setup, seed);
    SIZE(shears_evictor_next);
    AT(shears_evictor_next, n);
    AT(shears_evictor_next, kv_heads);
    AT(shears_evictor_next, n_slot);
    AT(shears_evictor_next, slot);
    AT(shears_evictor_next, pos);
    SIZE(shears_evictor_rows);
    AT(shears_evictor_rows, n);
    AT(shears_evictor_rows, n_slot);
    AT(shears_evictor_rows, n_query);
    AT(shears_evictor_rows, row);
    AT(shears_evictor_rows, seen);
    AT(shears_evictor_rows, q);
    AT(shears_evictor_rows, k);
    AT(shears_evictor_rows, v);
    SIZE(shears_evictor_moved);
    AT(shears_evictor_moved, kv_heads);
    AT(shears_evictor_moved, n_slot);
    AT(shears_evictor_moved, from);
}

int main(void)
{
    print_inputs();
    print_recording();
    print_policy();
    print_evictor();
    NUMBER(SHEARS_OK);
    NUMBER(SHEARS_FAILED);
    NUMBER(SHEARS_MISUSED);
    NUMBER(SHEARS_ABSENT);
    NUMBER(SHEARS_INT);
    NUMBER(SHEARS_REAL);
    NUMBER(SHEARS_TEXT);
    NUMBER(SHEARS_BOOL);
    NUMBER(SHEARS_NEEDS_SCORES);
    NUMBER(SHEARS_NEEDS_KEYS);
    NUMBER(SHEARS_NEEDS_VALUES);
    NUMBER(SHEARS_NEEDS_QUERIES);
    NUMBER(SHEARS_NEEDS_PROMPT);
    return 0;
}
