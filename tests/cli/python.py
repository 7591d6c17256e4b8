# SPDX-License-Identifier: Apache-2.0
"""The Python package against the program: python.py WHAT [STORE], see python.sh."""
import ast
import importlib.util
import inspect
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import shears

PROGRAM = os.environ["SHEARS"]


def program(*words):
    return subprocess.run([PROGRAM, *map(str, words), "-q"], capture_output=True, text=True, check=True).stdout


def scores(path):
    store, n = shears.open(path), 0
    run = store.runs.rows()[0]
    for sequence in store.sequences["id"].tolist():
        for layer in range(run["layers"]):
            for head in range(run["heads"]):
                program("export", "--db", path, "--sequence", sequence, "--layer", layer, "--head", head, "-o", "head.npy")
                mine, theirs = store.scores(sequence, layer, head), np.load("head.npy")
                assert mine.dtype == np.float32 and np.array_equal(mine, theirs), (sequence, layer, head)
                n += 1
    assert n >= 8


def contents():
    store = shears.open("f32.db")
    assert store.sequences["tokens"].tolist() == [40, 88] and store.sequences.columns == ["id", "run", "tokens", "source"]
    with open("tokens.jsonl") as f:
        assert [store.tokens(i).tolist() for i in (0, 1)] == [json.loads(line) for line in f]
    q, k, p = (store.vectors(1, 1, kind, 2).astype("f8") for kind in "qkv"), None, store.scores(1, 1, 2)
    q, k, _ = q
    s = np.where(np.tri(88, dtype=bool), q @ k.T / 8**0.5, -np.inf)
    e = np.exp(s - s.max(1, keepdims=True))
    assert np.abs(e / e.sum(1, keepdims=True) - p).max() < 1e-5
    for row, (at, first, values, rest) in zip(p, store.rows(1, 1, 2)):
        assert first == 0 and rest == 0 and np.array_equal(row[:at + 1], values)
    sparse = shears.open("sparse.db").rows(1, 1, 2)
    assert all(abs(values.sum() + rest - 1) < 0.05 for _, _, values, rest in sparse) and any(r[3] > 0 for r in sparse)
    window = shears.open("window.db")
    assert any(first > 0 for _, first, _, _ in window.rows(int(window.sequences["id"][-1]), 0, 0))
    assert not shears.open("both.db").runs["causal"][0] and store.runs["causal"][0]


def equal(mine, theirs, where=""):
    """Every value of --json is in the tables."""
    for key, value in theirs.items():
        if isinstance(value, dict):
            for inner, number in value.items():
                same(mine["%s.%s" % (key, inner)], number, where + key)
        elif not isinstance(value, list):
            same(mine[key], value, where + key)


def same(a, b, what):
    assert a == b or (b is None and (a is None or a != a)), "%s: %r, expected %r" % (what, a, b)


def list_equal(result, name, items):
    rows = result[name].rows()
    assert len(rows) == len(items), (name, len(rows), len(items))
    for row, item in zip(rows, items):
        equal(row, item, name + ".")
    nested = {key for item in items for key, value in item.items() if isinstance(value, list) and value}
    for key in nested:
        inner = [(i, one) for i, item in enumerate(items) for one in item.get(key, [])]
        rows = result[name + "." + key].rows()
        assert [row["parent"] for row in rows] == [i for i, _ in inner], (name, key)
        for row, (_, one) in zip(rows, inner):
            equal(row, one, name + "." + key + ".")


def table_equal(result, command):
    theirs = json.loads(program(*command, "--json"))
    equal({key: result[key] for key in result}, theirs)
    for key, value in theirs.items():
        if isinstance(value, list) and value:
            list_equal(result, key, value)
    assert result.to_dict().keys() == theirs.keys()


