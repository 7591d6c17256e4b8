#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libshears as it is installed: the examples build against it, shared and static, and run; what it exports and how its
# structs are laid out is what tests/golden/abi.txt says.
. "$(dirname "$0")/lib.sh"

built=$(dirname "$SHEARS")
compiler=$(sed -n 's/^CC = \(ccache \)\?//p' "$built/Makefile" 2>/dev/null)
[ -n "$compiler" ] || { echo "1..0 # SKIP the library was not built here"; exit 0; }
command -v pkg-config >/dev/null || { echo "1..0 # SKIP pkg-config is not here"; exit 0; }
unset MAKEFLAGS MFLAGS MAKELEVEL
p=$work/prefix
holds "make install" make -s -C "$built" install-includeHEADERS install-sharedlibDATA install-nodist_pkgconfigDATA \
    install-data-hook prefix="$p"
sed -i "s|^prefix=.*|prefix=$p|" "$p/lib/pkgconfig/shears.pc"
export PKG_CONFIG_PATH=$p/lib/pkgconfig:${PKG_CONFIG_PATH-} LD_LIBRARY_PATH=$p/lib
flags=$(pkg-config --cflags shears)
shared=$(pkg-config --libs shears)
static=$(pkg-config --static --libs shears | sed "s|-lshears|$p/lib/libshears.a|")
strict="-std=c11 -Wall -Wextra -Wconversion -Werror ${SH_SANITIZED-}"

golden_tokens opt >tokens.jsonl
run trace --model "$checkpoints/opt" --db t.db --tokens tokens.jsonl -q
for example in read policy; do
    source=${SH_TOP:?the source tree}/src/lib/examples/$example.c
    verdict "$example.c has at most 60 lines" "$([ "$(wc -l <"$source")" -le 60 ] || echo "# it has more")"
    for how in shared static; do
        holds "$example.c, $how" $compiler $strict $flags "$source" ${!how} -lm -o $example-$how
        holds "  runs" ./$example-$how t.db
        ./$example-$how t.db >$example-$how.txt 2>&1
    done
    holds "  shared and static say the same" cmp $example-shared.txt $example-static.txt
    verdict "  a missing store is an error" "$(./$example-shared missing.db >out/said 2>&1; [ $? = 1 ] || echo "# no status 1"
        grep -q missing.db out/said || sed 's/^/# /' out/said)"
done
verdict "read.c: what the program says" "$(
    "$SHEARS" persistence --db t.db --recent 4 --alpha 2/t --csv --columns layer,ratio,density -q |
        awk -F, 'NR > 1 { printf "layer %d: ratio %.3f, density %.3f\n", $1, $2, $3 }' >wanted
    grep '^layer' read-shared.txt | diff wanted - | sed 's/^/# /')"
verdict "policy.c: h2o and window are the program's" "$(
    "$SHEARS" replay --db t.db --policy h2o window --budget 0.25,0.5 --csv --columns policy,budget,kept_mass -q |
        awk -F, 'NR > 1 { printf "%-8s %.2f: kept mass %.4f\n", $1, $2, $3 }' >wanted
    grep -v fading policy-shared.txt | diff wanted - | sed 's/^/# /')"
verdict "  the store keeps nothing of a policy from outside" "$(
    "$SHEARS" export --help >/dev/null; strings -a t.db 2>/dev/null | grep -c fading | grep -vx 0 | sed 's/^/# /')"

holds "the header in C++" bash -c "printf '#include <shears.h>\nint main() { return !shears_version(); }\n' >x.cc &&
    ${CXX:-c++} -Wall -Wextra -Werror $flags ${SH_SANITIZED-} x.cc $shared -o x && ./x"
$compiler $strict $flags "$cli/abi.c" -o abi
verdict "symbols and structs are those of tests/golden/abi.txt" "$(
    { nm -D --defined-only "$p/lib/libshears.so.0" | awk '$2 == "T" { print $3 }' | sed 's/@.*//' | LC_ALL=C sort; ./abi; } |
        diff "$SH_GOLDEN/abi.txt" - | sed 's/^/# /')"
verdict "nothing else is seen: of the shared library" "$(
    nm -D --defined-only "$p/lib/libshears.so.0" | awk '{ print $3 }' | grep -v '^shears_\|^SHEARS_' | sed 's/^/# /')"
verdict "  and of the static one" "$(
    nm -g --defined-only "$p/lib/libshears.a" | awk 'NF == 3 { print $3 }' | grep -v '^shears_' | sed 's/^/# /')"
finish
