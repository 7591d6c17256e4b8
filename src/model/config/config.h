/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of a checkpoint, read through the tables of its family into a struct sh_arch or, for any model whose
 * memory can be computed, into the facts that determine it. No weights are needed. Every value is checked here once:
 * counts are positive and fit in an int, so products in size_t cannot overflow. Errors name the key, the value found
 * and the value expected. */
#ifndef SH_MODEL_CONFIG_H
#define SH_MODEL_CONFIG_H

#include <stddef.h>

#include "src/base/err.h"
#include "src/model/arch.h"
#include "src/model/families/family.h"

struct sh_config;

/* `path`: a folder with config.json, or the file itself; or a GGUF file, or a folder with one and no config.json, whose
 * metadata become a config (gguf_config.h). NULL: e says why. */
struct sh_config *sh_config_open(const char *path, struct sh_err *e);
void sh_config_close(struct sh_config *c);                          /* NULL is fine */

/* The family that model_type (or, without it, architectures) names. An unknown one is refused with a list of those that
 * run, or with the reason why there is nothing to plan. */
const struct sh_family *sh_config_family(const struct sh_config *c, struct sh_err *e);
/* Why there is nothing to plan for a model type (or an architecture in GGUF files), a name of n bytes, if it is a
 * common one that shears cannot run; NULL: it is not known as such. SH_PLANNED: what is expected in its place. */
const char *sh_config_unplanned(const char *type, size_t n);
#define SH_PLANNED "a decoder with attention (shears info families lists them)"

/* Does the config belong to a model whose text part is of another family (families/wrappers.c)? */
int sh_config_is_wrapped(const struct sh_config *c);

/* Fields that the family's tables leave 0 are completed: n_kv_head = n_head, d_head = d_model /
 * n_head, d_embed = d_model, scale = 1 / sqrt(d_head), embed_scale = 1, n_rot = rotary_share of d_head. */
int sh_config_arch(const struct sh_config *c, struct sh_arch *out, struct sh_err *e);
/* As sh_config_arch, but without the fields that only the forward pass needs. Counts that neither the config nor the
 * family gives stay 0, as does max_pos if the config has none. */
int sh_config_shape(const struct sh_config *c, const struct sh_family *f, struct sh_arch *out, struct sh_err *e);
/* New sizes of the layers, all 0. From then on a->sizes points to them; they are freed with the config. */
struct sh_layer_sizes *sh_config_sizes(const struct sh_config *c, struct sh_arch *a);
/* config_sizes.c: sets n_head, n_kv_head, d_head and d_ff to the largest that a layer has. -1: the number of query
 * heads is no multiple of the number of KV heads, in a layer or for the largest numbers; the error names `key`. */
int sh_config_take_largest(const struct sh_config *c, const char *key, struct sh_arch *a, struct sh_err *e);
/* As sh_config_take_largest, after reading num_attention_heads_per_layer, num_key_value_heads_per_layer and
 * intermediate_size_per_layer, which may be absent. may_lack: as in GGUF files, 0 query heads mean no attention, 0 KV
 * heads with query heads mean a product in its place, and a width of 0 means no feed-forward block; otherwise all
 * numbers must be at least 1. */
int sh_config_read_sizes(const struct sh_config *c, struct sh_arch *a, int may_lack, struct sh_err *e);
#define SH_WIDEST_HEADS ((size_t)100000000)     /* query heads times their width                      */
/* The config.json key of the count at `field`, an offset in struct sh_arch; NULL: no key gives it. */
const char *sh_config_count_name(const struct sh_config *c, const struct sh_family *f, size_t field);

/* The facts that determine the memory of a model, even of one that cannot run. -1: not readable, an unknown model type,
 * or a key that is missing, out of range, or of unknown effect on the memory. `path`: as for sh_config_open. */
int sh_config_facts(const char *path, struct sh_kv_facts *out, struct sh_err *e);
/* The family of a model that may have no forward pass, so that only its memory can be computed: by model_type alone. */
const struct sh_family *sh_config_counted(const struct sh_config *c, struct sh_err *e);

/* Reads the value of a key, such as "rope_scaling.factor" or "layer_types.3". *out is unchanged if the key is absent or
 * null. -1: wrong type or range. */
int sh_config_count(const struct sh_config *c, const char *key, int max, int *out,
                    struct sh_err *e);                              /* 1 to max                   */
