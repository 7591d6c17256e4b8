#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The package for Python: pip installs it into a fresh environment, its examples run, its arrays and tables are what the
# program writes, errors have their parts, Ctrl-C stops; the wheel runs in a root without compiler and libraries.
. "$(dirname "$0")/lib.sh"
find_numeric
built=$(dirname "$SHEARS")
[ -e "$built/Makefile" ] || { echo "1..0 # SKIP the library was not built here"; exit 0; }
[ -z "${SH_SANITIZED-}" ] || { echo "1..0 # SKIP Python does not begin with the sanitizers' runtime"; exit 0; }
"$numeric" -c 'import ensurepip' 2>/dev/null || { echo "1..0 # SKIP $numeric makes no environments (python3-venv)"; exit 0; }
export PYTHONDONTWRITEBYTECODE=1 SHEARS_BUILD=$built PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1
unset MAKEFLAGS MFLAGS MAKELEVEL PYTHONPATH
source=${SH_TOP:?the source tree}/python

holds "a fresh environment" "$numeric" -m venv --system-site-packages venv
holds "pip install ./python" venv/bin/pip install -q "$source"
py() { venv/bin/python "$@"; }
verdict "import shears takes less than 100 ms, and no numpy" "$(
    for _ in 1 2 3 4 5; do py -X importtime -c 'import shears, sys; sys.exit("numpy" in sys.modules)' 2>log/import || echo 1000000
        awk -F'|' '$3 ~ /^ shears$/ { print $2 + 0 }' log/import
    done | sort -n | head -n 1 | awk '$1 >= 100000 { print "# it takes " $1 " us" } END { if (!NR) print "# it failed" }')"
holds "the examples in the docstrings" py - <<'P'
import doctest, importlib, sys
import shears
ran = 0
for name in "", "._ask", "._lib", "._store", "._table":
    done = doctest.testmod(importlib.import_module("shears" + name))
    ran += done.attempted
    if done.failed:
        sys.exit("%d of shears%s failed" % (done.failed, name))
if ran < 25:
    sys.exit("only %d examples ran" % ran)
P
holds "the version is the program's" py -c '
import shears, subprocess, sys
assert subprocess.check_output([sys.argv[1], "--version"], text=True) == "shears %s\n" % shears.version()' "$SHEARS"

# ---- arrays and tables ----

golden_tokens opt >tokens.jsonl
for kind in f32 f16 log8; do run trace -q --model "$checkpoints/opt" --db $kind.db --tokens tokens.jsonl --codec $kind --vectors qkv; done
run trace -q --model "$checkpoints/opt" --db sparse.db --tokens tokens.jsonl --record sparse
run trace -q --model "$checkpoints/opt" --db summary.db --tokens tokens.jsonl --record summary
run trace -q --model "$checkpoints/mistral" --db window.db --tokens <(golden_tokens mistral)
run import -q --db both.db --attention "$checkpoints/opt/ref.safetensors" --kind bidirectional
for kind in f32 f16 log8 sparse window both; do
    holds "scores of $kind.db are those of export" py "$cli/python.py" scores $kind.db
done
holds "rows, vectors, tokens, runs" py "$cli/python.py" contents
holds "tables are what --json says" py "$cli/python.py" tables
holds "pandas, if it is here" py "$cli/python.py" pandas
holds "figures" py "$cli/python.py" figures
holds "errors have their parts" py "$cli/python.py" errors
holds "progress, and what stops the work" py "$cli/python.py" progress
holds "Ctrl-C" py "$cli/python.py" interrupt
holds "two threads, a forked process, a store that is closed" py "$cli/python.py" threads
holds "type hints: of every function and method" py "$cli/python.py" hints
holds "the notebook, cell by cell" py "$cli/python.py" notebook "$SH_TOP/doc/notebook.ipynb"

# ---- the wheel where nothing else is ----

holds "make wheel" make -s -C "$built" wheel PYTHON="$numeric"
wheel=$(echo "$built"/dist/shears-*.whl)
root=$work/root
copied() { # file: into the root, with the libraries that it needs
    mkdir -p "$root$(dirname "$1")"
    cp -L "$1" "$root$1"
    ldd "$1" 2>/dev/null | sed -n 's/^[^/]*\(\/[^ ]*\) (.*/\1/p' | while read -r library; do
        [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
    done
}
bare() {
    local interpreter packages file
    interpreter=$(readlink -f "$("$numeric" -c 'import sys; print(sys.executable)')")
    mkdir -p "$root"/{tmp,proc,package}
    copied "$interpreter"
    for file in libstdc++.so.6 libgcc_s.so.1; do        # of every Debian: apt needs them
        copied "$(ldd "$built/libshears.so.0" | awk -v name=$file '$1 == name { print $3 }')"
    done
    "$numeric" -c 'import sysconfig, numpy, os
print(sysconfig.get_path("stdlib")); print(os.path.dirname(numpy.__file__))' >folders
    while read -r packages; do
        mkdir -p "$root$(dirname "$packages")" && cp -rL "$packages" "$root$(dirname "$packages")" 2>/dev/null
        find "$packages" -name '*.so' | while read -r file; do copied "$file"; done
    done <folders
    "$numeric" -m zipfile -e "$wheel" "$root/package"
    env -i PATH=/nowhere PYTHONPATH="/package:$(dirname "$(tail -n 1 folders)")" HOME=/tmp "$(PATH=$PATH:/usr/sbin:/sbin type -P chroot)" "$root" "$interpreter" -c '
import os, shears
assert not os.path.exists("/usr/bin/gcc") and not os.path.exists("/bin/sh")
store = shears.open(shears.example())
assert store.scores(1, 1, 2).shape == (88, 88)
assert len(store.replay(policies=["h2o"], budgets=[0.5]).results) == 1
assert shears.capacity(model="llama-3.1-8b", gpu="H100-SXM", length=8192).results["batch"][0] == 64'
}
if [ "$(id -u)" = 0 ]; then
    holds "the wheel in a root without compiler and libraries" bare
else
    skip "the wheel in a root without compiler and libraries" "only root may chroot"
fi
finish
