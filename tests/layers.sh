#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who may include whom. A folder's files may include their own folder, the headers named here, and
# system headers. One test per folder; TAP.
set -u
cd "${SH_TOP:-.}" || exit 99

# folder | what it may include besides itself (regular expression over the include's path)
rules='src/base|^$
kernels|^src/base/
traces|^src/base/
src/ranks|^src/base/
src/model|^(src/base/|kernels/backend\.h)
src/engine|^(src/base/|src/model/|kernels/backend\.h|planner/(policy|kept|budget)\.h)
src/tracer|^(src/base/|src/model/|kernels/backend\.h|traces/(trace|stats|stats_spec|codec|writer)\.h)
planner|^(src/base/|traces/(trace|stats|stats_spec)\.h)
plots|^src/base/
demo|^src/base/
src/cli|.
src/main.c|^src/(base|cli)/'

n=0
echo "1..$(($(wc -l <<<"$rules") + 3))"
check() { # description, offending lines
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; sed 's/^/# /' <<<"$2"; fi
}

while IFS='|' read -r folder allowed; do
    files=$([ -f "$folder" ] && echo "$folder" || find "$folder" -maxdepth 3 -name '*.[chS]' -o -maxdepth 3 -name '*.cu*')
    bad=$(grep -Hn '^#include "' $files /dev/null | while IFS=: read -r file line text; do
        path=$(sed 's/^#include "\(.*\)".*/\1/' <<<"$text")
        [[ $path == "$folder"/* || $path =~ $allowed || ($path == traces/schema.inc && $folder == traces) ]] ||
            echo "$file:$line includes $path"
    done)
    check "$folder includes only what it may" "$bad"
done <<<"$rules"

check "only traces/ knows SQLite" "$(grep -rln '<sqlite3' --include='*.[ch]' src kernels planner plots traces | grep -v '^traces/')"
check "only kernels/cpu knows oneDNN" "$(grep -rln 'oneapi/dnnl' --include='*.[ch]' src kernels planner plots traces | grep -v '^kernels/cpu/')"
check "only src/main.c, src/cli and progress print or exit" "$(grep -rnE '\b(printf|puts|exit|abort|perror) ?\(|fprintf\(stderr' --include='*.[ch]' src/base src/ranks src/model src/tracer kernels traces planner plots |
    grep -vE 'src/base/(progress|mem)\.c|__attribute__|^[^:]*:[0-9]*: *(/\*|\*)')"
