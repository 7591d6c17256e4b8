/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share work of many pieces, on a machine that may be busy with something else.
 *
 *     static void piece(void *arg, int i) { … }
 *     sh_team_each(n_threads, n, piece, arg);          piece(arg, i) for every i in [0, n), in any order
 *
 *     static void work(void *arg, struct sh_member *me) { …; while (sh_member_take(me, &i)) …; … }
 *     sh_team_run(n_threads, n, work, arg);            work once in every thread that takes part
 *
 * Every thread that calls has a team of its own: itself and up to n_threads - 1 others, which are started when they
 * are first needed and end with it. The caller takes part. It waits for threads that are in the middle of a piece,
 * never for one that has not begun: a thread from which the system took its processor holds up one piece at most (more
 * where its work takes several before it does them).
 * Work that takes less time than it takes to share it (a few microseconds; more while other processes want the
 * processors) is done by the caller alone: how long a piece takes is learnt for each work function.
 * A thread that waits looks for new work for a moment (SPIN_NS in team.c) and then sleeps; if the system takes its
 * processor away while it looks, because others want it, it sleeps without looking for some time.
 *
 * A thread takes its own pieces first, [n * thread / n_threads, n * (thread + 1) / n_threads) in ascending order, and
 * then other threads' from the back. What a piece wrote is visible to the caller afterwards. Work that is begun within
 * a piece runs in the thread that began it, alone. */
#ifndef SH_BASE_TEAM_H
#define SH_BASE_TEAM_H

enum { SH_TEAM_MOST = 1024 };           /* threads: more are never used */

struct sh_share;

/* One thread that takes part. */
struct sh_member {
    int thread;                         /* number in [0, n_threads); 0 is the caller; no two have the same */
    int n_threads;                      /* threads that may take part                                     */
    int turn;                           /* the thread whose pieces it takes: its own at 0                 */
    int taken;                          /* pieces                                                         */
    struct sh_share *share;             /* [n_threads]                                                    */
};

/* The next piece that nobody has taken, or 0. */
int sh_member_take(struct sh_member *me, int *piece);

typedef void sh_team_work(void *arg, struct sh_member *me);

/* n_threads < 1 stands for sh_team_threads(). */
void sh_team_run(int n_threads, int n, sh_team_work *work, void *arg);
void sh_team_each(int n_threads, int n, void (*piece)(void *arg, int i), void *arg);

/* Threads that this process may use: OMP_NUM_THREADS where it is set, else the processors that the system gives it, by
 * affinity and by its control group's share. At least 1. */
int sh_team_threads(void);

#endif
