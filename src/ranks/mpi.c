/* SPDX-License-Identifier: Apache-2.0 */
/* The module mpi.so: src/ranks/ranks.h implemented with MPI, point-to-point only. Errors are returned, not fatal, and
 * waiting is polling with a pause: MPI's own would occupy a core. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/ranks/ranks.h"

extern const struct sh_ranks sh_ranks_module __attribute__((visibility("default")));

static int failed(int code, char *why, size_t size)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;
    if (MPI_Error_string(code, text, &n))
        snprintf(text, sizeof text, "MPI error %d", code);
    snprintf(why, size, "%s", text);
    return -1;
}

static int open_mpi(struct sh_rank_place *out, char *why, size_t size)
{
    int level = 0, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm here;
    if (code)
        return failed(code, why, size);
    if (level < MPI_THREAD_SERIALIZED) {
        snprintf(why, size, "this MPI requires all calls from one thread");
        return -1;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &out->size);
    code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, out->rank, MPI_INFO_NULL, &here);
    if (code)
        return failed(code, why, size);
    MPI_Comm_rank(here, &out->local_rank);
    MPI_Comm_size(here, &out->local_size);
    MPI_Comm_free(&here);
    return 0;
}

static void rest(long nanoseconds)
{
    const struct timespec pause = {0, nanoseconds};
    nanosleep(&pause, NULL);
}

/* Copies of small messages not yet received: the sender does not wait. A rank that died never receives; a sender that
 * waited for it would stall the whole group. */
enum { SMALL = 1 << 16 };
struct posted {
    struct posted *next;
    MPI_Request request;
    char bytes[];
};
static struct posted *posted;

/* Returns how many are left. */
static int sweep_posted(void)
{
    int left = 0;
    for (struct posted **at = &posted; *at;) {
        struct posted *p = *at;
        int done = 0;
        if (MPI_Test(&p->request, &done, MPI_STATUS_IGNORE) || done) {
            *at = p->next;
            free(p);
        } else {
            at = &p->next;
            left++;
        }
    }
    return left;
}

static int post(int to, int tag, const void *at, size_t bytes, char *why, size_t size)
{
    struct posted *p = malloc(sizeof *p + bytes);
    if (!p) {
        snprintf(why, size, "not enough memory for a message of %zu bytes", bytes);
        return -1;
    }
    memcpy(p->bytes, at, bytes);
    int code = MPI_Isend(p->bytes, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &p->request);
    if (code) {
        free(p);
        return failed(code, why, size);
    }
    p->next = posted;
    posted = p;
    sweep_posted();
    return 0;
}

static int send_bytes(int to, int tag, const void *at, size_t bytes, double timeout_s, char *why, size_t size)
{
    MPI_Request request;
    int done = 0;
    if (bytes <= SMALL)
        return post(to, tag, at, bytes, why, size);
    if (bytes > 0x7fffffff) {
        snprintf(why, size, "message of %zu bytes is too large", bytes);
        return -1;
    }
    int code = MPI_Isend(at, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    double began = MPI_Wtime();
    while (!code && !(code = MPI_Test(&request, &done, MPI_STATUS_IGNORE)) && !done) {
        if (MPI_Wtime() - began > timeout_s) {
            snprintf(why, size, "rank %d has not received a message for %.0f s", to, timeout_s);
            return -1;
        }
        rest(100000);
    }
    return code ? failed(code, why, size) : 0;
}

static int poll_bytes(int from, int tag, void *at, size_t most, size_t *bytes, int *sender, char *why, size_t size)
{
    MPI_Status status;
    MPI_Request request;
    int there = 0, n = 0, done = 0;
    sweep_posted();
    int code = MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, tag, MPI_COMM_WORLD, &there, &status);
    if (code || !there)
        return code ? failed(code, why, size) : 0;
    MPI_Get_count(&status, MPI_BYTE, &n);
    if (n < 0 || (size_t)n > most) {
        snprintf(why, size, "found a message of %d bytes from rank %d, expected at most %zu", n, status.MPI_SOURCE,
                 most);
        return -1;
    }
    code = MPI_Irecv(at, n, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, &request);
    while (!code && !(code = MPI_Test(&request, &done, MPI_STATUS_IGNORE)) && !done)
        rest(20000);
    *bytes = (size_t)n;
    *sender = status.MPI_SOURCE;
    return code ? failed(code, why, size) : 1;
}

static void close_mpi(void)
{
    while (sweep_posted())              /* the caller's timeout ends it if one is never received */
        rest(100000);
    MPI_Finalize();
}

static void abort_all(int status)
{
    MPI_Abort(MPI_COMM_WORLD, status);
    _Exit(status);
}

const struct sh_ranks sh_ranks_module = {
    .abi = SH_RANKS_ABI, .name = "mpi", .open = open_mpi, .send = send_bytes, .poll = poll_bytes, .close = close_mpi,
    .abort = abort_all};
