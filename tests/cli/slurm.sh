#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# doc/slurm on a Slurm of one node that this script starts for itself: the array job with its merge, and ranks
# by srun --mpi; both must hold what one process writes.
. "$(dirname "$0")/lib.sh"

lacks() { echo "1..0 # SKIP $1"; exit 0; }
PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd sbatch srun munged; do
    command -v $program >/dev/null || lacks "$program is not here"
done
[ "$(id -u)" = 0 ] || lacks "slurmd wants to be root"
[ -e "${SHEARS%/*}/src/ranks/mpi.so" ] || lacks "mpi.so is not built"
export SH_MODULE_DIR=${SHEARS%/*}/src/ranks LSAN_OPTIONS=detect_leaks=0

# ---- one node ----

host=$(hostname -s) port=$((20000 + $$ % 20000)) s=$work/slurm daemons=()
mkdir -p $s/state $s/spool && chmod 755 "$work" $s && chmod 700 $s/state
head -c 128 /dev/urandom >$s/key && chmod 400 $s/key
munged --force --foreground --key-file=$s/key --socket=$s/munge.socket --pid-file=$s/munge.pid \
    --log-file=$s/munge.log --seed-file=$s/munge.seed >$s/munge.out 2>&1 &
daemons+=($!)
cat >$s/slurm.conf <<C
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$s/munge.socket
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$s/state
SlurmdSpoolDir=$s/spool
SlurmctldPidFile=$s/slurmctld.pid
SlurmdPidFile=$s/slurmd.pid
SlurmctldLogFile=$s/slurmctld.log
SlurmdLogFile=$s/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
MinJobAge=30
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:4
C
export SLURM_CONF=$s/slurm.conf
stop() {
    for d in "${daemons[@]}"; do kill "$d" 2>/dev/null; done
    for _ in $(seq 30); do
        kill -0 "${daemons[@]}" 2>/dev/null || break
        sleep 0.1
    done
    for d in "${daemons[@]}"; do kill -9 "$d" 2>/dev/null; done
    rm -rf "$work"
}
trap stop EXIT
slurmctld -D -i >$s/slurmctld.out 2>&1 &
daemons+=($!)
slurmd -D >$s/slurmd.out 2>&1 &
daemons+=($!)
all_run() {
    for d in "${daemons[@]}"; do kill -0 "$d" 2>/dev/null || return 1; done
}
up=
for _ in $(seq 100); do
    sleep 0.2
    all_run || break
    [ "$(timeout 5 sinfo -h -o %t 2>/dev/null)" = idle ] && up=1 && break
done
last_words() { # daemon: on stderr, or in its log where it says nothing there
    local from=$s/$1.out
    [ -s "$from" ] || from=$s/$1.log
    grep . "$from" 2>/dev/null | tail -n 2 | paste -sd ' '
}
[ -n "$up" ] || lacks "no Slurm node came up; slurmctld: $(last_words slurmctld); slurmd: $(last_words slurmd)"

# ---- jobs ----

golden_tokens opt >tokens.jsonl
model=$checkpoints/opt
run trace --model "$model" --tokens tokens.jsonl -q --db one.db
as_one() { same one.db "$1" || { cat slurm-*.out; tail -n 20 $s/slurmd.log; false; }; }
export MODEL=$model OPTIONS="--tokens $work/tokens.jsonl" SHEARS SHARDS=3
export DB=$work/array.db
array() { sbatch --parsable --array="$1" --cpus-per-task=1 --time=5 "$SH_TOP/doc/slurm/array.sbatch"; }
job=$(array 1-2):$(array 3)
holds "an array job and its merge end" timeout 60 \
    sbatch --wait --dependency=afterok:"$job" --kill-on-invalid-dep=yes --time=5 "$SH_TOP/doc/slurm/merge.sbatch"
holds "they make what one process writes" as_one array.db
holds "no shard is left" bash -c '! ls array.db.shard-* 2>/dev/null'

export DB=$work/mpi.db
mpi=pmix
srun --mpi=list 2>&1 | grep -q pmix || mpi=pmi2
holds "ranks by srun --mpi=$mpi end" env MPI=$mpi timeout 60 sbatch --wait --nodes=1 --ntasks-per-node=3 \
    --cpus-per-task=1 --time=5 "$SH_TOP/doc/slurm/mpi.sbatch"
holds "they make what one process writes" as_one mpi.db
holds "no rank's store is left" bash -c '! ls mpi.db.rank-* 2>/dev/null'
timeout 60 srun --mpi=none -n 2 "$SHEARS" trace --model "$model" --tokens tokens.jsonl -q --db mute.db >log/out 2>log/err
holds "tasks that cannot talk are refused" grep -q "srun started several tasks" log/err
holds "and write nothing" [ ! -e mute.db ]
finish
