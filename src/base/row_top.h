/* SPDX-License-Identifier: Apache-2.0 */
/* The mass of the largest fifth of a row of attention, without sorting it: the least of them is searched for by
 * counting. */
#ifndef SH_BASE_ROW_TOP_H
#define SH_BASE_ROW_TOP_H

/* How many of n scores the largest fifth are. */
static inline int sh_row_top(int n)
{
    return (n + 4) / 5;
}

/* The sum of the ceil(0.2 n) largest scores. from: how many scores are not below 1 / n, rounded up. */
double sh_row_mass_top(const float *row, int n, int from);

/* What a row tells about the head's next one: where its largest fifth ends (`least`: 0, nothing is known), how many of
 * its n scores there are for each step of a float's bits next to that, and by how many such guesses were off, both
 * divided by n. */
struct sh_row_guess {
    float least, slope, error;
};

/* The same number for a row whose scores add up to 1, to the same bit whatever the guess, which is then of this row.
 * from: how many scores are not below guess->least. */
double sh_row_mass_top_near(const float *row, int n, int from, struct sh_row_guess *guess);

#endif