def tables():
    store = shears.open("f32.db")
    table_equal(store.persistence(recent=4, alpha="2/t", per="head"),
                ("persistence", "--db", "f32.db", "--recent", 4, "--alpha", "2/t", "--per", "head"))
    table_equal(store.replay(policies=["window", "h2o:recent=2"], budgets=[8, 0.5], force=True),
                ("replay", "--db", "f32.db", "--policy", "window", "h2o:recent=2", "--budget", 8, 0.5))
    table_equal(store.plan("window", target_recall=0.9),
                ("plan", "--db", "f32.db", "--policy", "window", "--target-recall", 0.9))
    table_equal(shears.capacity(model=["llama-3.1-8b", "opt-6.7b"], gpu="H100-SXM", length=512, budget=[0.1, 0.2]),
                ("capacity", "--model", "llama-3.1-8b,opt-6.7b", "--gpu", "H100-SXM", "--length", 512, "--budget", "0.1,0.2"))
    table_equal(shears.capacity(model="opt-6.7b", gpu="H100-SXM", length=512),
                ("capacity", "--model", "opt-6.7b", "--gpu", "H100-SXM", "--length", 512))
    table_equal(shears.simulate(model="opt-6.7b", gpu="H100-SXM", rate=[1, 2], prompt=100, output=10, requests=20),
                ("simulate", "--model", "opt-6.7b", "--gpu", "H100-SXM", "--rate", "1,2", "--prompt", 100, "--output", 10,
                 "--requests", 20))
    for what in "policies", "gpus", "models", "families":
        table_equal(shears.ask("info", what), ("info", what))
    kept = store.results("replay")
    mass = [r["value"] for r in kept.rows() if r["metric"] == "kept_mass" and r["layer"] == -1]
    assert len(mass) == 4 and set(store.results()["command"]) >= {"persistence", "replay"}
    assert len(store.results("no such")) == 0
    r = store.replay(policies=["window"], budgets=[8])
    assert r.results.kept_mass[0] == r["results"]["kept_mass"][0] and "kept_mass" in dir(r.results) and r.remarks
    assert "kept mass" in repr(r) and "<table" in r._repr_html_() and "<td>" in r.results._repr_html_()


def pandas():
    try:
        import pandas  # noqa: F401
    except ImportError:
        return
    frame = shears.policies().to_pandas()
    assert list(frame.columns) == shears.policies().columns and len(frame) == len(shears.policies())


def figures():
    store = shears.open("f32.db")
    try:
        drawn = store.plot("persistence"), store.plot("heatmap", layer=1, head=2), shears.figure(
            "frontier", model="opt-6.7b", gpu="H100-SXM", length=512, budget=[0.1, 0.2, 0.5])
    except shears.AbsentError as e:
        assert "gnuplot" in str(e), e
        return
    for one in drawn:
        assert "<svg" in one._repr_svg_() and "</svg>" in one.svg
    drawn[0].save("persistence.svg")
    assert os.path.getsize("persistence.svg") == len(drawn[0].svg.encode())


def refused(kind, call, **parts):
    try:
        call()
    except kind as e:
        for name, text in parts.items():
            assert text in str(getattr(e, name)), (name, text, getattr(e, name))
        assert e.message and isinstance(e, shears.ShearsError), e
        return e
    raise AssertionError("%r was not raised" % kind)


def errors():
    import pickle
    store = shears.open("f32.db")
    e = refused(shears.MisusedError, lambda: store.replay(policies=["h20"]), what="--policy", found="h20", hint="h2o")
    assert str(pickle.loads(pickle.dumps(e))) == str(e) and isinstance(e, ValueError) and e.status == 2
    refused(shears.MisusedError, lambda: store.scores(0, 9, 0), found="layer 9", expected="0 to 1")
    refused(shears.MisusedError, lambda: store.scores(0, 0, -1), found="head -1", expected="0 to 3")
    refused(shears.MisusedError, lambda: store.vectors(0, 0, "keys", 0), expected="'q', 'k', 'v' or 's'")
    refused(shears.MisusedError, lambda: store.persistence(recnet=3), hint="recent")
    refused(shears.MisusedError, lambda: shears.capacity(model=object()), found="object")
    refused(shears.MisusedError, lambda: shears.capacity(model="a\0b"), message="zero byte")
    refused(shears.MisusedError, lambda: shears.ask("persistance"), hint="persistence")
    refused(shears.ShearsError, lambda: shears.open("missing.db"), what="missing.db")
    refused(shears.ShearsError, lambda: shears.open("tokens.jsonl"), what="tokens.jsonl", found="database")
    refused(shears.ShearsError, lambda: shears.open("summary.db").scores(0, 0, 0), hint="full or sparse")
    for name in "nothing", "recordd":
        assert not hasattr(shears, name)


SLOW = dict(model="opt-6.7b", gpu="H100-SXM", rate=4, prompt=400, output=100, requests=20000000)


def progress():
    told = []
    shears.simulate(model="opt-6.7b", gpu="H100-SXM", rate=4, prompt=400, output=100, requests=20000, progress=told.append)
    assert told == sorted(told) and all(0 <= share <= 1 for share in told), told
    class Enough(Exception):
        pass

    def stop(share):
        raise Enough
    begin = time.time()
    try:
        shears.simulate(progress=stop, **SLOW)
        raise AssertionError("it went on")
    except Enough:
        assert time.time() - begin < 60


def interrupt():
    signal.signal(signal.SIGINT, signal.default_int_handler)    # a shell's background commands ignore it
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.time()
    try:
        shears.simulate(**SLOW)
        raise AssertionError("it went on")
    except KeyboardInterrupt:
        assert time.time() - begin < 60
    assert len(shears.policies()) > 10              # and the library is as it was


def in_child(store, to):
    try:
        store.scores(0, 0, 0)
        to.put("a store from before was read")
    except shears.MisusedError:
        to.put(len(shears.open("f32.db").replay(policies=["window"], budgets=[8]).results))


