#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The report: a well-formed page with all parts, nothing fetched from elsewhere, foreign names harmless, what is
# missing named with its command; refused when it would write over what it reads; sizes and data of figures.
. "$(dirname "$0")/lib.sh"

hostile='<img src=x onerror=alert(1)>&"x'
cp -r "$checkpoints/opt" "$hostile"
python3 - <<'P'
import json
for seed, name in ((1, "ids.jsonl"),):
    with open(name, "w") as f:
        for s in range(3):
            f.write(json.dumps([(7 * i * i + 3 * s + i) % 50 + 4 for i in range(24)]) + "\n")
P
run trace --model "$hostile" --tokens ids.jsonl --db t.db -q
expect "a model with a hostile name is traced" 0 . ""
run trace --model "$hostile" --tokens ids.jsonl --db r.db --random-weights -q
expect "and its random twin" 0 . ""
cp t.db bare.db

if ! PATH=${search-$PATH} command -v gnuplot >/dev/null; then
    refuse "without gnuplot: status 3 and what to do" 3 "report out/a.html: gnuplot is needed to draw it and is not on PATH" \
        report --db t.db -o out/a.html
    skip "the page" "gnuplot is not here"
    finish
    exit
fi
search=$work/nothing refuse "without gnuplot: status 3 and what to do" 3 \
    "report out/a.html: gnuplot is needed to draw it and is not on PATH" report --db t.db -o out/a.html
refuse "no output" 2 "report .*-o FILE.html$" report --db t.db
refuse "no store" 1 "gone.db" report --db gone.db -o out/a.html
cp t.db same.db
refuse "the store is not written over" 2 ".*input file same.db" report --db same.db -o same.db
holds "it is as it was" cmp t.db same.db
refuse "no such folder" 1 "out/none/a.html: cannot be written: No such file" report --db t.db -o out/none/a.html
refuse "a page that is called a PDF" 2 "out/a.pdf: .*\.html or \.htm" \
    report --db t.db -o out/a.pdf
refuse "a page without an ending" 2 "out/a: .*\.html" report --db t.db -o out/a
refuse "five stores" 2 "at most 4 stores" report --db t.db t.db t.db t.db t.db -o out/a.html

refuse "a width that is none" 2 "width: '3 miles', expected a size" plot persistence --db t.db -o out/a.svg --width "3 miles"

cat >page.py <<'P'
"""What is wrong with a page: tags that do not match, ids twice, links into nothing, anything from elsewhere."""
import html.parser, re, sys
VOID = {"meta", "br", "img", "link", "input", "hr", "base", "source", "wbr"}

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.faults, self.tags, self.text = [], set(), set(), [], {}, []
    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                if value in self.ids: self.faults.append("id twice: " + value)
                self.ids.add(value)
            if key in ("href", "xlink:href", "src") and value:
                if value.startswith("#"): self.links.add(value[1:])
                elif not value.startswith("data:image/png;base64,"): self.faults.append(f"{tag} {key}={value[:60]}")
            if key.startswith("on"): self.faults.append(f"{tag} has {key}")
            self.links.update(re.findall(r"url\(#([^)]*)\)", value or ""))
            if "url(" in (value or "") and "url(#" not in value: self.faults.append(f"{key}={value[:60]}")
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID: self.open.pop()
    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag: self.faults.append(f"</{tag}> closes {self.open[-1:]}")
        else: self.open.pop()
    def handle_data(self, data):
        self.text.append(data)

def read(path):
    p = Page()
    p.feed(open(path, encoding="utf-8").read())
    p.close()
    p.faults += [f"never closed: {t}" for t in p.open] + [f"leads nowhere: #{i}" for i in p.links - p.ids]
    p.text = " ".join(p.text)
    return p
P
cat >check.py <<'P'
import sys
from page import read
p = read(sys.argv[1])
assert not p.faults, p.faults[:8]
parts = "traced persistence policies allocation quality quantisation capacity theory drift commands".split()
assert all(i in p.ids for i in parts), [i for i in parts if i not in p.ids]
assert "img" not in p.tags and p.tags["script"] == 1, p.tags
for want in sys.argv[2:]:
    lacks = want.startswith("!")
    assert (want.lstrip("!") in p.text or want.lstrip("!") in p.ids) != lacks, want
P

