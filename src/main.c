/* SPDX-License-Identifier: Apache-2.0 */
/* shears: finds the command in the table and maps its outcome to an exit status. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/interrupt.h"
#include "src/cli/commands.h"

static void overview(FILE *to)
{
    fprintf(to, "shears %s - traces how attention persists in transformers and plans KV caches with it\n\n"
                "usage: shears COMMAND [options]\n\ncommands:\n", PACKAGE_VERSION);
    for (int i = 0; sh_commands[i]; i++)
        fprintf(to, "  %-14s%s\n", sh_commands[i]->name, sh_commands[i]->summary);
    fprintf(to, "\n`shears COMMAND --help` tells more of it; `shears demo` shows everything on a small model.\n");
}

/* Commands that begin alike, or contain what was typed. */
static int unknown(const char *name)
{
    int near = 0;
    fprintf(stderr, "shears: there is no command \"%s\"\n", name);
    for (int i = 0; sh_commands[i]; i++)
        if (!strncmp(sh_commands[i]->name, name, 2) || strstr(sh_commands[i]->name, name))
            fprintf(stderr, "%s %s", near++ ? "," : "hint: near it:", sh_commands[i]->name);
    fprintf(stderr, "%s", near ? "\n" : "hint: shears --help lists the commands\n");
    return SH_MISUSED;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        overview(stderr);
        return SH_MISUSED;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (!strcmp(argv[1], "help") && argc == 2)) {
        overview(stdout);
        return SH_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("shears %s\n", PACKAGE_VERSION);
        return SH_OK;
    }
    int ask = !strcmp(argv[1], "help");
    const struct sh_cmd *c = sh_command_find(argv[1 + ask]);
    if (!c)
        return unknown(argv[1 + ask]);
    if (ask) {
        sh_args_help(c, stdout);
        return SH_OK;
    }
    return sh_command_run(c, argc - 2, argv + 2);
}

/* Layers, blocks and scratch of some megabytes come and go all the time. Left alone, the allocator
 * would fetch each from the system anew and have its pages zeroed. 32 MiB is the most it takes; the
 * matrices of large models lie above, and go back to the system at once. */
static void keep_freed_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

int main(int argc, char **argv)
{
    keep_freed_memory();
    sh_interrupt_install();
    int status = dispatch(argc, argv);
    if ((fflush(stdout) || ferror(stdout)) && !status) {
        fprintf(stderr, "shears: the output could not be written\n");
        return SH_FAILED;
    }
    return status;
}
