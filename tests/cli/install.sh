#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make install: the program, its pages, the documents that they name and completion for three shells; make uninstall
# leaves nothing of them, and what was there before.
. "$(dirname "$0")/lib.sh"

built=$(dirname "$SHEARS")
[ -e "$built/Makefile" ] || { echo "1..0 # SKIP the program was not built here"; exit 0; }
unset MAKEFLAGS MFLAGS MAKELEVEL
p=$work/prefix
makes() { make -s -C "$built" "$@" prefix="$p" >log/make 2>&1 </dev/null; }
mkdir -p "$p/share/zsh" && touch "$p/share/zsh/others"
holds "make install" makes install || cat log/make
for file in bin/shears share/man/man1/shears-trace.1 share/bash-completion/completions/shears \
    share/fish/vendor_completions.d/shears.fish share/zsh/site-functions/_shears include/shears.h lib/libshears.so.0 lib/libshears.so lib/libshears.a \
    lib/pkgconfig/shears.pc share/man/man3/libshears.3 share/doc/shears/examples/policy.c \
    share/doc/shears/README.md share/doc/shears/doc/lost-attention.svg; do
    holds "  $file" test -s "$p/$file"
done
verdict "every document that the program, README and documents name is there" "$(
    { cat "$p"/share/man/man1/*.1 | sed 's/\\-/-/g'; cat "$p"/share/doc/shears/{README.md,doc/*.md}; } |
        grep -oE 'doc/[a-z/-]+\.(md|svg|sbatch)' | sort -u >named
    [ "$(wc -l <named)" -ge 15 ] || echo "# named are only: $(cat named)"
    while read -r file; do [ -s "$p/share/doc/shears/$file" ] || echo "# $file"; done <named)"
holds "the program runs from there" "$p/bin/shears" --version
unset SH_MODULE_DIR
looked() { # description, program, expression of what the CUDA module's state says
    "$2" info backends --json >backends.json
    holds "$1" python -c 'import json, re, sys
b, = [b for b in json.load(open("backends.json"))["backends"] if b["backend"] == "cuda"]
assert re.search(sys.argv[1], b["module"] or b["reason"]), b' "$3"
}
mkdir -p "$p/lib/shears" && touch "$p/lib/shears/cuda.so"
looked "  with the modules that were installed with it" "$p/bin/shears" "^$p/lib/shears/cuda.so"
cp -r "$p" elsewhere && mkdir alone && cp "$p/bin/shears" alone/
looked "  also where the whole is moved to" elsewhere/bin/shears "^$work/elsewhere/lib/shears/cuda.so"
looked "  a program of its own looks next to itself and where modules are installed" alone/shears \
    "no cuda.so in $work/alone/kernels or [^ ]*/lib/shears |^(?!$work)"
rm -r elsewhere alone "$p/lib/shears/cuda.so"
holds "make uninstall" makes uninstall
printf '%s\n' ./share ./share/zsh ./share/zsh/others >wanted
verdict "  leaves what was there before, and no folder" "$(cd "$p" && find . ! -path . | sort | diff "$work/wanted" - | sed 's/^/# /')"
finish
