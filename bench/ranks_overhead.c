/* SPDX-License-Identifier: Apache-2.0 */
/* What handing out work costs: every rank sleeps through units of so many seconds, so any number of ranks fits
 * on any machine, and whatever the whole takes longer than its sleeps is the cost. Run by mpirun:
 *
 *     mpirun --oversubscribe -n 64 ranks_overhead UNITS_OF_A_RANK SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/ranks/ranks.h"

static int sleep_through(void *to, int unit, struct sh_err *e)
{
    double s = *(const double *)to;
    struct timespec pause = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    (void)unit;
    return nanosleep(&pause, NULL) ? sh_fail(e, "woken up") : 0;
}

int main(int argc, char **argv)
{
    struct sh_rank_place me = {0};
    struct sh_err e = {0};
    if (argc != 3)
        return SH_MISUSED;
    int each = (int)strtol(argv[1], NULL, 10), lost;
    double seconds = strtod(argv[2], NULL);
    const struct sh_ranks *r = sh_ranks_open(&me, 120, &e);
    if (!r) {
        fprintf(stderr, "%s\n", e.text);
        return (int)e.status;
    }
    struct sh_work_queue s = {.n = each * me.size, .run = sleep_through, .to = &seconds, .timeout_s = 60, .quiet = 1,
                         .what = "sleeping"};
    struct sh_work_unit *unit = xcalloc((size_t)s.n, sizeof *unit);
    double began = sh_now_s();
    s.unit = unit;
    int bad = sh_work_queue_run(r, &me, &s, &lost, &e);
    double took = sh_now_s() - began, least = each * seconds;
    if (me.rank == 0 && !bad)
        printf("{\"ranks\": %d, \"units\": %d, \"unit_s\": %g, \"took_s\": %.4f, \"least_s\": %g, "
               "\"overhead\": %.4f}\n", me.size, s.n, seconds, took, least, took / least - 1);
    free(unit);
    sh_ranks_close(r, 60, bad ? SH_FAILED : SH_OK);
    return bad ? SH_FAILED : SH_OK;
}
