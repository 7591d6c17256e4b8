/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions on the host: the frequencies of a model, their scaling for long texts, and the tables that a
 * backend's rotary operation takes. Rounded where transformers rounds: frequencies and angles are f32. */
#ifndef SH_MODEL_ROPE_H
#define SH_MODEL_ROPE_H

enum sh_rope_kind {
    SH_ROPE_PLAIN,
    SH_ROPE_LINEAR,             /* all frequencies / factor                                       */
    SH_ROPE_DYNAMIC,            /* a larger base for sequences longer than `original`             */
    SH_ROPE_LLAMA3,             /* low frequencies / factor, high ones kept, a ramp between       */
    SH_ROPE_YARN,               /* as LLAMA3 with a ramp over elements, and scores are sharpened  */
    SH_ROPE_LONG,               /* each frequency / its number in `stretch`                       */
    SH_ROPE_PROPORTIONAL        /* only the first `pairs` of a head rotate; all frequencies / factor */
};

enum { SH_ROPE_PAIRS = 256 };               /* longrope: pairs of a head, at most                 */

struct sh_rope {
    enum sh_rope_kind kind;
    float base;                             /* theta                                              */
    float factor;                           /* factor of the scaling                              */
    int original;                           /* positions that the model was trained on            */
    float low, high;                        /* llama3: turns within `original` that bound the ramp */
    float fast, slow;                       /* yarn: turns that bound its ramp                    */
    float attention;                        /* yarn, longrope: cos and sin are multiplied by it   */
    float long_attention;                   /* longrope: `attention` for longer sequences; 0: the same */
    int pairs;                              /* proportional                                       */
    int is_backward;                        /* angles are negative                                */
    int is_rough;                           /* yarn: the ramp begins and ends at whole elements   */
    float stretch[2][SH_ROPE_PAIRS];        /* longrope: divisors of frequencies, for sequences up to `original` and
                                             * longer ones */
    int is_learned;                         /* the frequency of pair i is also multiplied by exp(power[i]) */
    float power[SH_ROPE_PAIRS];
};

/* The length that determines the frequencies of a sequence: sequences with the same value share a table. */
int sh_rope_length(const struct sh_rope *r, int n_tokens);

/* The angle per position of each of the n_rot / 2 pairs. */
void sh_rope_frequencies(const struct sh_rope *r, int n_rot, int length, float *out);

/* Fills cosine and sine [n, n_rot / 2] for n positions from `first` on. */
void sh_rope_table(const struct sh_rope *r, int n_rot, int length, int first, int n, float *cosine, float *sine);

/* The defaults of `attention` for a factor: YaRN's, and longrope's. */
double sh_rope_sharpening(double factor, double weight);
double sh_rope_long_attention(double factor, int original);

#endif
