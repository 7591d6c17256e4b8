/* SPDX-License-Identifier: Apache-2.0 */
/* See commands.h. The list of commands, and how one runs. */
#include "src/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/team.h"
#include "traces/store.h"

const struct sh_cmd *const sh_commands[] = {
#define X(name) &sh_cmd_##name,
    SH_COMMANDS(X)
#undef X
    NULL};

const struct sh_cmd *sh_command_find(const char *name)
{
    for (int i = 0; sh_commands[i]; i++)
        if (!strcmp(sh_commands[i]->name, name))
            return sh_commands[i];
    return NULL;
}

void sh_commands_list(FILE *to)
{
    fprintf(to, "shears %s - traces attention in transformers and plans KV caches\n\n"
                "usage: shears COMMAND [options]\n\ncommands:\n", PACKAGE_VERSION);
    for (int i = 0; sh_commands[i]; i++)
        fprintf(to, "  %-14s%s\n", sh_commands[i]->name, sh_commands[i]->summary);
    fprintf(to, "\nSee `shears COMMAND --help` for details; `shears demo` runs the main commands on a small model.\n");
}

int sh_command_unknown(const char *name, struct sh_err *e)
{
    char all[1024] = "";
    for (int i = 0; sh_commands[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "\n" : "", sh_commands[i]->name);
    if (name[0] == '-') {
        sh_misused(e, "unknown option %.80s; expected a command first", name);
        return sh_hint_near(e, name, strlen(name), "--help\n--version", "shears --help lists the commands");
    }
    sh_misused(e, "unknown command \"%.80s\"", name);
    return sh_hint_near(e, name, strlen(name), all, "shears --help lists the commands");
}

int sh_command_run(const struct sh_cmd *c, int argc, char **argv)
{
    sh_store_take_memory();
    char *line = sh_args_typed(c->name, argc, argv);
    struct sh_err e = {0};
    struct sh_common common = {.backend = "auto", .threads = sh_team_threads(), .line = line};
    struct sh_list positional = {0};
    void *args = xcalloc(1, c->args_bytes + 1);
    if (c->defaults)
        memcpy(args, c->defaults, c->args_bytes);
    int status = SH_OK;
    if (sh_args_parse(c, argc, argv, &common, args, &positional, &e))
        status = sh_report_error(&e);
    else if (common.help)
        sh_args_help(c, stdout);
    else if (c->run(&common, args, &positional, &e))
        status = sh_report_error(&e);
    sh_args_free(c, args, &positional);
    free(line);
    return status;
}
