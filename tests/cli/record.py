# SPDX-License-Identifier: Apache-2.0
"""What record.sh asks of recordings, by name. The attention is PyTorch's, of the golden checkpoints; what is recorded is
compared with what `shears import` makes of the same numbers, or with the numbers themselves."""
import json
import os
import subprocess
import sys
import time

import numpy as np

import shears
from shears._recording import Recording

SHEARS = os.environ["SHEARS"]


def tensors(path):
    with open(path, "rb") as f:
        n = int.from_bytes(f.read(8), "little")
        head, data = json.loads(f.read(n)), f.read()
    kinds = {"F32": "<f4", "F16": "<f2"}
    return {name: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], kinds[t["dtype"]]).reshape(t["shape"])
            for name, t in head.items() if name != "__metadata__" and t["dtype"] in kinds}


class Model:
    """A golden checkpoint: tokens, attention [layers, heads, T, T], and vectors drawn at random."""

    def __init__(self, name="opt", d_head=6, n_kv_head=2):
        folder = os.path.join(os.environ["SH_GOLDEN"], "checkpoints", name)
        with open(os.path.join(folder, "ref.json"), encoding="utf-8") as f:
            self.tokens = [one["tokens"] for one in json.load(f)["sequences"]]
        all_ = tensors(os.path.join(folder, "ref.safetensors"))
        self.attention = [np.ascontiguousarray(all_["s%d.attn" % i]) for i in range(len(self.tokens))]
        self.n_layer, self.n_head = self.attention[0].shape[:2]
        self.d_head, self.n_kv_head = d_head, n_kv_head
        rng = np.random.default_rng(7)
        heads = {"q": self.n_head, "k": n_kv_head, "v": n_kv_head}
        self.vectors = [{kind: rng.standard_normal((self.n_layer, n, len(t), d_head)).astype("f4")
                         for kind, n in heads.items()} for t in self.tokens]

    def facts(self, **other):
        return dict(dict(model="golden", family="opt", weights="checkpoint", fingerprint=1, n_layer=self.n_layer,
                         n_head=self.n_head, n_kv_head=self.n_kv_head, d_head=self.d_head, backend="test", device="none",
                         dtype="f32", command="test", attention="causal", record="full", codec="log8", vectors="qkv"),
                    **other)


def put(recording, model, i, layer, sequence, first, last, vectors, window=0, logits=False):
    """Rows [first, last) of text i, and their vectors; of the keys none that no row sees."""
    for kind in vectors:
        v = np.ascontiguousarray(model.vectors[i][kind][layer][:, first:last])
        recording.vectors(sequence=sequence, layer=layer, kind=kind, n_head=v.shape[0], n_row=v.shape[1], width=v.shape[2],
                          at=v.ctypes.data)
    begin = max(0, first - window + 1) if window else 0
    a = np.ascontiguousarray(model.attention[i][layer][:, first:last, begin:last])
    s = np.log(np.maximum(a, 1e-38)) + np.float32(3.5) if logits else None
    recording.rows(sequence=sequence, layer=layer, first_row=first, n_row=last - first, first_key=begin, n_key=last - begin,
                   window=window, score=a.ctypes.data, logit=s.ctypes.data if logits else None)


def pieces(n, step):
    return [(at, min(at + step, n)) for at in range(0, n, step)]


def record(path, model, grows=False, step=7, logits=False, **facts):
    recording = Recording(path)
    what = model.facts(**facts)
    recording.begin(**what)
    for i, tokens in enumerate(model.tokens):
        n = len(tokens)
        if not grows:
            s = recording.sequence("golden:%d" % i, tokens)
            for layer in range(model.n_layer):
                for first, last in pieces(n, step):
                    put(recording, model, i, layer, s, first, last, what["vectors"], logits=logits)
        else:                                       # a prompt, then token by token through all layers
            s = recording.sequence("golden:%d" % i, tokens[:11], grows=True)
            for first, last in [(0, 11)] + pieces(n, 1)[11:]:
                if first:
                    recording.more(s, tokens[first:last])
                for layer in range(model.n_layer):
                    put(recording, model, i, layer, s, first, last, what["vectors"])
        recording.finish(s)
    recording.close()