run report --db bare.db -o out/bare.html --length 24 -q
expect "a bare trace makes a page" 0 "report +out/bare.html" ""
holds "it is sound and names what is missing, with commands" python3 check.py out/bare.html "Missing: the control" \
    "--random-weights" "shears replay --db bare.db --policy all" "shears plan --db bare.db" "shears eval" "--kv-bits 4" \
    "shears drift" "onerror=alert(1)" fig-persistence fig-heads fig-heatmap fig-dropped-mass "!fig-budget-curve"

rev=models--some--tiny-two/snapshots/$(printf 'a%.0s' {1..40})
mkdir -p "${rev%/*}" && cp -r "$checkpoints/opt" "$rev" && cp -r "$checkpoints/opt" tiny-opt && cp -r "$checkpoints/opt" plain
sed -i 's/"_name_or_path": "tiny-opt"/"_name_or_path": ""/' plain/config.json
for case in "tiny-opt|tiny-opt" "plain|plain (opt, 2 layers)" "$rev|tiny-opt (some/tiny-two)" "$checkpoints/opt|opt (tiny-opt)"; do
    run trace --model "${case%%|*}" --tokens ids.jsonl --length 24 --count 1 --db named.db -q
    run report --db named.db -o out/named.html -q
    holds "the title says what is known of the model: ${case#*|}" grep -qF "<h1>${case#*|}</h1>" out/named.html
    rm named.db
done
run trace --model "$checkpoints/opt" --tokens ids.jsonl --length 24 --count 1 --db own.db -q
run report --db own.db -o out/own.html -q
holds "commands for what is missing name the store's own model and texts" python3 check.py out/own.html \
    "shears eval --model $checkpoints/opt --tokens ids.jsonl --length 24 --count 1 --policy h2o" "!--model DIR" "!--text FILE" \
    "shears repetition --model $checkpoints/opt --tokens ids.jsonl --length 256 " "!--db FILE" \
    "shears drift --model $checkpoints/opt --db own.db" "shears simulate --model $checkpoints/opt --gpu"
run replay --db t.db --policy h2o window full --budget 0.25,0.5,0.75 -q
expect "a replay" 0 . ""
run plan --db t.db --policy h2o --budget 0.5 -o plan.json -q
run eval --model "$hostile" --tokens ids.jsonl --policy h2o window --budget 0.5 --db t.db -q
expect "a reading under a budget" 0 . ""
run eval --model "$hostile" --tokens ids.jsonl --policy h2o full --budget 0.5 --kv-bits 8 --kv-group 8 --db t.db -q
run drift --model "$hostile" --db t.db --policy h2o --budget 0.5 -q
expect "drift" 0 . ""
run eval --model "$hostile" --tokens ids.jsonl --policy h2o window --budget 0.5 --weight-prune 0.5 --db t.db -q
expect "pruned weights under a budget" 0 . ""
run simulate --model opt-125m --gpu RTX-4090 --rate 20,40 --requests 50 --prompt 100 --output 20 --budget 0.5 --slo-ttft 1 \
    --db t.db --json -q
cp log/out simulate.json
run repetition --model "$hostile" --tokens ids.jsonl --prompt-tokens 6 --max-tokens 8 --policy h2o --budget 8 --db t.db --json -q
cp log/out repetition.json
run report --db t.db r.db --plan plan.json --model "$hostile" --length 24 --json -q -o out/full.html
expect "everything makes a page" 0 '"bytes"' ""
holds "every part is there, with its figures and the commands as they were typed" python3 check.py out/full.html \
    fig-persistence fig-heads fig-persistence-grid fig-heatmap fig-budget-curve fig-leaderboard fig-allocation \
    fig-frontier fig-dropped-mass fig-latency serving weights repetition models "50 % pruned" "!no requests were simulated" \
    "shears simulate --model opt-125m" "shears repetition --model" "!Missing: the control" "!Missing: what 8 or 4 bits" \
    "shears replay --db t.db --policy h2o window full --budget 0.25,0.5,0.75 -q" "--kv-bits 8 --kv-group 8"
holds "pruned weights are compared with those that are stored" python3 check.py out/full.html "as stored" \
    "as the checkpoint stores them; if it stores them quantised, they come on top of that"
