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
    SH_ROPE_YARN,               /* the same with a ramp over elements, and scores sharpened       */
    SH_ROPE_LONG,               /* each frequency / one number up to `original`, / another beyond */
    SH_ROPE_PROPORTIONAL        /* the first `pairs` of a head turn; all frequencies / factor     */
};

enum { SH_ROPE_PAIRS = 256 };               /* longrope: pairs of a head, at most                 */

struct sh_rope {
    enum sh_rope_kind kind;
    float base;                             /* theta                                              */
    float factor;                           /* how much longer                                    */
    int original;                           /* positions that the model was trained on            */
    float low, high;                        /* llama3: turns within `original` that bound the ramp */
    float fast, slow;                       /* yarn: the same                                     */
    float attention;                        /* yarn, longrope: cos and sin are multiplied by it   */
    float long_attention;                   /* longrope: the same for longer sequences; 0: no other */
    int pairs;                              /* proportional                                       */
    int is_backward;                        /* angles are negative                                */
    int is_rough;                           /* yarn: the ramp begins and ends at whole elements   */
    float stretch[2][SH_ROPE_PAIRS];        /* longrope: of sequences up to `original`, and of longer ones */
};

/* The length that determines the frequencies of a sequence: sequences with the same value share a table. */
int sh_rope_length(const struct sh_rope *r, int n_tokens);

/* The angles per position of the n_rot / 2 pairs. */
void sh_rope_frequencies(const struct sh_rope *r, int n_rot, int length, float *out);

/* cosine, sine [n, n_rot / 2]: of n positions from `first` on. */
void sh_rope_table(const struct sh_rope *r, int n_rot, int length, int first, int n, float *cosine, float *sine);

/* The defaults for `attention` at a factor: YaRN's, and longrope's. */
double sh_rope_sharpening(double factor, double weight);
double sh_rope_long_attention(double factor, int original);

#endif