def run(*words):
    return subprocess.run([SHEARS, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def imported(path, model, record, codec):
    """The same attention through shears import, as a store."""
    lines = path + ".jsonl"
    with open(lines, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(t) + "\n" for t in model.tokens)
    run("import", "-q", "--db", path, "--attention", os.path.join(os.environ["SH_GOLDEN"], "checkpoints", "opt",
        "ref.safetensors"), "--tokens", lines, "--record", record, "--codec", codec, "--vectors", "none",
        "--kv-heads", str(model.n_kv_head), "--d-head", str(model.d_head))


def statistics(path):
    """Of every head, the bytes."""
    import sqlite3
    with sqlite3.connect(path) as db:
        return db.execute("SELECT sequence, layer, head, blob FROM head_stats ORDER BY 1, 2, 3").fetchall()


def same_rows(a, b, model):
    for i in range(len(model.tokens)):
        for layer in range(model.n_layer):
            for head in range(model.n_head):
                for x, y in zip(a.rows(i, layer, head), b.rows(i, layer, head)):
                    assert x[:2] == y[:2] and x[3] == y[3] and (x[2] == y[2]).all(), (i, layer, head, x[0])


def content():
    """Every record and codec, whole or growing, is what shears import makes of it; tokens and vectors are those given."""
    model = Model()
    for kind, codec in [("full", "f32"), ("full", "f16"), ("full", "log8"), ("sparse", "log8"), ("sparse", "f32"),
                        ("summary", "log8")]:
        wanted = "i-%s-%s.db" % (kind, codec)
        imported(wanted, model, kind, codec)
        for grows in {False, codec != "f32"}:       # rows come at once, or token by token
            path = "%s-%s-%d.db" % (kind, codec, grows)
            record(path, model, grows, record=kind, codec=codec)
            store = shears.open(path)
            assert store.sequences["tokens"].tolist() == [len(t) for t in model.tokens]
            for i, tokens in enumerate(model.tokens):
                assert store.tokens(i).tolist() == tokens
                for layer in range(model.n_layer):
                    for name, all_ in model.vectors[i].items():
                        for head in range(all_.shape[1]):
                            v = store.vectors(i, layer, name, head)
                            exact = all_[layer, head] if codec == "f32" else all_[layer, head].astype("f2").astype("f4")
                            assert (v == exact).all(), (path, name, layer, head)
            if kind != "summary":
                same_rows(store, shears.open(wanted), model)
            if kind != "full":
                assert statistics(path) == statistics(wanted) != [], path
    for path in "full-log8-1.db", "sparse-log8-1.db", "summary-log8-0.db":
        run("verify", "-q", path)
    f32 = shears.open("full-f32-0.db")
    assert (f32.scores(1, 1, 2) == np.tril(model.attention[1][1, 2])).all()


def logits():
    """With logits the codes are the same, but for scores at the very edge of a cell."""
    model = Model()
    record("plain.db", model, vectors="")
    record("logits.db", model, vectors="", logits=True)
    a, b = shears.open("plain.db"), shears.open("logits.db")
    n = other = 0
    for i in range(len(model.tokens)):
        for layer in range(model.n_layer):
            for head in range(model.n_head):
                x, y = a.scores(i, layer, head), b.scores(i, layer, head)
                n, other = n + (x > 0).sum(), other + (x != y).sum()
                assert abs(x - y).max() < 0.09 * y.max()
    assert n > 5000 and other <= n / 1000, (n, other)


def silent():
    """A layer without rows does not attend; narrow vectors and fewer KV heads fill the model's; a sink has its share."""
    model = Model()
    recording, n = Recording("silent.db"), len(model.tokens[0])
    recording.begin(**model.facts(n_layer=3, vectors="k", codec="f32"))
    s = recording.sequence("golden:0", model.tokens[0])
    k = np.ascontiguousarray(model.vectors[0]["k"][0][:1, :, :4])
    recording.vectors(sequence=s, layer=2, kind="k", n_head=1, n_row=n, width=4, at=k.ctypes.data)
    a = np.ascontiguousarray(model.attention[0][0] * np.float32(0.75))
    sink = np.full((model.n_head, n), 0.25, "f4")
    recording.rows(sequence=s, layer=2, first_row=0, n_row=n, first_key=0, n_key=n, window=0, score=a.ctypes.data,
                   sink=sink.ctypes.data)
    recording.finish(s)
    recording.close()
    run("verify", "-q", "silent.db")
    store = shears.open("silent.db")
    for head in range(2):
        v = store.vectors(0, 2, "k", head)
        assert (v[:, :4] == k[0]).all() and not v[:, 4:].any()
    assert (store.vectors(0, 2, "s", 1) == 0.25).all()
    assert (store.scores(0, 2, 1) == np.tril(a[1])).all()
    try:
        store.scores(0, 0, 0)
    except shears.ShearsError as e:
        assert "does not attend" in str(e), e
    else:
        raise AssertionError("layer 0 has rows")


def uneven():
    """A layer with fewer query heads than the model, in pieces, in each record; its number stays the same."""
    model = Model()
    n, own = len(model.tokens[0]), model.n_head // 2
    a = np.ascontiguousarray(model.attention[0][0][:own])
    q = np.ascontiguousarray(model.vectors[0]["q"][0][:own])
    for record in "full", "sparse", "summary":
        recording = Recording(record + "-uneven.db")
        recording.begin(**model.facts(vectors="q", codec="f32" if record == "full" else "log8", record=record))
        s = recording.sequence("golden:0", model.tokens[0])
        put(recording, model, 0, 0, s, 0, n, "q")
        for first, last in pieces(n, 7):
            part, queries = (np.ascontiguousarray(x) for x in (a[:, first:last, :last], q[:, first:last]))
            recording.vectors(sequence=s, layer=1, kind="q", n_head=own, n_row=last - first, width=model.d_head,
                              at=queries.ctypes.data)
            recording.rows(sequence=s, layer=1, first_row=first, n_row=last - first, first_key=0, n_key=last, window=0,
                           n_head=own, score=part.ctypes.data)
        recording.finish(s)
        recording.close()
        run("verify", "-q", record + "-uneven.db")
        store = shears.open(record + "-uneven.db")
        assert abs(store.vectors(0, 1, "q", own - 1) - q[own - 1]).max() < 2e-3
        if record == "full":
            assert (store.scores(0, 1, own - 1) == np.tril(a[own - 1])).all()
        layers = json.loads(run("persistence", "--db", record + "-uneven.db", "--json", "-q"))["layers"]
        assert [len(layer["heads"]) for layer in layers] == [model.n_head, own], layers
        try:
            store.scores(0, 1, own)
        except shears.ShearsError as e:
            assert "found head %d, expected 0 to %d" % (own, own - 1) in str(e), e
        else:
            raise AssertionError("layer 1 has more heads")


def orderless():
    """Attention that is not causal: square, and over another sequence."""
    rng = np.random.default_rng(3)
    for kind, n, keys in ("bidirectional", 20, 20), ("cross", 9, 33):
        a = rng.random((4, n, keys)).astype("f4")
        a /= a.sum(2, keepdims=True)
        recording = Recording(kind + ".db")
        recording.begin(**Model().facts(attention=kind, vectors="", codec="f32", n_layer=1))
        s = recording.sequence("x", [-1] * n)
        for first, last in pieces(n, 6):
            part = np.ascontiguousarray(a[:, first:last])
            recording.rows(sequence=s, layer=0, first_row=first, n_row=last - first, first_key=0, n_key=keys, window=-keys,
                           score=part.ctypes.data)
        recording.finish(s)
        recording.close()
        run("verify", "-q", kind + ".db")
        store = shears.open(kind + ".db")
        assert not store.runs["causal"][0] and (store.scores(0, 0, 3) == a[3]).all()


def refused(what, **changed):
    """The description with these changes is refused, with what is said there."""
    recording = Recording("refused.db")
    try:
        recording.begin(**Model().facts(**changed))
    except shears.MisusedError as e:
        assert what in str(e), e
    else:
        raise AssertionError("accepted: %r" % changed)
    recording.close()
    assert not os.path.exists("refused.db")


def errors():
    """What makes no sense is refused, and nothing is in the store afterwards."""
    refused("record: found", record="all")
    refused("codec: found", codec="f8")
    refused("attention: found", attention="both")
    refused("dtype: found", dtype="f64")
    refused("KV heads: found 3", n_kv_head=3)
    refused("layers: found 0", n_layer=0)
    refused("found codec f16", record="sparse", codec="f16")
    refused("record: found summary", record="summary", attention="bidirectional", vectors="")
    refused("vectors: found \"qq\"", vectors="qq")
    refused("vectors: found \"k\"", vectors="k", attention="cross")
    model = Model()
    a = np.ascontiguousarray(model.attention[0][0])
    recording, n = Recording("bad.db"), len(model.tokens[0])

    def fails(what, function, *positional, **named):
        try:
            function(*positional, **named)
        except shears.ShearsError as e:
            assert what in str(e), e
        else:
            raise AssertionError("no error: " + what)
    rows = dict(layer=0, first_row=0, n_row=n, first_key=0, n_key=n, window=0, score=a.ctypes.data)
    fails("has not begun", recording.sequence, "x", [1])
    recording.begin(**model.facts(vectors="", codec="f32"))
    fails("already begun", recording.begin, **model.facts())
    fails("expected an id", recording.sequence, "x", [-2])
    s = recording.sequence("x", model.tokens[0])
    for changed, what in (({"sequence": 7}, "not being"), ({"sequence": -1}, "not being"), ({"layer": 2}, "found 2"),
                          ({"first_row": 1}, "expected rows from 0"), ({"n_row": n + 1, "n_key": n + 1}, "at most"),
                          ({"n_key": n - 1}, "keys from 0"), ({"window": -n}, "0 or more"), ({"first_key": 2}, "keys from 2"),
                          ({"score": None}, "neither"), ({"log8": a.ctypes.data}, "both"), ({"n_row": 0}, "at least one"),
                          ({"n_row": 1 << 30, "n_key": 1 << 30}, "at most"),
                          ({"score": None, "log8": a.ctypes.data}, "codes require"), ({"window": -1 << 31}, "window"),
                          ({"n_head": 5}, "found rows of 5 query heads, expected 1 to 4"), ({"n_head": -1}, "of -1 query")):
        fails(what, recording.rows, **dict(dict(rows, sequence=s), **changed))
    fails("found vectors 'q'", recording.vectors, sequence=s, layer=0, kind="q", n_head=4, n_row=n, width=4, at=a.ctypes.data)
    fails("complete", recording.more, s, [1])
    fails("no rows", recording.finish, s)
    for value, what in ((np.nan, "found nan at key 3"), (-0.5, "found -0.5"), (9.0, "sum to")):
        s = recording.sequence("x", model.tokens[0])
        b = a.copy()
        b[1, 20, 3] = value
        fails("head 1: row 20: ", recording.rows, **dict(rows, sequence=s, score=b.ctypes.data))
        fails("refused", recording.rows, **dict(rows, sequence=s))
        recording.finish(s, keep=False)
    s = recording.sequence("x", model.tokens[0])
    recording.rows(**dict(rows, sequence=s))
    b = np.ascontiguousarray(a[:, :-1])
    recording.rows(**dict(rows, sequence=s, layer=1, n_row=n - 1, score=b.ctypes.data))
    fails("layer 1: found %d rows" % (n - 1), recording.finish, s)
    s = recording.sequence("x", model.tokens[0])
    b = np.ascontiguousarray(a[:3, :9, :9])
    recording.rows(**dict(rows, sequence=s, n_row=9, n_key=9, n_head=3, score=b.ctypes.data))
    fails("found rows of 4 query heads, expected 3 as before", recording.rows,
          **dict(rows, sequence=s, first_row=9, n_row=n - 9))
    recording.finish(s, keep=False)
    recording.close()
    fails("has ended", recording.finish, 0)
    assert not os.path.exists("bad.db"), "an empty store is left"
    for path, what in ("no/such/folder.db", "folder"), ("", "empty"):
        fails(what, Recording, path)
    with open("text.db", "w", encoding="utf-8") as f:
        f.write("not a store " * 400)
    fails("text.db", Recording, "text.db")


def together():
    """A second run in the store; several sequences that grow at a time; a store that is being recorded is claimed, and
    can be read."""
    model = Model()
    record("two.db", model, codec="f32")
    recording = Recording("two.db")
    try:
        Recording("two.db")
    except shears.ShearsError as e:
        assert "two.db" in str(e), e
    else:
        raise AssertionError("recorded by two")
    recording.begin(**model.facts(codec="f32"))
    both = [recording.sequence("golden:%d" % i, t[:5], grows=True) for i, t in enumerate(model.tokens)]
    for first, last in [(0, 5)] + pieces(40, 5)[1:]:
        for i, s in enumerate(both):
            if first:
                recording.more(s, model.tokens[i][first:last])
            for layer in range(model.n_layer):
                put(recording, model, i, layer, s, first, last, "qkv")
    assert len(shears.open("two.db").runs) == 1
    recording.finish(both[1])
    recording.finish(both[0])
    recording.close()
    store = shears.open("two.db")
    assert store.sequences["run"].tolist() == [1, 1, 2, 2] and store.sequences["tokens"].tolist()[2:] == [40, 40]
    assert (store.scores(2, 1, 3) == np.tril(model.attention[1][1, 3, :40, :40])).all()
    assert (store.scores(3, 0, 1) == np.tril(model.attention[0][0, 1, :40, :40])).all()
    run("verify", "-q", "two.db")


def ends():
    """A forked child, an interpreter that ends, one that is killed: the store has the finished sequence, and is whole."""
    code = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
import record
from shears._recording import Recording
model = record.Model()
r = Recording(sys.argv[2] + ".db")
r.begin(**model.facts())
for i in 0, 1:
    s = r.sequence("x", model.tokens[i])
    for layer in range(model.n_layer):
        record.put(r, model, i, layer, s, 0, len(model.tokens[i]), "qkv")
    if i == 0:
        r.finish(s)
if sys.argv[2] == "fork":           # while another thread has its turn, which the child must not wait for
    held, forked = threading.Event(), threading.Event()
    def hold():
        with r._turn:
            held.set()
            forked.wait()
    threading.Thread(target=hold).start()
    held.wait()
    child = os.fork()
    if not child:
        try:
            r.finish(s)
        except Exception as e:
            assert "before fork()" in str(e), e
            sys.exit(7)             # ends as Python does, with finalizers
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    forked.set()
    r.finish(s)
    r.close()
if sys.argv[2] == "kill":
    import time
    import shears
    until = time.monotonic() + 50
    while time.monotonic() < until:         # each layer may be a commit of its own: wait for the last
        try:
            shears.open("kill.db").scores(0, model.n_layer - 1, 0)
            break
        except shears.ShearsError:
            time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    for how, status, n in ("exit", 0, 1), ("fork", 0, 2), ("kill", -9, 1):
        done = subprocess.run([sys.executable, "-c", code, os.path.dirname(os.path.abspath(__file__)), how], timeout=60)
        assert done.returncode == status, (how, done.returncode)
        run("verify", "-q", how + ".db")
        assert len(shears.open(how + ".db").sequences) == n, how
        assert shears.open(how + ".db").scores(0, 1, 3).shape[0] == len(Model().tokens[0])


if __name__ == "__main__":
    began = time.monotonic()
    globals()[sys.argv[1]]()
    print("# %s: %.1f s" % (sys.argv[1], time.monotonic() - began))