holds "its numbers are those of the store" python3 - <<'P'
import json, sqlite3, re
page = open("out/full.html").read()
def value(command, metric, *like):
    where = "".join(" AND settings LIKE ?" for _ in like)
    return sqlite3.connect("t.db").execute("SELECT value FROM result WHERE command = ? AND metric = ? AND layer IS NULL"
                                           + where, (command, metric, *like)).fetchone()[0]
quality = page[page.index('<section id="quality">'):page.index('<section id="quantisation">')]
for command, metric, digits in (("eval", "ppl", 3), ("eval", "kl", 4), ("replay", "kept_mass", 4)):
    like = ['%"h2o"%', '%"budget": "0.5"%'] + ['%"kv_bits": 32%'] * (command == "eval")
    said = f"{value(command, metric, *like):.{digits}f}"
    assert f">{said}</td>" in quality, (command, metric, said)
def section(name):
    return page[page.index(f'<section id="{name}">'):].split("</section>")[0]
nll = lambda policy, pruned: value("eval", "nll", f'%"{policy}"%', '%"kv_bits": 32%', "%weight_prune%" if pruned else '%"budget"%') \
    if pruned else sqlite3.connect("t.db").execute("SELECT value FROM result WHERE command = 'eval' AND metric = 'nll' AND settings"
        " LIKE ? AND settings LIKE '%\"kv_bits\": 32%' AND settings NOT LIKE '%weight_prune%'", (f'%"{policy}"%',)).fetchone()[0]
beyond = nll("h2o", 1) - nll("full", 1) - (nll("h2o", 0) - nll("full", 0))
assert any(f">{beyond + d:.4f}</td>" in section("weights") for d in (-1e-4, 0, 1e-4)), beyond
for row in json.load(open("simulate.json"))["results"]:
    assert f">{row['throughput_tokens_per_s']:.1f}</td>" in section("serving"), row["throughput_tokens_per_s"]
    shown = re.findall(r'<td class="n">([0-9.]+)</td>', section("serving"))
    unit = {"ms": 1e3, "µs": 1e6, "s": 1}[re.search(r"first token: p50, (\w+)<", section("serving")).group(1)]
    assert any(abs(float(x) / (unit * row["ttft_s"]["p99"]) - 1) < 0.006 for x in shown), row["ttft_s"]
    assert f">{row['good_share']:.4f}</td>" in section("serving"), row["good_share"]
for row in json.load(open("repetition.json"))["results"]:
    assert f">{row['rep_4']:.4f}</td>" in section("repetition") and f">{row['ppl']:.3f}</td>" in section("repetition"), row
P
holds "a column without a value is left out, captions say what is drawn, the title names a model once" python3 - <<'P'
import re
page = open("out/full.html").read()
def section(name):
    return page[page.index(f'<section id="{name}">'):].split("</section>")[0]
assert ">output error</th>" not in section("quality") and ">perplexity</th>" in section("quality")
for table in re.findall(r"<tbody>(.*?)</tbody>", page, re.S):
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.S) for row in table.split("</tr>") if "<td" in row]
    assert len({len(r) for r in rows}) == 1, rows[:2]
    assert not any(set(column) == {"-"} for column in zip(*rows)), rows[:2]
said = re.findall(r"<figcaption>(.*?)</figcaption>", page)
assert "This figure shows perplexity against the compression of the cache." in said, said
assert all(s[0].isupper() and s[-1] == "." for s in said), said
assert not any("strips" in s or "accuracy" in s for s in said), said
title = re.search(r"<h1>(.*?)</h1>", page).group(1)
assert title.count("onerror") == 1 and title.endswith(", and the same with random weights"), title
P
holds "on a narrow page, results come early, and what all rows share is in a line" python3 - <<'P'
import html, re
page = open("out/full.html").read()
assert re.search(r"@media[^{]*max-width:640px\)\{.*\.common\{display:block\}\.same\{display:none\}", page, re.S)
plain = lambda x: html.unescape(re.sub("<[^>]*>", "", x))
seen, hidden = {}, 0
for name in re.findall('<section id="(\\w+)"', page):
    part = re.sub("(?s)<svg.*?</svg>", "", page[page.index(f'<section id="{name}">'):].split("</section>")[0])
    for line, head, body in re.findall(r'(?s)(<p class="caption common">.*?</p>\n)?<div class="scroll"><table.*?<thead>(.*?)</thead>'
                                       r"(.*?)</table>", part):
        heads = re.findall(r"<th scope=\"col\"( class=\"[^\"]*\")?>(.*?)</th>", head)
        rows = [re.findall(r"<td( class=\"[^\"]*\")?>(.*?)</td>", row) for row in body.split("<tr>")[1:]]
        shown = [c for c, (kind, _) in enumerate(heads) if "same" not in kind]
        seen.setdefault(name, []).append([plain(heads[c][1]) for c in shown])
        for c, (kind, label) in enumerate(heads):
            cells = {plain(row[c][1]) for row in rows}
            same = c > 0 and len(rows) >= 3 and len(cells) == 1
            assert same == (c not in shown) == all("same" in row[c][0] for row in rows), (name, label)
            assert not same or f"{plain(label)} {cells.pop()}" in plain(line), (name, label, line)
            hidden += same
