#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The pack of make gpu-pack GPU_PACK_EMULATED=1 where nothing is but glibc, libstdc++, libgcc, a shell, a few coreutils
# and Python: it unpacks, its program says that there is no driver and traces on the CPU, and a whole day runs on the
# emulated device. A step that is killed has left what it had. make check-gpu-pack builds the pack and runs this.
. "$(dirname "$0")/lib.sh"

pack=$(dirname "$SHEARS")/shears-gpu-pack-emulated.tar.xz
[ -r "$pack" ] || { echo "1..0 # SKIP there is no pack; make check-gpu-pack makes it"; exit 0; }

# ---- the runner by itself: a part that hangs does not take the others' time ----

python - "$SH_TOP/bench" >runner.log 2>&1 <<'P'
import os, sys, time
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
from gpu_day import Day, Files
from gpu_parts import Part
os.mkdir("runner")
files = Files("runner", 2, True)
day = Day(SimpleNamespace(work="."), files, time.time() + 8)
sh = lambda text: ["sh", "-c", text]
day.run(Part("hangs", sh("echo '{\"n\": 1}'; echo here; sleep 100 & sleep 100"), 1, 0))
day.run(Part("absent", sh("echo 'no such thing' >&2; exit 3"), 5, 0))
day.run(Part("fails", sh("echo '{\"failed\": \"it broke\"}'; exit 1"), 5, 0))
day.run(Part("tests", sh("echo 'ok 1 - a'; echo 'not ok 2 - b'"), 5, 0))
day.run(Part("not there", ["./nothing"], 5, 0))
day.run(Part("next", sh("echo '{\"n\": 2}'"), 5, 0))
day.run(Part("late", sh("true"), 50, 60))
assert day.bad == 3, day.bad
P
holds "parts that hang, fail or are absent are told apart, and the next one runs" python - <<'P'
import json
text, rows = open("runner/gpu-day-2-summary.txt").read(), [*map(json.loads, open("runner/gpu-day-2-numbers.jsonl"))]
for line in ("== hangs: STOPPED after 1.", "its time was over; it said last: here", "[hangs] here", "== absent: left out after",
             ": no such thing", "== fails: FAILED with status 1", ": it broke", "== tests: FAILED with status 0",
             "1 ok, 1 not ok", "not ok 2 - b", "== not there: left out", "== next: done", "== late: left out: the step's time"):
    assert line in text, (line, text)
assert [r["n"] for r in rows if "n" in r] == [1, 2] and all(r["emulated"] for r in rows), rows
P
sed 's/^/# /' runner.log

# ---- a root folder with next to nothing ----

