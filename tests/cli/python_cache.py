# SPDX-License-Identifier: Apache-2.0
"""shears.Cache, called by python_torch.sh in a Python with PyTorch and transformers:

    python_cache.py CHECK...

What it keeps and computes is what `shears eval` does on the same checkpoint, for families and policies; generate(),
padding, plans, sizes, errors, threads, what ends a process."""
import copy
import functools
import itertools
import json
import os
import pickle
import subprocess
import sys
import threading

import numpy
import torch
import transformers

import shears
import torch_checks
from shears import _cache

CHECKPOINTS = os.path.join(os.environ["SH_GOLDEN"], "checkpoints")
FAMILIES = "opt", "llama_gqa", "mistral", "gemma2", "qwen3", "modern/sinks"
POLICIES = ("window", "streaming:sinks=2", "h2o:recent=4", "tova", "scissorhands:recent=4,window=16,drop=2", "keydiff",
            "snapkv:recent=6", "caote", "expected:every=8", "lagkv:lag=4,sinks=2")


@functools.cache
def load(family):
    """(its folder, the model, which calls the attention function of the cache, tokens of its longest text)"""
    folder = os.path.join(CHECKPOINTS, family)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="shears",
                                                              dtype=torch.float32).eval()
    with open(os.path.join(folder, "ref.json")) as f:
        text = max((x["tokens"] for x in json.load(f)["sequences"]), key=len)
    return folder, model, text


def run(model, cache, rows, **options):
    with torch.no_grad():
        return model(torch.tensor(rows), past_key_values=cache, **options).logits


