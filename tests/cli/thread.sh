#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Races between threads, in a build that was configured with --enable-sanitizers=thread:
#
#     ../configure --enable-sanitizers=thread && make && make check TESTS=tests/cli/thread.sh
#
# Threads are those of src/base/team.c, whose waits the sanitizer sees; nothing has to be suppressed. What it did not
# compile (oneDNN, SQLite) is left out of account. Unit tests run, too, where they were built.
. "$(dirname "$0")/lib.sh"
case ${SH_SANITIZED-} in
*thread*) ;;
*) echo "1..0 # SKIP this build has no thread sanitizer"; exit 0 ;;
esac
export TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}ignore_noninstrumented_modules=1 exitcode=99"

# ---- does it see a race? ----

cat >race.c <<'P'
#include "src/base/team.h"
static long sum, part[64];
static void last(void) { for (volatile int k = 0; k < 100000; k++); }     /* long enough for others to take a piece */
static void apart(void *arg, int i) { last(); part[i] = i + (arg != 0); }
static void together(void *arg, int i) { (void)arg; last(); sum += i; }
int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < 20; i++)
        sh_team_each(4, 64, argc > 1 ? together : apart, 0);
    return sum < 0;
}
P
base=("$SH_TOP"/src/base/{team,mem,err}.c)
if ! ${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -g -O1 -I"$SH_TOP" -fsanitize=thread race.c "${base[@]}" -lm -lpthread -o race 2>log/err; then
    echo "1..0 # SKIP no compiler here that knows -fsanitize=thread"
    exit 0
fi
holds "pieces that write apart are no race" ./race
holds "a sum without a lock is one" bash -c '! ./race now 2>/dev/null'

# ---- commands ----

clean() { # description, arguments...
    local what=$1
    shift
    run "$@" -q --threads 4
    [ $status = 0 ] && ! grep -q ThreadSanitizer log/err
    verdict "$what" "$([ $? = 0 ] || { echo "# exit status $status"; head -n 40 log/err | sed 's/^/# /'; })"
}

head -c 3000 "$SH_TOP/demo/text/natural.txt" >text.txt
text=(--model "$SH_TOP/demo/model" --text text.txt --length 96 --count 3)
clean "trace" trace "${text[@]}" --db full.db --vectors qkv
clean "trace with hidden states in a file" trace "${text[@]}" --db spill.db --memory 1
clean "trace of sparse rows" trace "${text[@]}" --db sparse.db --record sparse
clean "trace of statistics" trace "${text[@]}" --db summary.db --record summary
clean "trace with coded weights" trace "${text[@]}" --db coded.db --weight-bits 4
clean "trace of a shard" trace "${text[@]}" --db part.db --shard 1/2
clean "trace of the other" trace "${text[@]}" --db part.db --shard 2/2
clean "merge" merge --db part.db part.db.shard-1-of-2 part.db.shard-2-of-2
clean "verify" verify --db full.db
clean "persistence of full rows" persistence --db full.db
clean "persistence of sparse rows" persistence --db sparse.db
clean "replay of all policies" replay --db full.db --policy all --budget 0.1,0.3,1.0
clean "replay with kept sets" replay --db full.db --policy h2o --budget 0.3 --dump-kept kept.jsonl
clean "plan" plan --db full.db --policy h2o --target-recall 0.9 --allocator greedy -o plan.json
clean "theory" theory --db full.db --replicas 4
clean "eval" eval "${text[@]}" --policy h2o streaming --budget 0.3 --db full.db
clean "eval with coded keys and values" eval "${text[@]}" --policy h2o --budget 0.3 --kv-bits 4
clean "drift" drift --model "$SH_TOP/demo/model" --db full.db --policy h2o --budget 0.3
clean "generate" generate --model "$SH_TOP/demo/model" --prompt-file text.txt --max-tokens 16 --policy h2o --budget 64

# ---- unit tests ----

for name in team store recorder forward replay session slots engine prompt; do
    test=$(dirname "$SHEARS")/tests/unit/test_$name
    [ -x "$test" ] || continue
    how=()
    [ $name != prompt ] || how=(env -u SH_TEST_MODULE)      # on the emulated device it takes half an hour
    "${how[@]}" "$test" >log/out 2>log/err
    status=$?
    [ $status = 0 ] && ! grep -q ThreadSanitizer log/err
    verdict "test_$name" "$([ $? = 0 ] || { echo "# exit status $status"; head -n 40 log/err | sed 's/^/# /'; })"
done
finish
