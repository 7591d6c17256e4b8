#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --force by ranks: what the store has of the job goes before the ranks' finds come, so that they take its place whether
# they differ or not. So do sets of results that are not whole, without --force, and a store that a rank left.
. "$(dirname "$0")/lib.sh"
n_sequence=2
. "$cli/ranks_lib.sh"

golden_tokens opt >golden.jsonl
run "${trace[@]}" --db traced.db -q
command_of() { # which: $words; $figure, one of those that it keeps
    case $1 in
        eval) words=(eval --model "$checkpoints/opt" --tokens golden.jsonl --policy full window h2o --budget 0.3,0.5
            --threads 1 -q)
            figure=kl ;;
        replay) words=(replay --policy h2o window --budget 0.3,0.5 --threads 1 -q) figure=kept_mass ;;
        allocator) words=(replay --policy h2o window --budget 0.3,0.5 --allocator pyramid:beta=20 --threads 1 -q)
            figure=kept_mass ;;
        simulate) words=(simulate --model opt-125m --gpu A100-SXM-80GB --rate 20,40 --budget 0.2 --requests 20
            --prompt 300 --output 30 -q)
            figure=throughput_tokens_per_s ;;
    esac
}
again() { # what, arguments...: three ranks, and the store is what one process wrote
    ranks 3 "${words[@]}" --db out/x.db "${@:2}"
    expect "$1" 0 . ""
    holds "$1: the content is one process's" same $which.db out/x.db
    holds "$1: no rank's store is left" only x.db
}
count() { sqlite3 out/x.db "SELECT count(*) FROM result WHERE metric = '$figure'"; }

for which in eval replay allocator simulate; do
    command_of $which
    case $which in replay | allocator) cp traced.db $which.db ;; esac
    run "${words[@]}" --db $which.db
    cp $which.db out/x.db
    holds "$which: there is that figure" [ "$(count)" -gt 1 ]
    again "$which: forced" --force
    holds "$which: it was asked for anew" \
        [ -z "$(sqlite3 out/x.db "SELECT line FROM typed WHERE line NOT LIKE '%out/x.db --force'")" ]
    sqlite3 out/x.db "UPDATE result SET value = value * 1.5 + 0.001 WHERE metric = '$figure'"
    cp out/x.db other.db
    again "$which: other figures are replaced" --force
    case $which in eval | simulate)                     # of replay one figure is as good as all
        sqlite3 out/x.db "DELETE FROM result WHERE metric = '$figure'"
        again "$which: what is not whole is done again" ;;
    esac
    sqlite3 other.db "DELETE FROM run; DELETE FROM sequence; DELETE FROM done; DELETE FROM scores; DELETE FROM model"
    mv other.db out/x.db.rank-0001
    again "$which: a rank's store with other figures does not stop it" --force
    rm -rf out && mkdir out
done
finish
