#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page of figures: sizes that are kept or refused, panels, headings, names, fonts, and every kind of file, from
# shears plot and from the commands that draw figures of their own. Their layout: tests/unit/test_layout.c.
. "$(dirname "$0")/lib.sh"

python3 -c '
import json, random
random.seed(3)
for _ in range(3):
    print(json.dumps([random.randrange(3, 60) for _ in range(48)]))' >tokens.jsonl
run trace --db t.db -q --model "$checkpoints/opt" --tokens tokens.jsonl
expect "a store to draw" 0 "sequences" ""
run replay --db t.db -q --policy window h2o tova --budget 0.1,0.2,0.5
expect "results to draw" 0 "kept mass" ""
plot() { run plot persistence --db t.db -q "$@"; }
size() { sed -n 's/.*viewBox="0 0 \([0-9]* [0-9]*\)".*/\1/p' "$1"; }

if ! command -v gnuplot >/dev/null; then
    skip "figures" "gnuplot is not here"
    finish
    exit $?
fi

# What gnuplot reads is a file, and of a long text's map no more cells than a page has points.
python3 "$cli/checkpoint.py" random long vocab_size=64 max_position_embeddings=1200
python3 -c 'print([(7 + 3 * i * i) % 60 for i in range(1200)])' >long.jsonl
run trace --db long.db -q --model long --random-weights --tokens long.jsonl
mkdir spy
printf '#!/bin/sh\nstat -L -c %%F /proc/self/fd/0 >>%s/read\nexec %s "$@"\n' "$work" "$(command -v gnuplot)" >spy/gnuplot
chmod +x spy/gnuplot
search=$work/spy:$PATH run plot heatmap --db long.db -q -o out/a.svg --data map.tsv
expect "a map of a long text" 0 "" ""
holds "  gnuplot reads a file, not a pipe" [ "$(sort -u read)" = "regular file" ]
holds "  of at most 1000 x 1000 cells in a map" python3 -c '
for block in open("map.tsv").read().strip().split("\n\n"):
    rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
    assert 50 < len(rows) <= 1000 and max(map(len, rows)) <= 1000, (len(rows), max(map(len, rows)))'

plot -o out/a.svg --width 3.3in --height 3in
expect "a height with room for the panels" 0 "" ""
holds "is the figure's" [ "$(size out/a.svg)" = "330 300" ]
rm -f out/*
for width in 2in 3.3in; do
    run plot heatmap --db t.db long.db -q -o out/a.svg --width $width --height 1in
    run plot heatmap --db t.db long.db -q -o out/a.svg --width $width \
        --height "$(sed -n 's/.*(--height \([0-9.]*in\).*/\1/p' log/err)"
    expect "a heat map $width wide: the height that the refusal names is enough" 0 "" ""
    rm out/a.svg
done
refuse "a height without" 2 "persistence needs [0-9.]+ inches of height at a width of 3.3, found 1.2" \
    plot persistence --db t.db -q -o out/a.svg --width 3.3in --height 1.2in
for f in persistence budget-curve heads heatmap dropped-mass leaderboard persistence-grid; do
    run plot $f --db t.db -q -o out/$f.svg --width 84mm
    verdict "$f: a column is at most 4 in tall" "$([ $status = 0 ] && read -r _ h < <(size out/$f.svg) && [ "$h" -le 400 ] ||
        echo "# status $status, size $(size out/$f.svg); $(cat log/err)")"
done

