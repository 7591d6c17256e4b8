/* SPDX-License-Identifier: Apache-2.0 */
/* See quickselect.h. Hoare's selection. */
#include "planner/policy/quickselect.h"

float sh_quickselect(float *x, int n, int k)
{
    int low = 0, high = n - 1;
    while (low < high) {
        float pivot = x[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot)
                i++;
            while (pivot < x[j])
                j--;
            if (i <= j) {
                float swap = x[i];
                x[i++] = x[j];
                x[j--] = swap;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return x[k];
}
