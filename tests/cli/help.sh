#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What --help says stands in the manual pages and in the shells' completion, too.
. "$(dirname "$0")/lib.sh"

commands=$("$SHEARS" --help | sed -n '/^commands:/,/^$/p' | awk 'NR > 1 && NF {print $1}')
holds "the program lists its commands" test "$(wc -w <<<"$commands")" -ge 16
run help
cp log/out listed
run --help
holds "help alone says what --help says" cmp listed log/out

run help --man out/man1
expect "manual pages are written, into a folder that is made for them" 0 "" ""
mv out/man1/* out/ && rmdir out/man1
run help --man out
expect "and into one that is there" 0 "" ""
verdict "a page for every command, with every option of its --help" "$(
    for c in $commands; do
        [ -s "out/shears-$c.1" ] || { echo "# no page of $c"; continue; }
        grep -q "shears\\\\-$c (1)" out/shears.1 || echo "# shears.1 does not name $c"
        "$SHEARS" "$c" --help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -e '--[a-z-]+' | while read -r o; do
            grep -q -e "^\\(\\\\fB\\\\-.\\\\fR, \\)\\?\\\\fB$(sed 's/-/\\\\-/g' <<<"$o")\\\\fR" "out/shears-$c.1" || echo "# $c: $o"
        done
        "$SHEARS" help "$c" >help.txt
        "$SHEARS" "$c" --help | cmp -s - help.txt || echo "# help $c differs from $c --help"
    done)"
if command -v mandoc >/dev/null; then
    holds "mandoc finds nothing wrong" sh -c '! mandoc -Tlint -W warning out/*.1 | grep -v "missing date"'
else
    skip "mandoc finds nothing wrong" "mandoc is not here"
fi
rm -rf out && mkdir out

verdict "what info's help names by words can be typed" "$(
    "$SHEARS" info --help | awk -F '  +' '$2 ~ /^shears info [a-z, ]+$/ {print $2}' | while read -ra words; do
        "$SHEARS" "${words[@]:1}" -q >/dev/null 2>&1 </dev/null || echo "# ${words[*]}"
    done)"
run eval --help
expect "eval says what comes without --policy" 0 "default: the full cache" ""
for c in eval generate; do
    run $c --help
    expect "$c says how codes of keys lie where nothing is evicted" 0 "cache that never evicts" ""
done
verdict "no help has two blank lines in a row, or a blank one at its end" "$(
    for c in $commands; do
        "$SHEARS" "$c" --help | awk -v c="$c" '!NF && blank {print "# " c ": line " NR} {blank = !NF} END {if (blank) print "# " c ": end"}'
    done)"

"$SHEARS" help --completion bash >shears.bash
complete_words() { # words...: what bash offers for the last one
    bash -c '. ./shears.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shears; echo "${COMPREPLY[*]}"' - "$@"
}
offers() { # description, expected, words...
    local found
    found=$(complete_words "${@:3}")
    verdict "bash completes $1" "$([ "$found" = "$2" ] || echo "# expected '$2', found '$found'")"
}
offers "a command" "verify" shears ver
offers "a command's option" "--dump-kept --dump-every" shears replay --dump
offers "a common option" "--threads" shears verify --thr
offers "a policy" "scissorhands scissorhands-released" shears eval --policy sci
offers "a backend" "cuda" shears trace --backend cu
offers "a GPU" "H200-SXM H200-NVL" shears capacity --gpu H200
offers "a model" "opt-30b" shears simulate --model opt-30
offers "a figure" "heatmap heads" shears plot hea
touch a-file.db opt-30.gguf
offers "a model's file" "opt-30.gguf opt-30b" shears capacity --model opt-30
offers "a file" "a-file.db" shears info --model a-f
if command -v fish >/dev/null; then
    "$SHEARS" help --completion fish >shears.fish
    holds "fish takes its completion" fish -n shears.fish
else
    run help --completion fish
    expect "completion for fish names every command" 0 "^complete -c shears -n __fish_use_subcommand -a trace -d " ""
fi

run help --completion fish
expect "fish offers GPUs" 0 "seen_subcommand_from capacity' -l gpu -x -a '.*H100-SXM " ""
expect "and figures" 0 "seen_subcommand_from plot' -a '.*heatmap " ""
"$SHEARS" help --completion zsh >zsh.completion
if command -v zsh >/dev/null; then
    holds "zsh takes its completion" zsh -n zsh.completion
    mkdir zsh && cp zsh.completion zsh/_shears
    tab() { # description, word that is offered, line
        local said
        said=$(python "$cli/zsh_tab.py" "$PWD/zsh" "$3" 2>&1)
        verdict "zsh offers $1" "$(grep -qwe "$2" <<<"$said" || echo "# to \"$3\": $said")"
    }
    tab "a policy" scissorhands-released "shears replay --policy sci"
    tab "a GPU" H200-NVL "shears capacity --gpu H200"
    tab "a figure" heatmap "shears plot hea"
    tab "a command's options" "--quality-db" "shears simulate --qua"
else
    verdict "zsh's is bash's, which its bashcompinit runs" "$(sed -n 1p zsh.completion | grep -qx '#compdef shears' || echo "# no head"
        diff <(sed -e '1,2d' -e '$d' zsh.completion) shears.bash | sed 's/^/# /')"
fi
refuse "a shell that it does not know" 2 '--completion: .*"tcsh".* bash, fish or zsh' help --completion tcsh
refuse "a folder in one that is not there" 1 "nowhere/man1: .*No such file" help --man nowhere/man1
refuse "a file in the folder's place" 1 "a-file.db: .*folder" help --man a-file.db
refuse "a command that it does not have" 2 'command "replya"' help replya
refuse "two commands" 2 "help: .*one command" help trace replay

# What a reader who has a model looks for comes first.
verdict "README's first command is study, the one for a model of one's own; reproduce comes next" "$(
    sed -n 's/^| .* | `shears \([a-z]*\).*/\1/p' "$SH_TOP/README.md" | sed -n 1,2p | tr '\n' ' ' |
        grep -qx 'study reproduce ' || echo "# another is")"
verdict "every command of README's table is one of the program's" "$(
    sed -n '/^| your question/,/^$/p' "$SH_TOP/README.md" | grep -o 'shears [a-z]*' | sort -u | while read -r _ c; do
        grep -qxF "$c" <<<"$commands" || echo "# $c"
    done)"

finish
