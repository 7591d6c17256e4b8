/* SPDX-License-Identifier: Apache-2.0 */
/* The unit and the digits in which times are shown to people, by the size of the times themselves: the step of a tiny
 * model takes microseconds, a queue minutes. Results for programs keep seconds. */
#ifndef SH_BASE_TIME_UNIT_H
#define SH_BASE_TIME_UNIT_H

struct sh_time_unit {
    const char *name, *whole;           /* "ms", "milliseconds"                                   */
    double per_s;
    int digits;                         /* behind the point, with which the smallest has three     */
};

/* One unit for n times: that in which the largest is at least 1. Those that are not above 0 do not count. */
struct sh_time_unit sh_time_unit(const double *seconds, int n);

#endif