root=$work/root
copied() { # file: into the root, with the libraries that it needs
    mkdir -p "$root$(dirname "$1")"
    cp -L "$1" "$root$1"
    ldd "$1" 2>/dev/null | sed -n 's/^[^/]*\(\/[^ ]*\) (.*/\1/p' | while read -r library; do
        [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
    done
}
mkdir -p "$root"/{bin,tmp,proc,dev/shm,day}
[ "$(id -u)" = 0 ] || { skip "the pack in a bare root" "only root may chroot"; finish; exit; }
for name in sh cat date dirname env mktemp rm sleep; do
    path=$(type -P $name) || path=
    [ -n "$path" ] || { skip "the pack in a bare root" "there is no $name to copy"; finish; exit; }
    copied "$(readlink -f "$path")"
    ln -sf "$(readlink -f "$path")" "$root/bin/$name"
done
# Those that may bring libraries of the pack's (a coreutils with SELinux: PCRE2) are a line of Python each.
printf '#!/bin/sh\nexec python3 -c "import os, sys; [os.makedirs(p, exist_ok=True) for p in sys.argv[2:]]" "$@"\n' >"$root/bin/mkdir"
printf '#!/bin/sh\nexec python3 -c "import os, sys; print(*sorted(os.listdir(sys.argv[1])))" "$@"\n' >"$root/bin/ls"
chmod +x "$root"/bin/{mkdir,ls}
# Python as it is here, without what needs libraries that the pack has to bring.
python -c 'import sys, sysconfig; print(sys.executable); print(sysconfig.get_path("stdlib"))' >places
interpreter=$(readlink -f "$(sed -n 1p places)") stdlib=$(sed -n 2p places)
copied "$interpreter"
ln -sf "$interpreter" "$root/bin/python3"
mkdir -p "$root$stdlib"
tar -C "$stdlib" --exclude=test --exclude=tests --exclude='*-packages' --exclude=idlelib --exclude=tkinter --exclude=ensurepip \
    --exclude=__pycache__ --exclude='config-*' --exclude='_sqlite3*' --exclude='_tkinter*' --exclude='_zstd*' -cf - . |
    tar -C "$root$stdlib" -xf -
for module in "$stdlib"/lib-dynload/*.so; do
    case $module in *_sqlite3* | *_tkinter* | *_zstd*) ;; *) copied "$module" ;; esac
done
for library in libstdc++.so.6 libgcc_s.so.1 libdl.so.2 libpthread.so.0 librt.so.1; do
    path=$(ldconfig -p | sed -n "s/.*$library (libc6,x86-64.* => //p" | head -n 1)
    copied "$path"
done
cp "$pack" "$root/pack.tar.xz"
cp "$SH_TOP/bench/gpu_day.sh" "$root/"
golden_tokens opt >"$root/tokens.jsonl"

# Its own mounts, which go with the process. $1: a script for sh; what is bound besides /proc is in $bind.
bind=
in_root() {
    unshare -m sh -c '
        for file in /dev/null /dev/zero /dev/urandom; do : >"$1$file"; mount --bind $file "$1$file" || exit 90; done
        mount --rbind /proc "$1/proc" || exit 90
        [ -z "$3" ] || { mkdir -p "$1$3" && mount --bind "$3" "$1$3" || exit 90; }
        exec chroot "$1" env -i PATH=/bin HOME=/ TMPDIR=/tmp SHEARS_GPU="${SHEARS_GPU-}" sh -c "$2"' sh "$root" "$1" "$bind" \
        >log/out 2>log/err </dev/null
    status=$?
}
# A table's last column may go over several lines.
one_line() { tr -s ' \n' ' ' <log/out >log/line && mv log/line log/out; }
in_root "python3 -c 'print(1 + 1)'"
[ $status = 0 ] || { skip "the pack in a bare root" "chroot or mounts are not allowed: $(head -n 1 log/err)"; finish; exit; }

in_root "python3 -m tarfile -e pack.tar.xz / && ls /shears-gpu-pack/lib && ls /shears-gpu-pack"
expect "the pack unpacks with Python alone" 0 "libdnnl" ""
holds "what the pack brings is not in the root" test -z "$(for library in "$root"/shears-gpu-pack/lib/*; do
    find "$root" -path "$root/shears-gpu-pack" -prune -o -name "$(basename "$library")" -print; done)"
enter="cd /shears-gpu-pack && . ./env.sh && "
if [ -e "$root/shears-gpu-pack/kernels/cuda.so" ]; then
    in_root "$enter ./shears info backends"
    one_line
    expect "without cuBLAS and driver: both are said" 0 \
        "cuda +cannot load .*libcublas.so.13.*nor is there an NVIDIA driver on this machine" ""
    cublas=$(python "$SH_TOP/bench/gpu_libraries.py" | tr : '\n' | grep -v '/lib$' | head -n 1)
    if [ -n "$cublas" ]; then
        bind=$(readlink -f "$cublas")
        in_root "$enter LD_LIBRARY_PATH=\$LD_LIBRARY_PATH:$bind ./shears info backends"
        one_line
        expect "with cuBLAS: there is no driver" 0 "cuda +cannot open .*this machine has no NVIDIA driver" ""
        bind=
    else
        skip "with cuBLAS: there is no driver" "there is no toolkit here"
    fi
else
    skip "info backends in the bare root" "the pack was made without nvcc"
fi
in_root "$enter ./shears trace --model tests/golden/checkpoints/opt --tokens /tokens.jsonl --db /cpu.db --backend cpu -q"
expect "a trace on the CPU" 0 "^layers finished +[1-9]" ""
run trace --model "$checkpoints/opt" --tokens "$root/tokens.jsonl" --db out/cpu.db --backend cpu -q
holds "it is the one of the program that was built here" same "$root/cpu.db" out/cpu.db

# ---- the day ----

export SHEARS_GPU=emulated
for step in 1 2 3; do
    began=$SECONDS
    in_root "OUT=/day sh /gpu_day.sh $step /pack.tar.xz"
    took=$((SECONDS - began))
    echo "# step $step: $took s"
    expect "step $step runs through" 0 "^== step $step ended" ""
    [ $status = 0 ] || sed 's/^/# /' log/out
    holds "step $step takes less than nine minutes" test $took -lt 540
done
holds "at most eight files, and each says that it is the emulation's" python - "$root/day" <<'P'
import json, os, sys
files = sorted(os.listdir(sys.argv[1]))
assert 6 <= len(files) <= 8, files
for name in files:
    lines = open(os.path.join(sys.argv[1], name)).read().splitlines()
    assert "EMULATED DEVICE: nothing here ran on a GPU" in lines[0], (name, lines[0])
    if name.endswith(".jsonl"):
        assert all(json.loads(line)["emulated"] for line in lines), name
P
holds "the parts have left their numbers" python - "$root/day" <<'P'
import json, sys
rows = [json.loads(l) for step in (1, 2, 3) for l in open(f"{sys.argv[1]}/gpu-day-{step}-numbers.jsonl")]
assert not [r for r in rows if r.get("ended") in ("failed", "stopped")], rows
part = {}
for r in rows: part.setdefault(r.get("part"), []).append(r)
assert any(r.get("operation") == "attend" for r in part["kernels_speed"])
assert any("share_of_copy" in r for r in part["slots_speed"])
assert part["test_attend"][-1]["ok"] > 0 and part["test_attend"][-1]["not_ok"] == 0
assert {r.get("record") for r in rows} >= {"full log8", "sparse", "summary", "one layer only"}
assert sum(r.get("within") is True for r in part["trace, CPU against CUDA"]) >= 30
assert {(r["batch"], r["policy"].split(":")[0], r["kv_bits"]) for r in rows if "tokens_per_s" in r and r.get("batch")} >= {
    (b, p, k) for b in (1, 2, 3, 5) for p, k in (("full", 16), ("scissorhands", 16), ("scissorhands", 4), ("window", 4))}
assert all("predicted" in r for r in part["largest batches"] if "tokens_per_s" in r)
P
nothing_left() { ! (cd "$root" && ls -d dev/shm/shears* tmp/shears* 2>/dev/null | grep .); }
holds "nothing is left in the folders of weights and stores" nothing_left

# ---- killed half-way ----

killed() { # signal: to the runner, when its second part has ended
    rm -rf "$root"/day/*
    in_root "OUT=/day sh /gpu_day.sh 2 /pack.tar.xz & child=\$!
        i=0; while ! [ \$(cat /day/*summary.txt 2>/dev/null | { n=0; while read -r l; do case \$l in '== '*) n=\$((n + 1)) ;; esac; done; echo \$n; }) -ge 2 ] &&
            [ \$i -lt 600 ]; do sleep 0.1; i=\$((i + 1)); done
        kill -$1 \$child; if [ $1 = KILL ]; then                # the runner with it, known by the folder of its own
            own=\$(ls /dev/shm); own=\${own##*shears-pack.}
            for p in /proc/[0-9]*; do case \$(cat \$p/cmdline 2>/dev/null) in
                python3*/shears-pack.\${own%% *}/shears-gpu-pack/bench/gpu_day.py*) kill -KILL \${p#/proc/} ;; esac; done; fi
        wait \$child"
    holds "SIG$1 half-way: what had ended is told, line by line" python - "$root/day" "$1" <<'P'
import json, sys
text = open(f"{sys.argv[1]}/gpu-day-2-summary.txt").read()
rows = [json.loads(l) for l in open(f"{sys.argv[1]}/gpu-day-2-numbers.jsonl")]
assert "== weights: done" in text and "== step 2 ended" not in text and text.endswith("\n"), text
assert ("== interrupted by SIGTERM" in text) == (sys.argv[2] == "TERM"), text
assert any(r.get("record") == "one layer only" and r["shears_tokens_per_s"] > 0 for r in rows), rows
P
}
killed TERM
holds "SIGTERM leaves nothing in the folders of weights and stores" nothing_left
killed KILL
finish