assert hidden > 5 and "mean kept mass" in seen["policies"][0][:3] and "kept mass" in seen["policies"][1][:4], (hidden, seen["policies"])
assert "perplexity up by, %" in seen["quality"][0][:3] and "largest batch" in seen["capacity"][0][:3], seen["quality"]
assert "rep-4" in seen["repetition"][0][:3] and "mean budget" in seen["allocation"][0][:3], seen["repetition"]
P
holds "a row of a head leads to a map that is there" python3 - <<'P'
import re
page = open("out/full.html").read()
part = page[page.index('<section id="persistence">'):].split("</section>")[0]
left = re.findall("The maps below leave out (.*?): beyond", part)
rows = re.findall("<tr><td[^>]*>(<a href=.#fig-heads.>)?(.*?)(?:</a>)?</td><td class=.n.>\\d+</td><td class=.n.>\\d+</td>",
                  part[part.index("Head by head"):])
assert len(left) == 1 and {bool(link) for link, _ in rows} == {True, False}, (left, rows[:2])
assert all(bool(link) == (name.replace("<wbr>", "") not in left) for link, name in rows), rows
P
holds "the theory's numbers are said in words, which follow from its table" python3 - <<'P'
import html, re
page = html.unescape(open("out/full.html").read())
part = page[page.index('<section id="theory">'):].split("</section>")[0]
columns = re.findall("<th[^>]*>(.*?)</th>", part)
rows = [[re.sub("<[^>]*>", "", c) for c in re.findall("<td[^>]*>(.*?)</td>", row)] for row in part.split("<tr>")[2:]]
number = lambda row, name: float(row[columns.index(name)].replace("-", "nan")) if name in columns else float("nan")
said, seen = re.findall(r"<p>(.*: the largest .*)</p>", part), set()
assert len(said) == len({r[0] for r in rows}) == 2, said
for text, name in zip(said, dict.fromkeys(r[0] for r in rows)):
    own = [r for r in rows if r[0] == name]
    at = min(own, key=lambda r: abs(number(r, "share kept") - 0.2))
    lost, even = number(at, "measured"), 1 - number(at, "share kept")
    means = ["Few tokens hold nearly all", "concentrated, but not", "spread over the tokens"]
    assert f"leave out {100 * lost:.2g} % of its attention; equal scores would leave out {100 * even:.0f} %" in text, text
    assert [m in text for m in means] == [lost / even < 0.05, 0.05 <= lost / even < 0.5, lost / even >= 0.5], text
    law = "law D, truncated at the largest possible score"
    judged = [(number(r, law), number(r, "measured")) for r in own if number(r, law) > 0 and number(r, "measured") > 1e-6]
    below = sum(l < m for l, m in judged)
    assert (f"at {below} of the {len(judged)} budgets that can be compared, more attention" in text if below else
            f"at all {len(judged)} budgets that can be compared, no more attention" in text if judged else "No power law could be fitted" in text), text
    less = [r for r in own if number(r, "share kept") < 0.999]
    says = sum(number(r, "Theorem 4.1, in units of the longest value vector") >= 0 for r in less)
    assert (f"says something at {says} of the {len(less)} budgets below" in text if says else f"says nothing at any of the {len(less)}" in text), text
    seen.add(text.split("%. ", 1)[1])
