/* SPDX-License-Identifier: Apache-2.0 */
/* shears help: the list of commands, help for one, manual pages and shell completion. */
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/cli/commands.h"
#include "src/cli/paths.h"

struct help_args {
    const char *man, *completion;
};

#define F(name) offsetof(struct help_args, name)
static const struct sh_opt opts[] = {
    SH_TEXT("man", F(man), "DIR", "write the manual pages to DIR (created if needed): shears.1 and\none per command"),
    SH_TEXT("completion", F(completion), "SHELL", "print the completion script for bash, fish or zsh"),
    {0}};

static int write_page(const char *dir, const struct sh_cmd *c, struct sh_err *e)
{
    char *path = xasprintf("%s/shears%s%s.1", dir, c ? "-" : "", c ? c->name : "");
    struct sh_file *f = sh_file_begin(path, e);
    free(path);
    if (f && c)
        sh_man_page(c, sh_file_stream(f));
    else if (f)
        sh_man_overview(sh_file_stream(f));
    return f ? sh_file_end(f, 0, e) : -1;
}

static int write_pages(const char *dir, struct sh_err *e)
{
    int bad = sh_folder_make(dir, e) || write_page(dir, NULL, e);
    for (int i = 0; sh_commands[i] && !bad; i++)
        bad = write_page(dir, sh_commands[i], e);
    return bad;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct help_args *a = args;
    (void)common;
    if (positional->n > 1)
        return sh_misused(e, "help: found %d arguments, expected one command", positional->n);
    if ((a->man != NULL) + (a->completion != NULL) + positional->n > 1)
        return sh_misused(e, "help: a command, --man and --completion cannot be combined");
    if (a->man)
        return write_pages(a->man, e);
    if (a->completion)
        return sh_completion(a->completion, stdout, e);
    if (!positional->n) {
        sh_commands_list(stdout);
        return 0;
    }
    const struct sh_cmd *c = sh_command_find(positional->at[0]);
    if (!c)
        return sh_command_unknown(positional->at[0], e);
    sh_args_help(c, stdout);
    return 0;
}

const struct sh_cmd sh_cmd_help = {
    .name = "help",
    .usage = "[COMMAND | --man DIR | --completion bash|fish|zsh]",
    .summary = "show help for a command; write manual pages and shell completion",
    .about = "Without arguments, lists the commands. With a command, prints the same as `shears COMMAND --help`.\n"
             "\n"
             "  shears help replay\n"
             "  shears help --completion bash > shears.bash && . ./shears.bash",
    .opts = opts, .args_bytes = sizeof(struct help_args), .run = run};
