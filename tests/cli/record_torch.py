# SPDX-License-Identifier: Apache-2.0
"""What python_torch.sh asks of the recorder, by name. Scores are compared with the attention that transformers' own eager
function returns, codes and vectors with those of `shears trace`."""
import json
import os
import subprocess
import threading
import warnings

import numpy as np
import torch
import transformers

import shears
import torch_checks
from shears import _attend

torch.manual_seed(5)

SHEARS, GOLDEN, FIXTURES = os.environ["SHEARS"], os.environ["SH_GOLDEN"], os.environ.get("SH_FIXTURES", "")
NEAR = 1e-5


def run(*words):
    return subprocess.run([SHEARS, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def fresh(path):
    for name in (path, path + "-journal"):
        if os.path.exists(name):
            os.remove(name)
    return path


def ids(n, vocabulary=100, rows=1):
    return torch.randint(3, vocabulary, (rows, n), generator=torch.Generator().manual_seed(n + 100 * rows))


def tiny(kind="Llama", **changed):
    """A small model with random weights, eager."""
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, vocab_size=100,
                 max_position_embeddings=256)
    grouped = dict(num_key_value_heads=2)
    more = {"Llama": grouped, "Mistral": dict(grouped, sliding_window=16), "Bert": {}, "Bloom": dict(n_head=4, n_layer=2)}
    config = getattr(transformers, kind + "Config")(**{**sizes, **more[kind], **changed})
    name = kind + ("Model" if kind == "Bert" else "ForCausalLM")
    torch.manual_seed(11)
    model = getattr(transformers, name)(config).eval()
    for p in model.parameters():                    # scores that differ
        p.data *= 4 if p.ndim > 1 else 1
    model.set_attn_implementation("eager")
    return model


def eager(model, **inputs):
    with torch.no_grad():
        return model(**inputs, output_attentions=True)


def compare(store, sequence, layer, wanted, what=""):
    """Every head of a layer against [heads, rows, keys]; the number of scores."""
    n = 0
    for head in range(wanted.shape[0]):
        found = store.scores(sequence, layer, head)
        assert found.shape == wanted.shape[1:], (what, layer, head, found.shape, wanted.shape)
        far = abs(found - wanted[head].float().numpy()).max()
        assert far <= NEAR, (what, sequence, layer, head, far)
        n += found.size
    return n


def recorded(model, path, call, **how):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with torch.no_grad(), shears.record(model, fresh(path), **how) as r:
            call()
    ours = [str(w.message) for w in said if "shears.record" in str(w.message)]
    assert ours == ["shears.record: " + remark for remark in r.remarks]
    return shears.open(path), r


# ---- families ----

def folders():
    """Every folder with a model and tokens, once by its name."""
    found = {}
    for top in (GOLDEN + "/checkpoints", GOLDEN + "/checkpoints/modern", FIXTURES, FIXTURES + "/modern"):
        for name in sorted(os.listdir(top)) if top and os.path.isdir(top) else ():
            if os.path.exists("%s/%s/ref.json" % (top, name)) and os.path.exists("%s/%s/config.json" % (top, name)):
                found.setdefault(name, "%s/%s" % (top, name))
    return found


def load(folder, tokens):
    """The model as transformers reads and runs it, or why it does not."""
    causal, why = transformers.AutoModelForCausalLM, None
    ways = (causal, {}), (transformers.AutoModelForImageTextToText, {}), (causal, {"experts_implementation": "eager"})
    # For Emu3, the first way makes the text part alone, and it finds no weights for it.
    for kind, how in ways[folder.endswith("/emu3_vision"):]:
        try:
            model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **how).eval()
            with torch.no_grad():
                model(torch.tensor([tokens]))
            return model, None
        except Exception as e:
            why = why or str(e).strip().split("\n")[0][:90]
    return None, why


def codes_of(path):
    """The log8 codes of a store: by place, before compression; the library's own reader is not asked."""
    import ctypes
    import sqlite3
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    found = {}
    with sqlite3.connect(path) as db:
        for *place, n, window, first, blob in db.execute(
                "SELECT sequence, layer, head, n_rows, window, first_row, blob FROM scores ORDER BY 1, 2, 3, first_row"):
            keys = sum(t + 1 if not window else min(t + 1, window) for t in range(first, first + n))
            to = ctypes.create_string_buffer(keys)
            assert zstd.ZSTD_decompress(to, ctypes.c_size_t(keys), blob, ctypes.c_size_t(len(blob))) == keys
            found.setdefault((*place, window), []).append((n, np.frombuffer(to, "u1")))
    # A window that is wider than the text shows nowhere but in its number.
    return {(*place, window if window < sum(n for n, _ in parts) else 0): np.concatenate([codes for _, codes in parts])
            for (*place, window), parts in found.items()}


