/* SPDX-License-Identifier: Apache-2.0 */
/* The unit and digits in which times are shown to people: the step of a tiny model takes microseconds, a queue minutes.
 * Results for programs keep seconds. */
#ifndef SH_BASE_TIME_UNIT_H
#define SH_BASE_TIME_UNIT_H

struct sh_time_unit {
    const char *name, *whole;           /* "ms", "milliseconds"                                   */
    double per_s;
    int digits;                         /* after the point, so that the smallest shows three       */
};

/* One unit for n times: the one in which the largest is at least 1. Times that are not positive are ignored. */
struct sh_time_unit sh_time_unit(const double *seconds, int n);

#endif
