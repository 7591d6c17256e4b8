/* SPDX-License-Identifier: Apache-2.0 */
/* See commands.h: completion of commands, options, and the names that a few options take. */
#include <stdlib.h>
#include <string.h>

#include "planner/catalog/catalog.h"
#include "planner/policy/policy.h"
#include "plots/figure.h"
#include "src/cli/commands.h"

/* The kind of an option's value: a path, one of some names, a model (a name or a path), or anything else. */
enum value { NOTHING, ANYTHING, PATH, POLICY, BACKEND, GPU, MODEL, FIGURE };

static enum value value_of(const struct sh_opt *o)
{
    if (o->kind == SH_OPT_FLAG)
        return NOTHING;
    if (!strcmp(o->name, "policy"))
        return POLICY;
    if (!strcmp(o->name, "backend"))
        return BACKEND;
    if (!strcmp(o->name, "gpu"))
        return GPU;
    if (!strcmp(o->name, "model") && !strncmp(o->arg, "NAME", 4))
        return MODEL;
    return strstr(o->arg, "FILE") || strstr(o->arg, "DIR") ? PATH : ANYTHING;
}

static void words(FILE *to, enum value v)
{
    const struct sh_catalog c = {.built_in = v == GPU ? sh_catalog_gpus : sh_catalog_models};
    if (v == BACKEND)
        fputs("auto cpu cuda", to);
    for (int i = 0; v == POLICY && sh_policies[i]; i++)
        fprintf(to, "%s%s", i ? " " : "", sh_policies[i]->name);
    for (int i = 0; v == FIGURE && sh_figures[i]; i++)
        fprintf(to, "%s%s", i ? " " : "", sh_figures[i]->name);
    if (v != GPU && v != MODEL)
        return;
    char *all = sh_catalog_names(&c), *end = all + strlen(all);
    for (char *at = all; at < end; at++)
        *at = *at == '\n' ? ' ' : *at;
    fputs(all, to);
    free(all);
}

/* ---- bash: a function that looks at the word before the cursor ---- */

static void bash_options(FILE *to, const struct sh_opt *o)
{
    for (; o && o->name; o++)
        fprintf(to, " --%s", o->name);
}

static void bash_values(FILE *to, const char *command, const struct sh_opt *o)
{
    for (; o && o->name; o++) {
        enum value v = value_of(o);
        if (v == NOTHING)
            continue;
        fprintf(to, "        %s:--%s) ", command, o->name);
        if (v == PATH) {
            fputs("COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", to);
            continue;
        }
        fprintf(to, "COMPREPLY=($(compgen %s-W '", v == MODEL ? "-f " : "");
        words(to, v);
        fputs("' -- \"$word\")); return ;;\n", to);
    }
}

static void bash(FILE *to)
{
    fputs("# bash completion for shears\n_shears()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=${COMP_WORDS[1]-} all=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '", to);
    for (int i = 0; sh_commands[i]; i++)
        fprintf(to, "%s%s", i ? " " : "", sh_commands[i]->name);
    fputs("' -- \"$word\"))\n        return\n    fi\n    case $command:$before in\n", to);
    for (int i = 0; sh_commands[i]; i++)
        bash_values(to, sh_commands[i]->name, sh_commands[i]->opts);
    bash_values(to, "*", sh_common_opts);
    fputs("        plot:plot) COMPREPLY=($(compgen -W '", to);
    words(to, FIGURE);
    fputs("' -- \"$word\")); return ;;\n    esac\n    case $command in\n", to);
    for (int i = 0; sh_commands[i]; i++) {
        fprintf(to, "        %s) all='", sh_commands[i]->name);
        bash_options(to, sh_commands[i]->opts);
        fputs("' ;;\n", to);
    }
    fputs("    esac\n    if [[ $word == -* ]]; then\n        COMPREPLY=($(compgen -W \"$all", to);
    bash_options(to, sh_common_opts);
    fputs("\" -- \"$word\"))\n    else\n        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\n"
          "complete -o filenames -F _shears shears\n", to);
}

/* ---- fish: one line per option ---- */

static void fish_quoted(FILE *to, const char *s)
{
    fputc('\'', to);
    for (; *s && *s != '\n'; s++) {
        if (*s == '\'' || *s == '\\')
            fputc('\\', to);
        fputc(*s, to);
    }
    fputc('\'', to);
}

static void fish_options(FILE *to, const char *command, const struct sh_opt *o)
{
    for (; o && o->name; o++) {
        enum value v = value_of(o);
        fputs("complete -c shears", to);
        if (command)
            fprintf(to, " -n '__fish_seen_subcommand_from %s'", command);
        fprintf(to, " -l %s", o->name);
        if (o->letter)
            fprintf(to, " -s %c", o->letter);
        fputs(v == NOTHING ? "" : v == PATH || v == MODEL ? " -r -F" : " -x", to);
        if (v >= POLICY) {
            fputs(" -a '", to);
            words(to, v);
            fputc('\'', to);
        }
        fputs(" -d ", to);
        fish_quoted(to, o->help);
        fputc('\n', to);
    }
}

static void fish(FILE *to)
{
    fputs("# fish completion for shears\n", to);
    for (int i = 0; sh_commands[i]; i++) {
        fprintf(to, "complete -c shears -n __fish_use_subcommand -a %s -d ", sh_commands[i]->name);
        fish_quoted(to, sh_commands[i]->summary);
        fputc('\n', to);
        fish_options(to, sh_commands[i]->name, sh_commands[i]->opts);
    }
    fputs("complete -c shears -n '__fish_seen_subcommand_from plot' -a '", to);
    words(to, FIGURE);
    fputs("'\n", to);
    fish_options(to, NULL, sh_common_opts);
}

/* ---- zsh: bash's function, which zsh can run; bashcompinit alone would need a line in the user's files ---- */

static void zsh(FILE *to)
{
    fputs("#compdef shears\nautoload -U +X bashcompinit && bashcompinit\n", to);
    bash(to);
    fputs("_bash_complete -o filenames -F _shears\n", to);
}

int sh_completion(const char *shell, FILE *to, struct sh_err *e)
{
    if (!strcmp(shell, "bash"))
        bash(to);
    else if (!strcmp(shell, "fish"))
        fish(to);
    else if (!strcmp(shell, "zsh"))
        zsh(to);
    else
        return sh_misused(e, "--completion: unknown shell \"%s\", expected bash, fish or zsh", shell);
    return 0;
}