assert len(seen) == 2, seen
P
for case in "0.2 0.4 0.01 0.02 as-expected" "0.2 0.4 0.02 0.02 need-not-be" "0.4 0.2 0.01 0.02 speaks-against" \
    "0.3 0.3 0.01 0.02 no-sign" "0.2 0.4 0.01 0.02 too-few-texts"; do
    cp t.db case.db
    python3 - $case <<'P'
import sqlite3, sys
uniform, policy, alike, likeness, name = sys.argv[1:]
c = sqlite3.connect("case.db")
row = "command = 'repetition' AND metric = ? AND settings LIKE ?"
for condition, repeats, like in ("full", 0.1, 0.02), ("policy", policy, likeness), ("uniform", uniform, alike):
    for metric, value in ("rep_4", repeats), ("rep_4_stderr", 0.01), ("row_likeness", like), ("row_likeness_stderr", 0.001):
        n = c.execute(f"UPDATE result SET value = ? WHERE {row}", (float(value), metric, f'%"condition": "{condition}"%')).rowcount
        assert n == 1, (metric, condition, n)
if name == "too-few-texts":
    c.execute("UPDATE result SET settings = replace(settings, '\"n_texts\": 3', '\"n_texts\": 2') WHERE command = 'repetition'")
c.commit()
P
    run report --db case.db --length 24 -q -o out/case.html
    holds "repeated text: ${case##* }" python3 - $case <<'P'
import re, sys
uniform, policy, alike, likeness, name = sys.argv[1:]
page = open("out/case.html").read()
part = page[page.index('<section id="repetition">'):].split("</section>")[0]
said = re.findall("<p>(Of the .*?)</p>.<p>(.*?)</p>", part, re.S)
assert len(said) == 1, said
for share, cache in (policy, "are repeats under h2o"), (uniform, "with random tokens"), ("0.1", "with the full cache"):
    assert f"{100 * float(share):.0f} % {cache}" in said[0][0], said
words = {"as-expected": "as expected if", "need-not-be": "need not be", "speaks-against": "speaks against",
         "no-sign": "there is no sign", "too-few-texts": "too few texts to tell"}
assert [w for w in words if words[w] in said[0][1]] == [name], said
assert ("repeats more than with the full" in said[0][1]) == (name != "too-few-texts"), said
P
done
run trace --model "$checkpoints/opt" --tokens ids.jsonl --length 24 --count 1 --db many.db -q
run replay --db many.db --policy $(for s in 0 1 2 3 4; do for r in 1 2 3 4 5 6 7 8 9 10; do echo h2o:sinks=$s,recent=$r; done; done) \
    --budget 0.75 -q
run eval --model "$checkpoints/opt" --tokens ids.jsonl --length 24 --count 1 --policy h2o:sinks=1,recent=2 --budget 0.75 --db many.db -q
run report --db many.db -o out/many.html -q
holds "rows do not lead to a figure that is left out" python3 - <<'P'
from page import read
page = read("out/many.html")
text = open("out/many.html").read()
assert not page.faults, page.faults
assert "more than 48 policies" in text and "next to the replay of the same policy" in text and ">h2o:" in text
assert "#fig-budget-curve" not in text and 'href="#fig-persistence"' in text
P
cp t.db busy.db
run simulate --model opt-125m --gpu RTX-4090 --memory 320M --rate 500,3000 --requests 300 --prompt 100 --output 20 --budget 0.2 \
    --db busy.db --json -q
cp log/out busy.json
run report --db busy.db --length 24 -q -o out/busy.html
holds "whether a server uses the memory saved is said, and how the quality of its cache was measured" python3 - <<'P'
import json, re
part = open("out/busy.html").read()
part = part[part.index('<section id="serving">'):].split("</section>")[0].replace("\u00a0", " ")
said = dict(re.findall(r"<p>With a budget of (0\.\d+), at [0-9.]+ requests per second: (.*?)</p>", part))
assert sorted(said) == ["0.2", "0.5"], said
for file, cache in ("simulate.json", "0.5"), ("busy.json", "0.2"):
    rows = {(r["plan"], r["rate_requests_per_s"]): r for r in json.load(open(file))["results"]}
    rate = max(r for p, r in rows)
    full, own = rows["full", rate], rows[cache, rate]
    fills = full["kv_occupancy_peak"] >= 0.9 or full["preemptions"] > 0
    assert fills == (cache == "0.2"), (cache, full)
    assert ("lets more of them in" in said[cache]) == fills and ("cannot use the memory" in said[cache]) != fills, said
    assert f"from {100 * full['kv_occupancy_mean']:.2g} % of" in said[cache] and f"to {100 * own['kv_occupancy_mean']:.2g} %" in said[cache]
    more = own["throughput_tokens_per_s"] / full["throughput_tokens_per_s"]
    assert (f"output rises from {full['throughput_tokens_per_s']:.0f} to" in said[cache]) == (more >= 1.02), (more, said)
    assert f"<p>Quality of {cache}: {own['evidence']}." in part, own["evidence"]