int sh_config_at_least(const struct sh_config *c, const char *key, int min, int max, int *out, struct sh_err *e);
int sh_config_real(const struct sh_config *c, const char *key, double max, float *out, struct sh_err *e);
/* A number from `least` to below 0. */
int sh_config_below(const struct sh_config *c, const char *key, double least, float *out, struct sh_err *e);
/* A list of n numbers above 0. -1 also if the key is absent. */
int sh_config_reals(const struct sh_config *c, const char *key, double max, float *out, int n, struct sh_err *e);
/* The numbers of all members of an object whose names begin with `prefix`: *first and those after it, *n together,
 * below `most`. *n is 0 without such members. */
int sh_config_run(const struct sh_config *c, const char *object, const char *prefix, int most, int *first, int *n,
                  struct sh_err *e);
int sh_config_flag(const struct sh_config *c, const char *key, int *out, struct sh_err *e);
/* A flag outside text_config. */
int sh_config_outer_flag(const struct sh_config *c, const char *key, int *out, struct sh_err *e);
int sh_config_has_text(const struct sh_config *c);                  /* is there a text_config?    */
/* Is one of the words (the list ends with NULL; empty: any word) among the first of the list of that key, outside
 * text_config? */
int sh_config_outer_has(const struct sh_config *c, const char *key, const char *const *words);
int sh_config_word(const struct sh_config *c, const char *key, const char **out, struct sh_err *e);

struct sh_word { const char *name; int value; };
/* One of the words; the list ends with a NULL name. */
int sh_config_choice(const struct sh_config *c, const char *key, const struct sh_word *words, int *out,
                     struct sh_err *e);

/* A count from 1, or "auto", which leaves *out as it is. */
int sh_config_auto(const struct sh_config *c, const char *key, int max, int *out, struct sh_err *e);

/* Entry i of a list with one entry for each layer: it must be there and be one of the words. */
int sh_config_choice_at(const struct sh_config *c, const char *list, int i, const struct sh_word *words, int *out,
                        struct sh_err *e);

int sh_config_has(const struct sh_config *c, const char *key);      /* null counts as present     */
int sh_config_is_null(const struct sh_config *c, const char *key);  /* … and is it null?          */
int sh_config_is_filled(const struct sh_config *c, const char *key); /* an object with keys        */
int sh_config_is_set(const struct sh_config *c, const char *key);   /* … more than null, false, 0 or an empty list */
int sh_config_is(const struct sh_config *c, const char *key, const char *json); /* absent, null, or this value */
int sh_config_check_only(const struct sh_config *c, const char *only, struct sh_err *e); /* checks a family's `only` */
int sh_config_length(const struct sh_config *c, const char *key);   /* of a list; -1: not a list */
/* Calls `visit` for each member of an object, whose names may have dots, with the text at `key` of the member (NULL:
 * there is none), until it returns other than 0. Returns that, or 0. */
typedef int sh_member_fn(void *arg, const char *member, const char *text, struct sh_err *e);
int sh_config_members(const struct sh_config *c, const char *object, const char *key, sh_member_fn *visit, void *arg,
                      struct sh_err *e);
/* The name of key i of an object; NULL: there are fewer. */
const char *sh_config_key_at(const struct sh_config *c, const char *key, int i);
/* The first of up to n names that has a value; if none has, the first. The list may end early with NULL. */
const char *sh_config_first(const struct sh_config *c, const char *const *names, int n);

/* -1 with "key: found …, expected …". */
int sh_config_refuse(const struct sh_config *c, const char *key, const char *expected, struct sh_err *e);
/* The same for a key outside text_config. */
int sh_config_outer_refuse(const struct sh_config *c, const char *key, const char *expected, struct sh_err *e);

/* Fills `r` from the first of these objects that has keys; without one, frequencies are not scaled. Its rope_theta
 * overrides the base in `r`. `original` in `r` is the family's default for original_max_position_embeddings. */
int sh_config_rope(const struct sh_config *c, const char *const *objects, struct sh_arch *a, struct sh_rope *r,
                   struct sh_err *e);
