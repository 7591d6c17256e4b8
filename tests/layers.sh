#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who may include whom. A folder's files may include their own folder, the headers named here, and
# system headers. One test per folder; TAP.
set -u
cd "${SH_TOP:-.}" || exit 99

# folder | what it may include besides itself (regular expression over the include's path); those who use come after
# those whom they use, so that no circle can be
rules='src/base|^$
kernels|^src/base/
traces|^src/base/
plots|^src/base/
demo|^src/base/
src/ranks|^src/base/
src/model|^(src/base/|kernels/backend\.h)
src/tokenizer|^src/(base|model/files)/
planner/policy|^src/base/
planner/allocator|^(src/base|planner/policy)/
planner/replay|^(src/base|planner/policy)/
planner/theory|^(src/base/|traces/(trace|stats|stats_spec)\.h)
planner/capacity|^(src/base/|src/model/facts\.h)
planner/catalog|^(src/base|planner/capacity)/
planner/clock|^(src/base|planner/(capacity|catalog))/
planner/simulate|^(src/base|planner/(capacity|catalog|clock))/
src/engine|^(src/(base|model|tokenizer)/|kernels/backend\.h|planner/policy/(policy|kept_slots|budget)\.h)
src/tracer|^(src/(base|model|tokenizer)/|kernels/backend\.h|traces/(trace|stats|stats_spec|codec|writer)\.h)
src/jobs|^(src/(base|ranks|tracer)/|traces/|kernels/load\.h)
src/app|^(src/(base|model|tokenizer|engine|tracer|jobs)/|kernels/|traces/|planner/)
src/report|^(src/(base|model|engine|app)/|traces/|planner/|plots/)
src/cli|.
src/lib|^(src/(base|app|cli)/|traces/|planner/|plots/figure\.h)
src/main.c|^src/(base|cli)/'

n=0
echo "1..$(($(wc -l <<<"$rules") + 3))"
check() { # description, offending lines
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; sed 's/^/# /' <<<"$2"; fi
}

while IFS='|' read -r folder allowed; do
    bad=$(grep -rHn '^#include "' --include='*.[chS]' --include='*.cu' --include='*.cuh' "$folder" |
        awk -v folder="$folder/" -v allowed="${allowed//\\/\\\\}" -F'"' '
            index($2, folder) != 1 && $2 !~ allowed { print $1 "\"" $2 "\"" }')
    check "$folder includes only what it may" "$bad"
done <<<"$rules"

check "only traces/ knows SQLite" "$(grep -rln '<sqlite3' --include='*.[ch]' src kernels planner plots traces | grep -v '^traces/')"
check "only kernels/cpu knows oneDNN" "$(grep -rln 'oneapi/dnnl' --include='*.[ch]' src kernels planner plots traces | grep -v '^kernels/cpu/')"
check "only src/main.c, src/cli, progress and remarks print or exit" "$(grep -rnE '\b(printf|puts|exit|abort|perror) ?\(|fprintf\(stderr|\bstdout\b' --include='*.[ch]' src/base src/ranks src/model src/tokenizer src/engine src/tracer src/jobs src/app src/report kernels traces planner plots |
    grep -vE 'src/base/(progress|mem)\.c|__attribute__|^[^:]*:[0-9]*: *(/\*|\*)|->abort\(')"