plot -o out/a.svg --panels 2
holds "--panels: the second alone" sh -c 'grep -q "beyond recency" out/a.svg && ! grep -q "literal" out/a.svg'
rm -f out/*
refuse "--panels: one that is not there" 2 "persistence has 2 panels" plot persistence --db t.db -q -o out/a.svg --panels 1,7
refuse "--panels: no number" 2 "panels two" plot persistence --db t.db -q -o out/a.svg --panels two

plot -o out/a.svg --no-title
holds "--no-title: neither heading nor settings" sh -c '! grep -q "of importance\|sequences" out/a.svg'
plot -o out/a.svg --title "A & B"
holds "--title: instead of the figure's own" sh -c 'grep -q "A &amp; B" out/a.svg && ! grep -q "of importance" out/a.svg'
plot -o out/a.svg --name t.db="My model"
holds "--name: what a store is called" grep -q ">My model<" out/a.svg
cp t.db u.db
for f in persistence heads; do
    run plot $f --db t.db u.db -q -o out/a.svg --name t.db="My model" u.db="its twin"
    holds "--name: two stores, in the heading of $f, too" grep -q ">My model, its twin: persistence of importance<" out/a.svg
    run plot $f --db t.db u.db -q -o out/a.svg
    holds "  without it, the model's" grep -q ">opt: persistence of importance<" out/a.svg
done
rm -f out/*
refuse "--name: of another file" 2 "name u.db=x" plot persistence --db t.db -q -o out/a.svg --name u.db=x
refuse "--title and --no-title" 2 "cannot be combined" plot persistence --db t.db -q -o out/a.svg --title x --no-title

plot -o out/a.svg --font "Latin Modern Roman" --font-size 7 --width 5in
holds "--font, --font-size" sh -c 'grep -q "Latin Modern Roman" out/a.svg && grep -q "font-size=\"9.7" out/a.svg'
rm -f out/*
refuse "--font: no name" 2 "font" plot persistence --db t.db -q -o out/a.svg --font "x', system('y')"
plot -o out/a.png --dpi 100 --width 3in --height 3in
holds "--dpi: a PNG's size" python3 -c '
import struct
assert struct.unpack(">II", open("out/a.png", "rb").read(24)[16:]) == (300, 300)'
rm -f out/*
refuse "--dpi: of another kind" 2 "a.svg: only a PNG" plot persistence --db t.db -q -o out/a.svg --dpi 100

plot -o out/a.eps
holds "EPS" sh -c 'head -c 14 out/a.eps | grep -q "%!PS-Adobe-3"'
plot -o out/a.pdf
holds "  its lines are as wide as a PDF's" python3 - <<'P'
import re, zlib
pdf = b"".join(zlib.decompressobj().decompress(m) for m in re.findall(rb"stream\r?\n(.*?)endstream", open("out/a.pdf", "rb").read(), re.S)
               if m[:1] == b"x")
widths = [sorted({float(w) for w in re.findall(rb"(?<![\d.])([\d.]+) w\b", text) if float(w) < 9})
          for text in (pdf, open("out/a.eps", "rb").read())]
assert len(widths[0]) > 2 and all(abs(a - b) <= 0.01 * a + 1e-3 for a, b in zip(*widths)) and len(widths[0]) == len(widths[1]), widths
P
if gnuplot -e 'set terminal tikz' >/dev/null 2>&1; then
    plot -o out/a.tex --name t.db='50% of_it'
    holds "TikZ, with what LaTeX would read as commands made plain" sh -c \
        'grep -q "begin{tikzpicture}" out/a.tex && grep -qF "50\\% of\\_it" out/a.tex && grep -qF "\\alpha" out/a.tex'
fi
for kind in svg png pdf eps tex; do
    rm -f out/*
    plot -o out/a.$kind --script
    case $kind in png | pdf) terminal=${kind}cairo ;; eps) terminal=epscairo ;; tex) terminal=tikz ;; *) terminal=svg ;; esac
    verdict "--script draws the kind that was asked for: $kind" "$(faults 0 "" "")$(
        [ "$(ls out)" = a.$kind.gp ] && grep -q "set terminal $terminal" out/a.$kind.gp &&
        grep -q "set output '.*out/a.$kind'" out/a.$kind.gp || echo "# $(ls out)")"
done

rm -f out/*
run capacity --model llama-2-7b --gpu H100-SXM --length 4096 --budget 0.2,1.0 --plot-memory out/m.svg --plot-frontier out/f.svg \
    --width 3.3in --no-title -q
expect "capacity: the same options" 0 "length" ""
verdict "capacity: both figures have the width" "$([[ $(size out/m.svg) == "330 "* && $(size out/f.svg) == "330 "* ]] ||
    echo "# $(size out/m.svg), $(size out/f.svg)")"
run simulate --model llama-2-7b --gpu H100-SXM --rate 1,2 --requests 50 --prompt 300 --output 20 --budget 0.2 -q \
    --plot-occupancy out/o.svg --width 3.3in --title Occupancy
expect "simulate: the same options" 0 "rate" ""
holds "occupancy: a panel for each rate, a name for each cache" sh -c '
    grep -q ">1 requests/s<" out/o.svg && grep -q ">2 requests/s<" out/o.svg && grep -q ">Occupancy<" out/o.svg &&
    [ "$(grep -c ">0.2<" out/o.svg)" -ge 1 ]'
rm -f out/*
refuse "simulate: a page that cannot be" 2 "height" simulate --model llama-2-7b --gpu H100-SXM --rate 1 --requests 50 --prompt 300 \
    --output 20 -q --plot-occupancy out/o.svg --height 99999in
finish
