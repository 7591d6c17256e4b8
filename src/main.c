/* SPDX-License-Identifier: Apache-2.0 */
/* shears: looks up the command, runs it and maps its outcome to an exit status. */
#include <fcntl.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/cli/commands.h"

static int dispatch(int argc, char **argv)
{
    struct sh_err e = {0};
    if (argc < 2) {
        sh_commands_list(stderr);
        return SH_MISUSED;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        sh_commands_list(stdout);
        return SH_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("shears %s\n", PACKAGE_VERSION);
        return SH_OK;
    }
    const struct sh_cmd *c = sh_command_find(argv[1]);
    if (c)
        return sh_command_run(c, argc - 2, argv + 2);
    sh_command_unknown(argv[1], &e);
    return sh_report_error(&e);
}

/* Layers, blocks and scratch buffers of several megabytes are allocated and freed all the time. By default the
 * allocator would map each one anew, with zeroed pages. 32 MiB is the largest threshold it accepts; the matrices
 * of large models exceed it and are returned to the system at once. */
static void keep_freed_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

/* If a standard descriptor was closed before the start, the next file opened would get its number and receive what is
 * printed. Opens /dev/null in its place, in the mode that makes every use fail. */
static void take_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            return;
}

/* A stdout that resumes interrupted writes, as files do (file.h). It follows the descriptor if that is redirected. */
static void set_up_output(void)
{
    FILE *to = sh_stream_of(STDOUT_FILENO, "w");
    if (!to)
        sh_no_memory(sizeof *to);
    if (isatty(STDOUT_FILENO))
        setvbuf(to, NULL, _IOLBF, 0);
    stdout = to;
}

int main(int argc, char **argv)
{
    keep_freed_memory();
    json_set_alloc_funcs(xmalloc, free);        /* its builders would skip what does not fit in memory */
    take_descriptors();
    set_up_output();
    sh_interrupt_install();
    int status = dispatch(argc, argv);
    struct sh_err e = {0};
    if ((fflush(stdout) || ferror(stdout)) && !status) {
        sh_output_failed("", 0, &e);
        return sh_report_error(&e);
    }
    return status;
}
