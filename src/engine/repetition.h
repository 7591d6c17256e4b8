/* SPDX-License-Identifier: Apache-2.0 */
/* How much a text repeats itself, in tokens, and how much alike the rows of its attention are (section
 * 4.4 of the Scissorhands paper's outlook: do repeated patterns of attention go with repeated text?). */
#ifndef SH_ENGINE_REPETITION_H
#define SH_ENGINE_REPETITION_H

#include <stdint.h>

/* rep-n = 1 - different n-grams / n-grams, distinct-n = different / all (Welleck et al., "Neural text
 * generation with unlikelihood training", 2020; Li et al., 2016). NaN: no n-gram at all. */
double sh_repetition(const int32_t *tokens, int n_token, int n);
double sh_distinct(const int32_t *tokens, int n_token, int n);

/* Length of the longest run of tokens that occurs at two places (which may overlap). */
int sh_longest_repeat(const int32_t *tokens, int n_token);

/* Pivotal tokens of a row are those above 1/(entries of the row); likeness of two rows is the Jaccard
 * index of their pivotal sets, compared with that of random sets of their sizes among as many tokens:
 * E|A and B| / (|A| + |B| - E|A and B|), E = |A| |B| / n. Rows are of one head, one after another. */
struct sh_row_likeness {
    unsigned char *before;              /* [n_before]: the last row's set, by position            */
    int n_before, size_before;
    double sum, chance;                 /* over pairs of neighbouring rows                        */
    long long pairs;                    /* where either set has a token                           */
};

/* Row of token t over its slots: pos [n_slot], -1: free; row [n_slot]. */
void sh_row_likeness_add(struct sh_row_likeness *l, int t, const int *pos, const float *row, int n_slot);
void sh_row_likeness_clear(struct sh_row_likeness *l);  /* frees the set, keeps the sums; {0} is fine */

#endif