assert ">quality</th>" not in part
P
cat >answer.py <<'P'
"""The page's first screen: three sentences with links to their evidence, a bar for each budget, before the contents."""
import json, re, sys
page = open(sys.argv[1]).read()
first = page[page.index("<main>"):page.index("<nav")]
text = re.sub(r"<[^>]*>", "", first).replace("&#160;", " ").replace("\u00a0", " ").replace("\u2212", "-")
assert first.count('<section id="answer">') == 1 and page.count('id="fig-answer"') == 1
links = re.findall(r'<p>[^<]*<a href="#(\w+)">', first)
for link in links:
    assert f'<section id="{link}">' in page, link
rows = sorted(json.load(open(sys.argv[2]))["results"], key=lambda r: r["budget"])
met = [r for r in rows if r["ppl_increase_bound"] <= float(sys.argv[3])]
if met:
    r = met[0]
    assert links == ["quality", "capacity", "quality"] and f"The cache can shrink to {100 * r['budget']:.3g} % of its tokens" in text, text
    assert f"(allowed: {100 * float(sys.argv[3]):.3g} %)" in text and "times as many requests" in text, text
    size = float(re.search(r" of its tokens \(([0-9.]+) % of its bytes\)", text).group(1))
    assert abs(size - 100 * -(-r["budget"] * 60 // 1) / 60) < 0.06, (size, r["budget"])    # a window stores nothing else
    bound = r["ppl_increase_bound"]
    assert (", no increase" if bound < 0 else f"at most {100 * bound:+.2f} %") in text, text
    assert ("with 95 % confidence by at least" in text) == (bound < 0), text
else:
    r = min(rows, key=lambda r: r["ppl_increase_bound"])
    assert links == ["quality", "traced"] and "No measured budget is shown" in text, text
assert "How: the policy is window, which keeps the newest tokens. Each attention head keeps the same number" in text, text
assert ("its bound does not allow for that choice" in text) == bool(met), text
assert f"{100 * r['ppl_increase']:+.2f} %" in text and "Not shown: other kinds of text" in text, text
assert re.search("Measured on 12 sequences from 12 texts of 60 tokens, twelve.jsonl", text), text
assert len(re.findall('<th scope="row">', first)) == len(rows) + 1 and first.count('class="is"') == 1
P
python3 -c 'import json
for i in range(12): print(json.dumps([(7 * k * k + 3 * i + k) % 50 + 4 for k in range(60)]))' >twelve.jsonl
for budgets in 0.3,0.5,0.9,0.99 0.2,0.3; do
    rm -f answer.db
    run eval --model "$hostile" --tokens twelve.jsonl --policy window --budget $budgets --db answer.db -q --json
    cp log/out answer.json
    target=$(python3 -c 'import json
bounds = [r["ppl_increase_bound"] for r in json.load(open("answer.json"))["results"]]
print(next((t for t in (0.01, 0.02, 0.05, 0.1) if min(bounds) <= t), 0))')
    run report --db answer.db --model "$hostile" --gpu L4 -q -o out/answer.html
    holds "the answer comes first: $budgets, within $target" python3 answer.py out/answer.html answer.json "$target"
done
rm answer.db
run eval --model "$hostile" --tokens twelve.jsonl --policy window --budget 0.35 --db answer.db -q
run eval --model "$hostile" --tokens twelve.jsonl --policy scissorhands --budget 0.3 --db answer.db -q
run report --db answer.db --model "$hostile" --gpu L4 --target-ppl-increase 90% -q -o out/answer.html
run capacity --model "$hostile" --gpu L4 --length 60 --db answer.db --max-ppl-increase 90% --json
expect "the fewest tokens meet a limit" 0 '"budget": "0.3"' ""
run capacity --model "$hostile" --gpu L4 --length 60 --db answer.db --max-ppl-increase 90% --policy-state --json
holds "  but the answer is the budget of the fewest bytes, as capacity chooses it" python3 - <<'P'
import json, re
chosen, = json.load(open("log/out"))["results"]
assert (chosen["measured_policy"], chosen["budget"]) == ("window", "0.35"), chosen
text = re.sub(r"<[^>]*>", "", open("out/answer.html").read()).replace("\u00a0", " ")
assert "The cache can shrink to 35 % of its tokens" in text and "How: the policy is window" in text, text[:900]
P
head -n 11 twelve.jsonl >eleven.jsonl
run eval --model "$hostile" --tokens eleven.jsonl --policy window --budget 0.99 --db few.db -q
run report --db few.db --model "$hostile" --gpu L4 -q -o out/few.html
holds "eleven sequences show nothing, and the page says so" grep -q \
    'No measured budget is shown .*; at least 12 sequences are needed to show anything, not 11\.' out/few.html
run eval --model "$hostile" --tokens ids.jsonl --policy window --budget 0.25 --db other.db -q
run simulate --model opt-350m --gpu RTX-4090 --rate 20 --requests 20 --prompt 100 --output 20 --budget 0.5 --db other.db -q
run report --db t.db other.db --length 24 -q -o out/two.html
holds "a store without fewer bits does not keep the other's figure away; each simulated server has its own" \
    python3 check.py out/two.html fig-quant fig-compression fig-latency fig-latency-2 "!Missing: other.db"
holds "no temporary file is left" test -z "$(find . -name '*.shears-new')"
holds "a store from before commands were kept still makes a page" sh -c '
    cp t.db old.db && python3 -c "import sqlite3; c = sqlite3.connect(\"old.db\"); c.execute(\"DROP TABLE typed\"); c.commit()" &&
    "$SHEARS" report --db old.db -o out/old.html --length 24 -q >/dev/null && python3 check.py out/old.html'

# ---- attention without an order
python3 - <<'P'
import json, math, random, struct
random.seed(3)
def softmax(v):
    e = [math.exp(x - max(v)) for x in v]
    return [x / sum(e) for x in e]
for kind, rows, keys in (("bidirectional", 30, 30), ("cross", 14, 40)):
    tensors, blob = {}, b""
    for s in range(2):
        for l in range(2):
            a = []
            for h in range(3):
                column = [random.gauss(0, 1.5) for _ in range(keys)]
                for q in range(rows):
                    a += softmax([c + random.gauss(0, 1) for c in column])
            data = struct.pack(f"<{len(a)}f", *a)
            tensors[f"s{s}.l{l}.attn"] = {"dtype": "F32", "shape": [3, rows, keys],
                                          "data_offsets": [len(blob), len(blob) + len(data)]}
            blob += data
    head = json.dumps(tensors).encode()
    open(kind + ".safetensors", "wb").write(struct.pack("<Q", len(head)) + head + blob)
P
for kind in bidirectional cross; do
    run import --db $kind.db --attention $kind.safetensors --kind $kind --codec f32 -q
    run report --db $kind.db -o out/$kind.html -q
    expect "a page of $kind attention" 0 "report +out/$kind.html" ""
    holds "has a part of its own, with the kind's name and what can be measured, and none about caches" python3 - $kind <<'P'
import json, re, struct, sys
kind = sys.argv[1]
page = open(f"out/{kind}.html").read()
assert re.findall(r'<section id="(\w+)"', page) == ["traced", "orderless", "commands"], re.findall(r'<section id="(\w+)"', page)
part = page[page.index('<section id="orderless">'):].split("</section>")[0]
assert f"{kind} attention of {kind}.safetensors" in part and "shears replay" not in page and "fig-orderless-1" in part
said = [[float(x) for x in re.findall(r'<td class="n">([0-9.]+)</td>', row)] for row in part.split("<tr>")[2:]]
raw = open(kind + ".safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
tensors, data = json.loads(raw[8:8 + n]), raw[8 + n:]
mean = lambda x: sum(x) / len(x)
for l in range(2):
    heads = []
    for h in range(3):
        figures = []
        for s in range(2):
            t = tensors[f"s{s}.l{l}.attn"]
            rows, keys = t["shape"][1:]
            v = struct.unpack_from(f"<{rows * keys}f", data, t["data_offsets"][0] + 4 * h * rows * keys)
            v = [v[q * keys:(q + 1) * keys] for q in range(rows)]
            half = [{i for row in part for i, x in enumerate(row) if x * keys > 5} for part in (v[:rows // 2], v[rows // 2:])]
            ratio, chance = len(half[0] & half[1]) / len(half[1]), len(half[0]) / keys
            figures.append([mean([sum(x * keys > 1 for x in row) / keys for row in v]),
                            mean([sum(sorted(row)[-(-(-keys // 10)):]) for row in v]), ratio, chance, ratio / chance])
        heads.append([mean(f) for f in zip(*figures)])
    expected = [l] + [mean(f) for f in zip(*heads)] + [min(h[2] for h in heads)]
    assert len(said[l]) == 7 and all(abs(a - b) <= 6e-4 for a, b in zip(said[l], expected)), (said[l], expected)
P
done
run report --db t.db bidirectional.db --length 24 -q -o out/both.html
holds "next to a causal store, whose parts are all there" python3 check.py out/both.html orderless fig-orderless-1 fig-persistence \
    "!is not causal"

# ---- what is drawn of which store
run plot zz --db t.db -o out/zz.svg
expect "an unknown figure: told those that plot draws" 2 "" "known are heatmap, .*, score-change$"
holds "and none that other commands draw" sh -c '! grep -q -e frontier -e occupancy log/err'
run plot heatmap --db t.db r.db --run 1 --sequence 1 -o out/maps.svg --data out/maps.tsv
expect "a map of each store" 0 "" ""
for db in t r; do run export --db $db.db --sequence 1 --layer 1 --head 0 -o $db.tsv; done
holds "whose numbers are the stores' own" python - <<'P'
maps = [b for b in open("out/maps.tsv").read().strip().split("\n\n") if b.startswith("#score")]
rows = lambda text: [l.split("\t") for l in text.split("\n") if l[:1].isdigit()]
assert len(maps) == 2, [m[:20] for m in maps]
for db, m in zip("tr", maps):
    ours, n = rows(m), 0
    for q, k, score in rows(open(db + ".tsv").read()):
        assert abs(float(ours[int(q)][int(k)]) - float(score)) <= 1e-6, (db, q, k, score)
        n += 1
    assert n == 24 * 25 // 2, n
assert maps[0].split("\n")[1:] != maps[1].split("\n")[1:]
P
run plot heatmap --db t.db --run 7 -o out/x.svg
expect "a run that is not there" 1 "" "t.db: run 7 has no sequence 0"

# ---- figures in the sizes of papers, and their data
run plot persistence --db t.db r.db -o out/one.svg --width 3.3in --data out/one.tsv
expect "a figure for one column" 0 "" ""
run plot persistence --db t.db r.db -o out/two.svg --width 16cm
holds "is as wide as asked, and taller for it" python3 - <<'P'
import re
size = lambda f: [int(x) for x in re.search(r'width="(\d+)" height="(\d+)"', open(f).read()).groups()]
one, two = size("out/one.svg"), size("out/two.svg")
assert one[0] == 330 and one[1] > one[0] and abs(two[0] - 630) <= 1 and two[1] < two[0], (one, two)
P
run persistence --db t.db --json -q
cp log/out persistence.json
holds "its data are there as columns" python3 - <<'P'
import json
blocks = [b.split("\n") for b in open("out/one.tsv").read().strip().split("\n\n")]
layers = json.load(open("persistence.json"))["layers"]
rows = [list(map(float, l.split("\t"))) for l in blocks[0] if not l.startswith("#")]
assert len(blocks) >= 4 and len(rows) == len(layers), (len(blocks), len(rows), len(layers))
for row, layer in zip(rows, layers):
    assert abs(row[1] - layer["ratio"]) < 1e-9 and abs(row[2] - layer["density"]) < 1e-9, (row, layer)
P
run plot heads --db t.db -o out/heads.pdf --width 84mm
expect "a figure as PDF" 0 "" ""
if command -v pdffonts >/dev/null; then
    holds "its fonts are embedded" sh -c 'pdffonts out/heads.pdf | awk "NR > 2 { n++; if (\$(NF-4) != \"yes\") bad = 1 } END { exit bad || !n }"'
else
    skip "its fonts are embedded" "pdffonts is not here"
fi
finish