/* Lengthens max_pos if dynamic scaling or YaRN in `r` extends it. */
void sh_config_lengthen(struct sh_arch *a, const struct sh_rope *r);
/* sh_config_rope and sh_config_lengthen, from the keys of LLaMA and its descendants. */
int sh_config_classic_rope(struct sh_arch *a, const struct sh_config *c, struct sh_err *e);
/* As sh_config_classic_rope, for families that rotate whole heads: a partial_rotary_factor is refused, except in
 * GGUF. */
int sh_config_whole_rope(struct sh_arch *a, const struct sh_config *c, struct sh_err *e);
/* rope_parameters with one object for full_attention and one for sliding_attention, either possibly with the share of
 * each head that is rotated. */
int sh_config_ropes_by_kind(struct sh_arch *a, const struct sh_config *c, struct sh_err *e);
/* As sh_config_ropes_by_kind, for families that rotate whole heads. */
int sh_config_whole_ropes_by_kind(struct sh_arch *a, const struct sh_config *c, struct sh_err *e);
/* Does the file have any object with rotary parameters? Without one, some families have a scaling of their own. */
int sh_config_says_rope(const struct sh_config *c);
/* -1: only a part of each head is rotated. */
int sh_config_turns_whole(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e);

/* The window from sliding_window; null means none, `fallback` is used if the key is absent. */
int sh_config_window(const struct sh_config *c, int fallback, struct sh_arch *a, struct sh_err *e);

/* The layers with a window: those that layer_types names or, without it, those of a rule. */
typedef int sh_layer_rule(int layer, int number);
int sh_config_windows(const struct sh_config *c, sh_layer_rule *is_local, int number, struct sh_arch *a,
                      struct sh_err *e);
/* Layers that do not rotate: those with 0 in no_rope_layers; without the list, each no_rope_layer_interval-th (4). */
int sh_config_still_layers(const struct sh_config *c, struct sh_arch *a, struct sh_err *e);
/* Layers without a window do not rotate, if others have one. */
void sh_config_still_globals(struct sh_arch *a);
int sh_config_layer_types(const struct sh_config *c, const char *list, struct sh_arch *a, struct sh_err *e);

/* What a list of strings says about the blocks of each layer. */
enum sh_layer_block { SH_BLOCK_ATTENTION = 1, SH_BLOCK_RECURRENT, SH_BLOCK_FEED, SH_BLOCK_EXPERTS };
int sh_config_blocks(const struct sh_config *c, const char *list, const struct sh_word *words, struct sh_arch *a,
                     struct sh_err *e);
void sh_config_set_block(struct sh_arch *a, int layer, enum sh_layer_block block);
/* The layers in the list attend; all others are recurrent. 1: the key is absent or null. */
int sh_config_attending(const struct sh_config *c, const char *list, struct sh_arch *a, struct sh_err *e);
/* -1: no layer attends; the error names `key`. */
int sh_config_check_attends(const struct sh_config *c, const char *key, const struct sh_arch *a, struct sh_err *e);
/* Checks the delta rule's heads: their numbers must fit each other, and their sizes are bounded. All of a->recurrent
 * must be set. */
int sh_config_check_delta(const struct sh_config *c, const struct sh_arch *a, struct sh_err *e);
/* Checks the sizes of a state space, which are bounded. All of a->recurrent must be set; `key` has the number of
 * heads. */
int sh_config_check_scan(const struct sh_config *c, const char *key, const struct sh_arch *a, struct sh_err *e);

/* For families whose memory is only computed. count: a count up to 10^8; read: the rows of a table; pattern: the
 * pattern of layers from a list of strings, one letter each (models.txt); the last one: the pattern from layer_types,
 * 1: there is no such list. */
int sh_facts_count(const struct sh_config *c, const char *key, int min, int *field, struct sh_err *e);
int sh_facts_read(const struct sh_config *c, const struct sh_fact_key *k, struct sh_kv_facts *f, struct sh_err *e);
int sh_facts_pattern(const struct sh_config *c, const char *list, const struct sh_word *words, struct sh_kv_facts *f,
                     struct sh_err *e);
int sh_facts_layer_types(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e);

const char *sh_config_path(const struct sh_config *c);              /* of the file                */
const void *sh_config_text(const struct sh_config *c, size_t *bytes); /* the file as it is; of GGUF: the config
                                                                       * that its metadata became */
int sh_config_is_gguf(const struct sh_config *c);
const char *sh_config_key_name(const struct sh_config *c, const char *key); /* as the file calls it */

#endif