def program(*arguments):
    return subprocess.run([os.environ["SHEARS"], *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def evaluated(folder, text, *options):
    """What `shears eval` keeps, {(layer, head): positions at each step}, and its logits."""
    with open("one.jsonl", "w") as f:
        f.write(json.dumps(text) + "\n")
    program("eval", "-q", "--model", folder, "--tokens", "one.jsonl", "--dump-kept", "kept.jsonl", "--logits", "logits.npy",
            *options)
    kept = {}
    for line in map(json.loads, open("kept.jsonl")):
        kept.setdefault((line["layer"], line["head"]), []).append(line["kept"])
    return kept, numpy.load("logits.npy")


def window_of(model, layer):
    types = getattr(model.config, "layer_types", None)
    return getattr(model.config, "sliding_window", None) if types is None or types[layer] == "sliding_attention" else None


def positions(model, cache, sequence=0):
    """What is kept and in the layer's window, as the program lists it: {(layer, head): positions}."""
    stats, found = cache.stats, {}
    for layer, heads in enumerate(stats.kept[sequence]):
        window = window_of(model, layer) or 1 << 30
        for head, kept in enumerate(heads):
            assert kept.dtype == numpy.int32
            found[layer, head] = [x for x in kept.tolist() if x >= stats.tokens[sequence] - window]
    return found


def same_logits(found, wanted, what):
    found, wanted = numpy.asarray(found), numpy.asarray(wanted)
    assert found.shape == wanted.shape, (what, found.shape, wanted.shape)
    off = abs(found - wanted).max() / abs(wanted).max()
    assert off < 2e-5, (what, off)


def last_of(kept):
    return {place: steps[-1] for place, steps in kept.items()}


def evaluate(share="0.3"):
    """A whole text in one call: token by token, and with a prompt that is compressed at once."""
    for family, policy in itertools.product(FAMILIES, POLICIES):
        folder, model, text = load(family)
        for prefill in (0, len(text) // 2):
            if policy.startswith("snapkv") and not prefill:
                continue
            kept, logits = evaluated(folder, text, "--policy", policy, "--budget", share, "--prefill", prefill)
            cache = shears.Cache(policy=policy, budget=share, prefill=prefill)
            same_logits(run(model, cache, [text])[0], logits, (family, policy, prefill))
            assert positions(model, cache) == last_of(kept), (family, policy, prefill)
            full = shears.Cache(policy=policy, budget=len(text), prefill=prefill)
            run(model, full, [text])
            assert full.stats.bytes > cache.stats.bytes, (family, policy)


def steps():
    """One token a call: what is kept at every step, after a prompt and from the first token on."""
    for family, policy in itertools.product(FAMILIES, ("h2o:recent=4", "scissorhands:recent=4,window=16,drop=2")):
        folder, model, text = load(family)
        for prompt in 1, len(text) // 2:
            prefill = prompt if prompt > 1 else 0
            kept, logits = evaluated(folder, text, "--policy", policy, "--budget", 12, "--prefill", prefill)
            cache = shears.Cache(policy, 12, prefill=None if prefill else 0)
            found = [run(model, cache, [text[:prompt]])[0]]
            for t in range(prompt, len(text)):
                found.append(run(model, cache, [text[t:t + 1]])[0])
                assert positions(model, cache) == {place: at[t] for place, at in kept.items()}, (family, policy, t)
            same_logits(torch.cat(found), logits, (family, policy))


def padding():
    """Texts of several lengths, padded on the left: each is read and continued as it would be alone."""
    folder, model, text = load("mistral")
    rows, varied = [text[:24], text[:9], text[3:20]], set()
    model.config.pad_token_id = model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    for policy, budget in ("h2o:recent=2", 0.5), ("tova", 6), ("window", 7), ("caote", 6):
        for prefill in None, 0:
            cache = shears.Cache(policy, budget, prefill=prefill)
            many = model.generate(ids, attention_mask=mask, past_key_values=cache, max_new_tokens=12, do_sample=False)
            for b, row in enumerate(rows):
                alone = shears.Cache(policy, budget, prefill=prefill)
                one = model.generate(torch.tensor([row]), past_key_values=alone, max_new_tokens=12, do_sample=False)
                assert many[b, longest:].tolist() == one[0, len(row):].tolist(), (policy, prefill, b)
                varied |= set(one[0, len(row):].tolist())
                assert positions(model, cache, b) == positions(model, alone), (policy, prefill, b)
            assert cache.stats.tokens == [len(row) + 11 for row in rows]
            assert cache.get_seq_length() == longest + 11
    assert len(varied) > 12, varied


def generate():
    """generate() writes what a loop over the same cache does, and what the program does whose prompt is compressed at
    once; with a budget for everything, what transformers does."""
    folder, model, text = load("mistral")
    prompt, model.generation_config.eos_token_id = text[:24], None
    greedy = {"max_new_tokens": 16, "do_sample": False, "num_beams": 1}
    whole = model.generate(torch.tensor([prompt]), **greedy)[0].tolist()
    cache = shears.Cache("full")
    assert model.generate(torch.tensor([prompt]), past_key_values=cache, **greedy)[0].tolist() == whole
    assert cache.stats.tokens == [39]
    with open("prompt.jsonl", "w") as f:
        f.write(json.dumps(prompt) + "\n")
    for policy in "h2o:recent=4", "scissorhands:recent=2,window=8,drop=2", "lagkv:lag=2,sinks=1":
        cache = shears.Cache(policy, 10)
        found = model.generate(torch.tensor([prompt]), past_key_values=cache, **greedy)[0, 24:].tolist()
        said = json.loads(program("generate", "-q", "--json", "--model", folder, "--tokens", "prompt.jsonl", "--max-tokens",
                                  16, "--policy", policy, "--budget", 10, "--prefill-mode", "once"))
        assert found == [x["id"] for x in said["ids"]] and len(set(found)) > 2, (policy, found, said)
        other, row, by_hand = shears.Cache(policy, 10), prompt, []
        while len(by_hand) < 16:
            row = [int(run(model, other, [row])[0, -1].argmax())]
            by_hand += row
        assert by_hand == found, policy
        assert positions(model, other) == positions(model, cache), policy
        cache.reset()
        assert model.generate(torch.tensor([prompt]), past_key_values=cache, **greedy)[0, 24:].tolist() == found
    beams = model.generate(torch.tensor([prompt]), past_key_values=shears.Cache("full"), num_beams=3, max_new_tokens=8,
                           do_sample=False)
    assert beams.tolist() == model.generate(torch.tensor([prompt]), num_beams=3, max_new_tokens=8, do_sample=False).tolist()


def plans():
    """A plan gives every head its budget: as eval has it; and memory is what the plan says, also at its peak."""
    folder, model, text = load("llama_gqa")
    with open("text.jsonl", "w") as f:
        f.write(json.dumps(text) + "\n")
    program("trace", "-q", "--model", folder, "--db", "t.db", "--tokens", "text.jsonl")
    program("plan", "-q", "--db", "t.db", "--policy", "h2o:recent=2", "--budget", "0.4", "--allocator", "greedy",
            "--output", "plan.json")
    with open("plan.json") as f:
        plan = json.load(f)
    budgets = plan["budgets"]
    assert len({n for layer in budgets for n in layer}) > 1, budgets        # heads differ
    kept, logits = evaluated(folder, text, "--plan", "plan.json")
    cache = shears.Cache(plan="plan.json")
    same_logits(run(model, cache, [text])[0], logits, "plan")
    assert positions(model, cache) == last_of(kept)
    a_token = 2 * 4 * model.config.head_dim
    assert cache.stats.planned_bytes == plan["total_tokens"] * a_token, (cache.stats, plan["total_tokens"])
    assert cache.stats.bytes == cache.stats.peak_bytes == cache.stats.planned_bytes, cache.stats
    # A prompt that is longer than all budgets is never stored whole.
    once = shears.Cache(plan="plan.json", prefill=len(text) - 5, length=len(text))
    run(model, once, [text[:-5]])
    assert once.stats.bytes == once.stats.planned_bytes == plan["total_tokens"] * a_token, once.stats
    for t in range(len(text) - 5, len(text)):
        run(model, once, [text[t:t + 1]])
    assert once.stats.peak_bytes == once.stats.planned_bytes and once.stats.tokens == [len(text)]
    tensors = sum(x.untyped_storage().nbytes() for layer in once.layers for x in (layer.keys, layer.values))
    assert tensors == once.stats.bytes
    refused("opt", lambda: run(load("opt")[1], shears.Cache(plan="plan.json"), [[1, 2, 3]]))


def refused(what, call, kind=shears.ShearsError):
    """It raises an error with four parts, whose text names what is wrong."""
    try:
        call()
    except kind as e:
        assert what in str(e), (what, str(e))
        assert (e.what or e.found) and (e.found or e.expected) and isinstance(e.hint, str) and e.status in (1, 2), vars(e)
        return
    raise AssertionError("not refused: " + what)


def errors():
    folder, model, text = load("llama_gqa")
    misused = shears.MisusedError
    refused("h2o", lambda: shears.Cache("h20", 10), misused)
    refused("recnt", lambda: shears.Cache("h2o:recnt=3", 10), misused)
    refused("policy", lambda: shears.Cache(), misused)
    refused("budget", lambda: shears.Cache("h2o"), misused)
    for budget in 0, -3, 1.5, "many", "0.1,0.2", [3, 4], True, float("nan"), float("inf"), object():
        refused("budget", lambda: shears.Cache("h2o", budget), misused)
    refused("protected", lambda: shears.Cache("h2o:recent=25", 20), misused)
    refused("oracle", lambda: shears.Cache("oracle", 20), misused)
    refused("prompt", lambda: shears.Cache("observed", 20, prefill=0), misused)
    refused("plan", lambda: shears.Cache("h2o", 20, plan="plan.json"), misused)
    for name in "length", "prefill", "seed":
        for value in -1, 2.5, "3", True:
            refused(name, lambda: shears.Cache("h2o", 20, **{name: value}), misused)
    refused("none.json", lambda: shears.Cache(plan="none.json"))
    with open("bad.json", "w") as f:
        f.write('{"format": "shears-plan", "model": {"n_layer": 1e99, "n_kv_head": []}}')
    refused("bad.json", lambda: shears.Cache(plan="bad.json"))
    refused("protected", lambda: run(model, shears.Cache("h2o:recent=25", 0.2), [text[:30]]), misused)
    # The model has another attention function; then it has this one.
    cache = shears.Cache("h2o", 20)
    model.set_attn_implementation("sdpa")
    refused("set_attn_implementation", lambda: run(model, cache, [text[:9]]), misused)
    refused("reset", lambda: run(model, cache, [text[:9]]), misused)
    cache.reset()
    shears.Cache("h2o", 20, model=model)
    run(model, cache, [text[:9]])
    refused("2 sequences", lambda: run(model, cache, [text[:3]] * 2), misused)
    refused("model", lambda: shears.Cache("h2o", 20, model=3), misused)
    cache = shears.Cache("h2o", 20)
    run(model, cache, [text[:9]])
    refused("crop", lambda: cache.crop(1), misused)
    # What would be wrong is refused: gradients, going on after a pass that stopped between layers, latent attention.
    total = model(torch.tensor([text[:9]]), past_key_values=shears.Cache("h2o", 20)).logits.sum()
    refused("gradients", total.backward)
    hook = model.model.layers[1].register_forward_pre_hook(lambda *_: 1 / 0)
    try:
        run(model, cache, [text[9:12]])
    except ZeroDivisionError:
        hook.remove()
    refused("reset", lambda: run(model, cache, [text[9:12]]), misused)
    _, latent, words = load(os.path.join("modern", "deepseek_wide_values"))
    refused("put into the cache", lambda: run(latent, shears.Cache("full", 99), [words[:9]]), misused)
    # A number that is none reaches no policy.
    cache = shears.Cache("h2o", 20)
    weight = model.model.layers[0].self_attn.k_proj.weight
    good = weight.data.clone()
    weight.data.fill_(float("nan"))
    refused("nan", lambda: run(model, cache, [text[:9]]))
    weight.data = good
    # Without a cache the function is attention like any other.
    model.set_attn_implementation("eager")
    wanted = run(model, None, [text])
    model.set_attn_implementation("shears")
    same_logits(run(model, None, [text]), wanted, "no cache")
    same_logits(run(model, transformers.DynamicCache(), [text]), wanted, "another cache")


def half():
    """bf16: bytes are halved, and what is kept is int32."""
    folder, model, text = load("llama_gqa")
    full, small = shears.Cache("h2o:recent=2", 8), shears.Cache("h2o:recent=2", 8)
    run(model, full, [text])
    run(copy.deepcopy(model).to(torch.bfloat16), small, [text])
    assert 2 * small.stats.bytes == full.stats.bytes == full.stats.planned_bytes
    assert all(len(x) == 7 for layer in small.stats.kept[0] for x in layer)


def copies():
    """A copy goes on by itself; what cannot be copied says so."""
    folder, model, text = load("llama_gqa")
    cache = shears.Cache("h2o:recent=2", 8)
    run(model, cache, [text[:9]])
    other = copy.deepcopy(cache)
    wanted = run(model, cache, [text[9:14]])
    assert torch.equal(run(model, other, [text[9:14]]), wanted)
    del other
    run(model, cache, [text[14:16]])
    try:
        pickle.dumps(cache)
    except TypeError as e:
        assert "deepcopy" in str(e), e
    else:
        raise AssertionError("a cache was pickled")


def one_by_one(model, cache, text, prompt=9):
    """Kept positions and logits of a text whose tokens come one by one after a prompt."""
    logits = [run(model, cache, [text[:prompt]])[0]] + [run(model, cache, [[x]])[0] for x in text[prompt:]]
    return positions(model, cache), torch.cat(logits).tolist()


def together(*calls):
    all_ = [threading.Thread(target=call) for call in calls]
    for one in all_:
        one.start()
    for one in all_:
        one.join()


def threads():
    """Two threads with a cache each have what each has alone. Two that share one get errors at worst."""
    folder, model, text = load("llama_gqa")
    texts, found = (text[:40], text[5:45]), {}
    small = lambda: shears.Cache("h2o:recent=2", 8)
    alone = [one_by_one(model, small(), one) for one in texts]

    def work(i):
        found[i] = one_by_one(model, small(), texts[i])
    together(*(lambda i=i: work(i) for i in (0, 1)))
    assert [found[0], found[1]] == alone

    def share():
        for _ in range(40):
            try:
                run(model, cache, [text[:3]])
            except (shears.MisusedError, IndexError, RuntimeError):     # of a mask that has another thread's tokens
                pass
    cache, interval = small(), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    together(share, share)
    sys.setswitchinterval(interval)
    cache.reset()
    assert one_by_one(model, cache, texts[0]) == alone[0]
    # While a thread attends, nobody else does.
    layer_attend, said = _cache.Layer.attend, []

    def attend(layer, *arguments):
        if layer.index == 1 and not said:
            together(lambda: refused("one thread", lambda: said.append(1) or run(model, cache, [text[:3]]), shears.MisusedError))
        return layer_attend(layer, *arguments)
    _cache.Layer.attend = attend
    cache.reset()
    try:
        run(model, cache, [text[:9]])
    finally:
        _cache.Layer.attend = layer_attend
    assert said


def ends():
    """A forked child goes on by itself; Ctrl-C in a pass leaves a cache that reset() empties; the interpreter ends with a
    cache in use."""
    done = torch_checks.child("""
import os, signal, threading
folder, model, text = t.load("llama_gqa")
cache = t.shears.Cache("h2o:recent=2", 8)
t.run(model, cache, [text[:9]])
go_on = lambda: repr(t.one_by_one(model, cache, text[9:30], 1))
reader, writer = os.pipe()
child = os.fork()
mine = go_on()
if not child:
    os.write(writer, mine.encode()[:4000])
    os._exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
assert os.read(reader, 4000) == mine.encode()[:4000]
signal.signal(signal.SIGINT, signal.default_int_handler)    # a shell's background commands ignore it
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        t.run(model, cache, [text[:1]])
except KeyboardInterrupt:
    cache.reset()
t.run(model, cache, [text[:9]])
assert go_on() == mine
sys.exit(3)
""")
    assert done.returncode == 3 and not done.stderr, done


if __name__ == "__main__":
    torch_checks.main(globals())
