/* SPDX-License-Identifier: Apache-2.0 */
/* shears help: the list of commands, one command's options, and the same as manual pages and completion. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/cli/commands.h"
#include "src/cli/man.h"
#include "src/cli/paths.h"

struct help_args {
    const char *man, *completion;
};

#define F(name) offsetof(struct help_args, name)
static const struct sh_opt opts[] = {
    {"man", SH_OPT_TEXT, F(man), "DIR",
     "write the manual pages into DIR, shears.1 and one per command;\nDIR is made if it is not there", 0, 0, 0},
    {"completion", SH_OPT_TEXT, F(completion), "SHELL",
     "print completion for bash or fish; zsh reads bash's behind\nautoload -U bashcompinit && bashcompinit", 0, 0, 0},
    {0}};
#undef F

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
        return sh_misused(e, "help takes one command, found %d", positional->n);
    if ((a->man != NULL) + (a->completion != NULL) + positional->n > 1)
        return sh_misused(e, "help: a command, --man and --completion exclude each other");
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
    .usage = "[COMMAND | --man DIR | --completion bash|fish]",
    .summary = "tell more of a command; write manual pages and shell completion",
    .about = "Alone it lists the commands, with one it tells what that does and takes, as `shears COMMAND --help`.\n"
             "\n"
             "  shears help replay\n"
             "  shears help --completion bash > shears.bash && . ./shears.bash",
    .opts = opts,
    .args_bytes = sizeof(struct help_args),
    .run = run};