def compare_trace(model, name, folder, sequences, calls):
    """Codes and vectors of the recorder and of shears trace. (number of codes, of others, of those more than 1 off)."""
    with open("tokens.jsonl", "w", encoding="utf-8") as f:
        f.writelines(json.dumps(t) + "\n" for t in sequences)
    has = "qkv" if model._supports_attention_backend else ""
    # shears trace has both halves of the values, and zeros after keys; or what keys add to scores, and zeros after all
    has = "" if name.startswith(("diffllama", "doge")) else has
    done = subprocess.run([SHEARS, "trace", "-q", "--model", folder, "--tokens", "tokens.jsonl", "--db", fresh("trace.db"),
                           *(["--vectors", has] if has else [])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return None
    store, _ = recorded(model, "log8.db", calls, vectors=has)
    run("verify", "-q", "log8.db")
    a, b = codes_of("trace.db"), codes_of("log8.db")
    assert a.keys() == b.keys(), (name, sorted(a.keys() ^ b.keys())[:4])
    n = sum(len(x) for x in a.values())
    off = [np.abs(a[p].astype(int) - b[p]) for p in a]
    other, far = sum((x > 0).sum() for x in off), sum((x > 1).sum() for x in off)
    trace = shears.open("trace.db")
    kv, heads = int(trace.runs["kv_heads"][0]), {}
    for _, layer, head, _ in a:
        heads[layer] = max(heads.get(layer, 0), head + 1)
    assert max(heads.values()) == int(trace.runs["heads"][0]) == int(store.runs["heads"][0]), (name, heads)
    if has and kv == int(store.runs["kv_heads"][0]):
        for i, layer, kind in {(p[0], p[1], k) for p in a for k in has}:
            for head in range(heads[layer] if kind == "q" else kv):
                x, y = trace.vectors(i, layer, kind, head), store.vectors(i, layer, kind, head)
                assert x.shape == y.shape, (name, layer, kind, head)
                if kind == "q":                     # families order the numbers of rotated vectors in their own way
                    x, y = (s.vectors(i, layer, "k", head * kv // heads[layer]) @ v.T for s, v in ((trace, x), (store, y)))
                if kind != "k":
                    assert abs(x - y).max() <= 4e-3 * max(1, abs(x).max()), (name, layer, kind, head, abs(x - y).max())
    return n, int(other), int(far)


def families():
    """All families that transformers loads: scores of f32 within 1e-5, codes of log8 as shears trace writes them."""
    compared, total, other, missing, untraced, remarked, wrong = 0, 0, 0, [], [], [], []
    all_ = folders()
    apart = {"falcon_rw": "transformers' eager attention adds ALiBi twice there",
             "gpt_neo": "its windows do not show in the weights that it returns",
             "doge_window": "its window is in the model's config alone",
             "mllama": "layers that attend to pictures, which are left out, have numbers here"}
    numbers = {"mllama": (0, 2, 4)}
    # Here transformers scales what attention gives, not its weights, by the sinks: only codes can be compared.
    scaled = ("granite_swa", "granitemoe_swa", "granitemoe_swa_still")
    # Blocks of 128 x 128 share a factor; where sizes are no multiples of 128, transformers makes blocks of equal sizes.
    apart.update({"quantised_fp8_block_%d" % i: "transformers reads FP8 in other blocks there" for i in (1, 2)})
    refused = dict.fromkeys(("zamba2", "zamba2_plain"), "it does not say which layer it is of")
    refused.update(dict.fromkeys(("dory", "dory_published"), "run several times in a pass"))
    for name, folder in all_.items():
        with open(folder + "/ref.json", encoding="utf-8") as f:
            ref = json.load(f)
        sequences = [s["tokens"] for s in ref["sequences"]]
        model, why = load(folder, sequences[0])
        if model is None:
            missing.append("%s (%s)" % (name, why))
            continue

        def calls():
            for tokens in sequences:
                model(torch.tensor([tokens]))
        if name in refused:
            try:
                recorded(model, "f32.db", calls)
                wrong.append((name, "was recorded"))
            except shears.ShearsError as e:
                wrong += [] if refused[name] in str(e) else [(name, str(e))]
            continue
        store, r = recorded(model, "f32.db", calls, codec="f32")
        remarked += [name] if r.remarks else []
        attending = numbers.get(name) or ref.get("attn_layers") or range(int(store.runs["layers"][0]))
        for i, tokens in enumerate(sequences):
            assert store.tokens(i).tolist() == tokens
            if name in scaled:
                continue
            of_layers = [a for a in eager(model, input_ids=torch.tensor([tokens])).attentions if a is not None]
            of_layers = of_layers if len(of_layers) == len(attending) else [of_layers[layer] for layer in attending]
            n = sum(compare(store, i, layer, a[0], name) for layer, a in zip(attending, of_layers))
            assert n > 0, name
            compared += n
        rope = getattr(model.config, "rope_parameters", None) or {}
        if rope.get("rope_type") in ("dynamic", "longrope"):    # in transformers, what was read before changes it
            untraced.append(name)
            continue
        if name in apart:
            untraced.append("%s (%s)" % (name, apart[name]))
            continue
        try:
            found = compare_trace(model, name, folder, sequences, calls)
        except AssertionError as e:
            wrong.append(str(e))
            continue
        if found is None:
            untraced.append(name)
            continue
        n, differ, far = found
        wrong += [(name, found)] if far or differ > 0.002 * n + 2 else []
        total, other = total + n, other + differ
    print("# %d of %d models: %d scores within 1e-5 of eager attention; of %d codes %d differ from those of shears trace" % (
        len(all_) - len(missing), len(all_), compared, total, other))
    for what, names in (("not loaded", missing), ("not traced", untraced), ("from output_attentions", remarked)):
        print("# %s: %s" % (what, "; ".join(names) or "none"))
    assert not wrong, wrong
    assert compared > 100000 and total > 100000 and len(all_) - len(missing) >= 25


# ---- batches, generation, other kinds ----

def batches():
    """Padding on either side: every row of a batch is recorded as it is alone."""
    for model in tiny(), tiny("Mistral"), tiny("Bloom"):
        rows = [ids(n)[0].tolist() for n in (23, 40, 31)]
        for side in "left", "right":
            pad = lambda row, x: [x] * (40 - len(row)) + row if side == "left" else row + [x] * (40 - len(row))
            batch = torch.tensor([pad(row, 0) for row in rows])
            mask = torch.tensor([pad([1] * len(row), 0) for row in rows])
            alone = lambda: [model(torch.tensor([row])) for row in rows]
            a, _ = recorded(model, "batch.db", lambda: model(batch, attention_mask=mask), codec="f32")
            if side == "right" or "Bloom" not in type(model).__name__:
                b, _ = recorded(model, "alone.db", alone, codec="f32")
                for i, row in enumerate(rows):
                    for layer in range(2):
                        compare(a, i, layer, torch.from_numpy(np.stack([b.scores(i, layer, h) for h in range(4)])), side)
            assert [a.tokens(i).tolist() for i in range(3)] == rows
            of_layers = eager(model, input_ids=batch, attention_mask=mask).attentions
            for i, row in enumerate(rows):
                at = slice(40 - len(row), 40) if side == "left" else slice(0, len(row))
                for layer, w in enumerate(of_layers):
                    compare(a, i, layer, w[i][:, at, at], side)
            run("verify", "-q", "batch.db")


def generation():
    """What a cache continues is one sequence, whose rows are those of one pass over all of it."""
    for model in tiny(), tiny("Mistral"), tiny("Bloom"):
        for rows, mask in ((ids(21), None), (ids(20, rows=2), torch.tensor([[0] * 7 + [1] * 13, [1] * 20]))):
            for static in ({}, {"cache_implementation": "static"}):
                if static and ("Bloom" in type(model).__name__ or "Mistral" in type(model).__name__):
                    continue
                out = []
                vectors = "" if "Bloom" in type(model).__name__ else "qkv"
                store, r = recorded(model, "generated.db", lambda: out.append(model.generate(
                    rows, attention_mask=torch.ones_like(rows) if mask is None else mask, max_new_tokens=30, do_sample=False,
                    pad_token_id=0, eos_token_id=None, disable_compile=True, **static)), codec="f32", vectors=vectors)
                run("verify", "-q", "generated.db")
                text = out[0][:, :-1]                   # the last one was never read
                whole = torch.ones_like(text) if mask is None else torch.cat([mask, torch.ones(2, 29, dtype=torch.int64)], 1)
                of_layers = eager(model, input_ids=text, attention_mask=whole).attentions
                assert r.sequences == len(rows) == len(store.sequences)
                for i in range(len(rows)):
                    real = whole[i].bool()
                    assert store.tokens(i).tolist() == text[i][real].tolist()
                    for layer, w in enumerate(of_layers):
                        compare(store, i, layer, w[i][:, real][:, :, real], "generated")
                if vectors:
                    call = lambda: model(text, attention_mask=whole)
                    again, _ = recorded(model, "whole.db", call, codec="f32", vectors="qkv")
                    # of the row without padding: generate and a pass number the others' positions differently
                    for kind, heads in (("q", 4), ("k", 2), ("v", 2)):
                        for head in range(heads):
                            x, y = (one.vectors(len(rows) - 1, 1, kind, head) for one in (store, again))
                            assert x.shape == y.shape and abs(x - y).max() < 1e-4 * abs(y).max(), (
                                kind, head, abs(x - y).max(), abs(y).max())


def records():
    """Sparse and summary records of a text that grows have the persistence of the full record in one pass."""
    model, text = tiny(), ids(60)

    def by_token():
        cache = transformers.DynamicCache(config=model.config)
        for part in (text[:, :20], *text[:, 20:].split(1, 1)):
            model(part, past_key_values=cache)
    full, _ = recorded(model, "full.db", lambda: model(text, use_cache=False), codec="f32")
    wanted = full.persistence(recent=4, alpha="2/t", window=20)
    for kind in "sparse", "summary":
        for call in by_token, lambda: model(text, use_cache=False):
            store, _ = recorded(model, kind + ".db", call, record=kind, codec="f32")
            run("verify", "-q", kind + ".db")
            try:
                found = store.persistence(recent=4, alpha="2/t", window=20)
            except shears.ShearsError:
                found = store.persistence()
                wanted_here = full.persistence()
            else:
                wanted_here = wanted
            for column in "ratio", "density":
                assert np.allclose(found.layers[column], wanted_here.layers[column], atol=0.02), (kind, column)


def others():
    """Encoders, attention over another sequence, and models that have several."""
    text, mask = ids(30, rows=2), torch.tensor([[1] * 30, [1] * 22 + [0] * 8])
    bert = tiny("Bert")
    store, _ = recorded(bert, "bert.db", lambda: bert(text, attention_mask=mask), codec="f32", vectors="qk")
    of_layers = eager(bert, input_ids=text, attention_mask=mask).attentions
    assert not store.runs["causal"][0] and store.sequences["tokens"].tolist() == [30, 22]
    for i, n in enumerate((30, 22)):
        for layer, w in enumerate(of_layers):
            compare(store, i, layer, w[i][:, :n, :n], "bert")
    run("verify", "-q", "bert.db")
    for kind, changed in (("T5", dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)),
                          ("Bart", dict(d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
                                        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48))):
        config = getattr(transformers, kind + "Config")(vocab_size=100, max_position_embeddings=64, pad_token_id=0,
                                                        decoder_start_token_id=1, eos_token_id=2, **changed)
        torch.manual_seed(3)
        model = getattr(transformers, kind + "ForConditionalGeneration")(config).eval()
        model.set_attn_implementation("eager")
        inputs = dict(input_ids=text, attention_mask=mask, decoder_input_ids=ids(17, rows=2))
        out = eager(model, **inputs)
        for attention, all_, n_row, n_key in (("causal", out.decoder_attentions, (17, 17), (17, 17)),
                                              ("bidirectional", out.encoder_attentions, (30, 22), (30, 22)),
                                              ("cross", out.cross_attentions, (17, 17), (30, 22))):
            store, _ = recorded(model, "both.db", lambda: model(**inputs), codec="f32", attention=attention)
            run("verify", "-q", "both.db")
            for i in range(2):
                for layer, w in enumerate(all_):
                    compare(store, i, layer, w[i][:, :n_row[i], :n_key[i]], kind + " " + attention)
        call = lambda: model.generate(text, attention_mask=mask, max_new_tokens=9, min_new_tokens=9, do_sample=False)
        store, _ = recorded(model, "both.db", call, codec="f32")
        assert store.sequences["tokens"].tolist() == [9, 9] and store.runs["causal"][0]


def codes():
    """The codes that PyTorch makes on a device are the library's, but for scores at the edge of a cell."""
    n = other = 0
    known = _attend.Codes(torch.device("cpu"))
    class On(shears.record):
        def _put_rows(self, current, layer, tile, rows, columns, where):
            nonlocal n, other
            scores = self._select(tile.scores, rows, columns)
            logits = self._select(tile.logits, rows, columns).contiguous()
            mine = self._log8(scores, logits, where)
            self._recording.rows(**where, log8=mine.data_ptr())
    for model in tiny(), tiny("Mistral"):
        text = ids(200)
        recorded(model, "library.db", lambda: model(text))
        with torch.no_grad(), On(model, fresh("torch.db")):
            model(text)
        run("verify", "-q", "torch.db")
        a, b = codes_of("library.db"), codes_of("torch.db")
        assert a.keys() == b.keys()
        for place in a:
            off = np.abs(a[place].astype(int) - b[place])
            assert off.max() <= 1, (place, off.max())
            n, other = n + len(off), other + (off > 0).sum()
    print("# %d codes, %d differ" % (n, other))
    assert n > 100000 and other <= n / 1000


# ---- what goes wrong ----

def fails(what, function, *positional, **named):
    try:
        function(*positional, **named)
    except shears.ShearsError as e:
        assert what in str(e), e
    else:
        raise AssertionError("no error: " + what)


def errors():
    model = tiny()
    fails("record: found 'all'", shears.record, model, "x.db", record="all")
    fails("codec: found", shears.record, model, "x.db", codec="log9")
    fails("attention: found", shears.record, model, "x.db", attention="self")
    fails("vectors: found", shears.record, model, "x.db", vectors="qq")
    fails("vectors: found", shears.record, tiny("Bloom"), "x.db", vectors="q")
    fails("model: found str", shears.record, "gpt2", "x.db")
    fails("no/such", shears.record(model, "no/such/x.db").__enter__)
    before = model.config._attn_implementation, len(transformers.AttentionInterface._global_mapping)

    def within(call, **how):
        with torch.no_grad(), shears.record(model, fresh("x.db"), **how):
            call()
    fails("being recorded", within, lambda: shears.record(model, "y.db").__enter__())
    cache = transformers.DynamicCache(config=model.config)
    model(ids(9), past_key_values=cache)
    fails("not recorded", within, lambda: model(ids(3), past_key_values=cache))
    fails("keys after it", within, lambda: model(ids(9), attention_mask=torch.ones(1, 1, 9, 9, dtype=torch.bool)))
    ones = torch.ones(2, 12, dtype=torch.int64)
    fails("another order", within, lambda: model.generate(ids(12, rows=2), num_beams=3, max_new_tokens=12, do_sample=False,
                                                          attention_mask=ones, pad_token_id=0))

    def cut():
        own = transformers.DynamicCache(config=model.config)
        model(ids(9), past_key_values=own)
        own.crop(-4)
        model(ids(3), past_key_values=own)
    fails("cuts or reorders", within, cut)
    fails("codec f16", within, lambda: model(ids(9)), record="sparse", codec="f16")
    fails("outside of a forward pass", within, lambda: model.model(ids(9)))
    fails("no cross attention", within, lambda: model(ids(9)), attention="cross")

    def backward():
        with shears.record(model, fresh("x.db")), torch.enable_grad():
            model(ids(9)).logits.sum().backward()
    fails("gradients", backward)
    for p in model.parameters():
        p.grad = None

    class Odd(Exception):
        pass
    try:
        with torch.no_grad(), shears.record(model, fresh("x.db"), codec="f32"):
            model(ids(20))
            hook = model.model.layers[1].register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(Odd()))
            try:
                model(ids(25))
            finally:
                hook.remove()
    except Odd:
        pass
    store = shears.open("x.db")
    assert store.sequences["tokens"].tolist() == [20], store.sequences["tokens"]
    compare(store, 0, 1, eager(model, input_ids=ids(20)).attentions[1][0])
    assert (model.config._attn_implementation, len(transformers.AttentionInterface._global_mapping)) == before
    assert not model._forward_hooks and not model._forward_pre_hooks
    with torch.no_grad(), shears.record(model, fresh("x.db"), codec="f32"):       # who asks for weights gets them
        all_ = model(ids(20), output_attentions=True).attentions
    assert all((a - b).abs().max() <= NEAR for a, b in zip(all_, eager(model, input_ids=ids(20)).attentions))
    bad = tiny()
    bad.model.layers[1].self_attn.q_proj.weight.data[0, 0] = float("nan")
    for codec in "log8", "f32":
        model = bad
        fails("nan at key 0", within, lambda: model(ids(9)), codec=codec)
        assert not os.path.exists("x.db")


def threads():
    """Two threads with a model and a store each, and two that share both."""
    models, wrong = [tiny(), tiny()], []
    model, text = models[0], [ids(30 + i) for i in range(8)]

    def own(i):
        try:
            for k in range(3):
                store, r = recorded(models[i], "own%d.db" % i, lambda: [models[i](t) for t in text], codec="f32")
                assert r.sequences == 8
        except BaseException as e:
            wrong.append(e)
    all_ = [threading.Thread(target=own, args=(i,)) for i in range(2)]
    for t in all_:
        t.start()
    for t in all_:
        t.join()
    assert not wrong, wrong

    def shared():
        def one(part):
            try:
                with torch.no_grad():
                    for t in part:
                        model(t)
            except BaseException as e:
                wrong.append(e)
        both = [threading.Thread(target=one, args=(text[i::2],)) for i in range(2)]
        for t in both:
            t.start()
        for t in both:
            t.join()
    store, r = recorded(model, "shared.db", shared, codec="f32")
    assert not wrong and r.sequences == 8, (wrong, r.sequences)
    for i, n in enumerate(store.sequences["tokens"]):
        tokens = torch.from_numpy(store.tokens(i)).long()[None]
        compare(store, i, 1, eager(model, input_ids=tokens).attentions[1][0])
    run("verify", "-q", "shared.db")


def ends():
    """Ctrl-C, the end of the interpreter and of a forked child, in the middle of a recording: the store is whole."""
    code = """
import os, signal, threading
model, how = t.tiny(num_hidden_layers=6), sys.argv[1]
r = t.shears.record(model, how + ".db", codec="f32")
r.__enter__()
t.torch.set_grad_enabled(False)
model(t.ids(40))
model(t.ids(41))
if how == "exit":
    sys.exit(0)
if how == "fork":
    child = os.fork()
    if not child:
        sys.exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    r.__exit__(None, None, None)
if how == "interrupt":
    signal.signal(signal.SIGINT, signal.default_int_handler)    # a shell's background commands ignore it
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            model(t.ids(150))
    except KeyboardInterrupt:
        r.__exit__(KeyboardInterrupt, None, None)
        sys.exit(9)
"""
    for how, status in (("exit", 0), ("fork", 0), ("interrupt", 9)):
        fresh(how + ".db")
        done = torch_checks.child(code, how)
        assert done.returncode == status and not done.stderr, (how, done)
        run("verify", "-q", how + ".db")
        store = shears.open(how + ".db")
        assert store.sequences["tokens"].tolist()[:2] == [40, 41], how
        assert store.runs["layers_done"][0] == 6 * len(store.sequences)
        assert store.scores(1, 5, 3).shape == (41, 41)


def memory():
    """The most that a pass takes for a layer of 12 heads, compared with eager attention that returns its weights."""
    code = """
model = t.tiny(num_hidden_layers=1, num_attention_heads=12, num_key_value_heads=12, hidden_size=192)
text = t.ids(2048)
most = lambda: int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])      # getrusage's is the parent's, too
with t.torch.no_grad():
    t.recorded(model.model, "small.db", lambda: model.model(t.ids(64)))
    before = most()
    if sys.argv[1] == "eager":
        model.model(text, output_attentions=True)
    else:
        t.recorded(model.model, "memory.db", lambda: model.model(text))
    print(most() - before)
"""
    taken = {how: int(torch_checks.child(code, how).stdout) for how in ("eager", "recorder")}
    print("# 2048 tokens, 12 heads: eager %d KiB, recorder %d KiB" % (taken["eager"], taken["recorder"]))
    assert taken["recorder"] * 5 < taken["eager"]      # at 4096 tokens less than a tenth: bench/record_speed.py


if __name__ == "__main__":
    torch_checks.main(globals())
