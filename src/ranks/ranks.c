/* SPDX-License-Identifier: Apache-2.0 */
#include "src/ranks/ranks.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/progress.h"

static int number(const char *name)
{
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : 0;
}

int sh_ranks_are_there(void)
{
    return number("OMPI_COMM_WORLD_SIZE") > 1 || number("PMI_SIZE") > 1 ||
           (getenv("PMIX_RANK") && number("SLURM_STEP_NUM_TASKS") != 1);
}

int sh_ranks_are_mute(void)
{
    return number("SLURM_STEP_NUM_TASKS") > 1 && getenv("SLURM_PROCID") && !sh_ranks_are_there();
}

static const struct sh_ranks *load(const char *path, struct sh_err *e)
{
    void *file = dlopen(path, RTLD_NOW | RTLD_GLOBAL);  /* Open MPI's components need its symbols */
    const struct sh_ranks *r = file ? dlsym(file, SH_RANKS_SYMBOL) : NULL;
    if (!r)
        sh_absent(e, "mpi: cannot load: %s", dlerror());
    else if (r->abi != SH_RANKS_ABI)
        sh_absent(e, "mpi: cannot load: %s: built for another version: its interface version is %u, this program's is "
                     "%u", path, r->abi, (unsigned)SH_RANKS_ABI);
    else
        return r;
    return NULL;
}

static volatile sig_atomic_t status_then;

/* In a signal handler: async-signal-safe calls only. */
static void leave(int number)
{
    static const char start[] = "shears: mpi: not all ranks have started: at least one is dead or hangs\n";
    (void)number;
    if (status_then < 0 && write(STDERR_FILENO, start, sizeof start - 1) < 0)
        _exit(SH_FAILED);
    _exit(status_then < 0 ? SH_FAILED : (int)status_then);
}

static void watch(double timeout_s, int status)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = leave;
    status_then = status;
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)timeout_s + 1);
}

void sh_ranks_close(const struct sh_ranks *r, double timeout_s, int status)
{
    watch(timeout_s, status);
    r->close();
    alarm(0);
}

const struct sh_ranks *sh_ranks_open(struct sh_rank_place *place, double timeout_s, struct sh_err *e)
{
    char path[SH_PATH], why[400];
    if (!sh_module_find("mpi", "src/ranks", path)) {
        sh_absent(e, "mpi: not built: no mpi.so in %.801s; it is built with ./configure --with-mpi", path);
        sh_hint(e, "run ./configure --with-mpi && make; without MPI, --shard I/N splits the work");
        return NULL;
    }
    const struct sh_ranks *r = load(path, e);
    watch(timeout_s, -1);
    int bad = r && r->open(place, why, sizeof why);
    alarm(0);
    if (bad)
        sh_fail(e, "mpi: cannot start: %s", why);
    return bad ? NULL : r;
}

int sh_ranks_await(const struct sh_ranks *r, int from, int tag, void *at, size_t most, size_t *bytes,
                   double timeout_s, struct sh_err *e)
{
    char byte, why[400];
    int sender;
    size_t taken;
    double began = sh_now_s();
    const struct timespec pause = {0, 500000};
    for (;;) {
        int got = r->poll(from, tag, at, most, bytes, &sender, why, sizeof why);
        if (got < 0)
            return sh_fail(e, "mpi: receiving failed: %s", why);
        if (got)
            return 0;
        while (from == 0 && r->poll(0, SH_RANKS_PATIENCE, &byte, 1, &taken, &sender, why, sizeof why) == 1)
            began = sh_now_s();         /* a heartbeat */
        if (sh_now_s() - began > timeout_s)
            return sh_fail(e, "rank %d: no heartbeat for %.0f s; marked as lost", from, timeout_s),
                   sh_hint(e, "raise --rank-timeout if ranks are slow");
        nanosleep(&pause, NULL);        /* leave the core to ranks that compute */
    }
}