def threads():
    store, found = shears.open("f32.db"), []

    def work():
        mine = shears.open("f32.db")
        found.append([mine.scores(1, layer, head).sum() for layer in (0, 1) for head in range(4)] +
                     mine.replay(policies=["h2o"], budgets=[8]).results["kept_mass"].tolist())
    both = [threading.Thread(target=work) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(found) == 2 and found[0] == found[1]
    context = multiprocessing.get_context("fork")
    to = context.Queue()
    child = context.Process(target=in_child, args=(store, to))
    child.start()
    assert to.get(timeout=60) == 1
    child.join()
    assert child.exitcode == 0
    store.close()
    store.close()
    refused(shears.MisusedError, lambda: store.scores(0, 0, 0), found="closed")
    for late in range(20):
        closed_meanwhile(store.path, late / 1000)
    forked_meanwhile(store.path)
    asked_within(store.path)


def closed_meanwhile(path, after):
    """Closing waits for the threads that are in the library, which then find the store closed."""
    store, found = shears.open(path), []

    def read():
        try:
            while True:
                store.runs
        except shears.MisusedError as e:
            found.append(e.found)
    readers = [threading.Thread(target=read) for _ in range(3)]
    for one in readers:
        one.start()
    time.sleep(after)
    store.close()
    for one in readers:
        one.join()
    assert found == ["the store is closed"] * 3, found


def forked_meanwhile(path):
    """A child is refused, and does not wait for a thread that only its parent has."""
    store = shears.open(path)
    with store._turn:                   # as a thread that is in the library has it
        child = multiprocessing.get_context("fork").Process(target=refused_in_child, args=(store,))
        started = threading.Thread(target=child.start)
        started.start()
        started.join()
        child.join(60)
        status = child.exitcode
        child.kill()
    assert status == 0, status
    store.close()


def refused_in_child(store):
    refused(shears.MisusedError, lambda: store.runs, message="fork()")
    store.close()


def asked_within(path):
    """A signal's handler may ask, unless the library is giving rows to the thread that it interrupts."""
    store, found = shears.open(path), []

    def ask(*_):
        try:
            found.append(len(store.runs.rows()))
        except shears.MisusedError as e:
            found.append(e.found)
    usual = shears._lib.ROW
    before = signal.signal(signal.SIGALRM, ask)
    shears._lib.ROW = lambda take: usual(lambda *row: signal.raise_signal(signal.SIGALRM) or take(*row))
    try:
        n = len(store.rows(1, 0, 0))
        with store._turn:
            signal.raise_signal(signal.SIGALRM)
    finally:
        shears._lib.ROW = usual
        signal.signal(signal.SIGALRM, before)
    assert n and found == ["the store is giving rows to this thread"] * n + [1], found
    store.close()


def hints():
    """Every function, method and constructor that is this package's own has type hints and says what it does."""
    functions = [f for f in (getattr(shears, name) for name in shears.__all__) if inspect.isfunction(f)]
    kinds = [shears.Store, shears.Table, shears.Result, shears.Figure]
    if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"):
        kinds += [shears.Cache, shears.record]
    for kind in kinds:
        assert kind.__doc__, kind
        inherited = {name for base in kind.__mro__[1:] if "shears" not in base.__module__ for name in vars(base)}
        own = {name: f for name, f in vars(kind).items() if not name.startswith("_") and name not in inherited}
        functions += [f for f in own.values() if inspect.isfunction(f)] + [f.fget for f in own.values() if isinstance(f, property)]
        functions += [kind.__init__] if "__init__" in vars(kind) and kind not in (shears.Table, shears.Result, shears.Figure) else []
    for f in functions:
        assert f.__doc__ or f.__name__ == "__init__", f
        names = [name for name in inspect.signature(f).parameters if name != "self"]
        lacks = [name for name in names + ["return"] * (f.__name__ != "__init__") if name not in f.__annotations__]
        assert not lacks, (f, lacks)
    assert len(functions) > 20


def notebook(path):
    """Runs the code cells in order, as Jupyter does; figures only where gnuplot is. The value of a cell's last line has
    what a notebook shows."""
    with open(path, encoding="utf-8") as f:
        cells = json.load(f)["cells"]
    assert len(cells) == 15, len(cells)
    os.chdir(os.path.dirname(os.path.abspath(path)))
    names, shown = {}, 0
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        try:
            exec(compile(tree, "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
        except shears.AbsentError as e:
            assert "gnuplot" in str(e), e
            continue
        if value is not None:
            shown += "<svg" in value._repr_svg_() if hasattr(value, "_repr_svg_") else "<table" in value._repr_html_()
    assert shown >= 4 and names["planned"].results["batch"][0] > names["whole"].results["batch"][0], shown


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
