# SPDX-License-Identifier: Apache-2.0
"""Few-shot tasks by brute force: prompts, log-likelihoods and accuracies with transformers, one choice at a
time, nothing shared; eviction by a loop over tokens inside the attention of every layer.

    python3 tests/oracle/tasks.py make tests/golden/tasks TOKENIZER         the golden model and answers
    python3 tests/oracle/tasks.py check MODEL TASK DATA SHOTS COUNT CELL ITEMS
        compares what `shears eval --task … --items ITEMS` scored; CELL as in cells() below

TOKENIZER: a folder with vocab.json and merges.txt (tests/golden/tokenizers/opt_bpe).
"""
import json
import math
import os
import re
import sys

import torch
import transformers

torch.set_default_dtype(torch.float32)
torch.set_num_threads(1)


# ---- prompts, as the lm-evaluation-harness makes them ----

def clean(text):
    text = text.strip().replace(" [title]", ". ")
    return re.sub(r"\[.*?\]", "", text).replace("  ", " ")


def item(task, d):
    """[(context, choice)], gold"""
    if "query" in d:
        query = d["query"].rstrip() + ("\nAnswer:" if task in ("piqa", "arc_easy") else "")
        return [(query, c) for c in d["choices"]], d["gold"]
    if "context_options" in d:
        return [(c, d["continuation"]) for c in d["context_options"]], d["gold"]
    if task == "hellaswag":
        context = clean(d["activity_label"] + ": " + d["ctx_a"] + " " + d["ctx_b"].capitalize())
        return [(context, clean(e)) for e in d["endings"]], int(d["label"])
    if task == "piqa":
        return [(f"Question: {d['goal']}\nAnswer:", d[s]) for s in ("sol1", "sol2")], d["label"]
    if task == "winogrande":
        at = d["sentence"].index("_")
        rest = d["sentence"][at + 1:].strip()
        return [(d["sentence"][:at] + d[o], rest) for o in ("option1", "option2")], int(d["answer"]) - 1
    if task == "mathqa":
        choices = [c[4:].rstrip(" ,") for c in re.findall(r"[abcd] \) .*?, |e \) .*?$", d["options"])]
        return [(f"Question: {d['Problem']}\nAnswer:", c) for c in choices], "abcde".index(d["correct"])
    if task in ("openbookqa", "arc_easy"):
        context = d["question_stem"] if task == "openbookqa" else f"Question: {d['question']}\nAnswer:"
        return [(context, c) for c in d["choices"]["text"]], d["choices"]["label"].index(d["answerKey"].lstrip())
    if task == "copa":
        word = {"cause": "because", "effect": "therefore"}[d["question"]]
        context = d["premise"].strip()[:-1] + " " + word
        return [(context, c[0].lower() + c[1:]) for c in (d["choice1"], d["choice2"])], d["label"]
    if task == "lambada":
        if "continuation" in d:
            return [(d["context"], d["continuation"])], 0
        words = d["text"].split(" ")
        return [(" ".join(words[:-1]), words[-1])], 0
    raise SystemExit(f"no task {task}")


def pair(encode, context, choice):
    """ids, and how many of them are the context"""
    choice = " " + choice
    spaces = len(context) - len(context.rstrip())
    if spaces:
        choice = context[-spaces:] + choice
        context = context[:-spaces]
    return encode(context + choice), len(encode(context))


# ---- eviction: kept[t] of one head, from its scores ----

def kept_rows(policy, budget, scores):
    """scores: [T, T] double, before the softmax. Rows of attention over what is kept."""
    T = scores.shape[0]
    out, kept, total = torch.zeros(T, T, dtype=torch.float64), [], {}
    for t in range(T):
        while len(kept) >= budget:
            if policy.startswith("streaming"):
                sinks = int(policy.split("=")[1])
                victim = next(j for j in kept if j >= sinks)
            elif policy == "h2o":
                victim = min(kept, key=lambda j: (total[j], j))
            else:
                raise SystemExit(policy)
            kept.remove(victim)
        kept.append(t)
        total[t] = 0.0
        row = torch.softmax(scores[t, kept], -1)
        out[t, kept] = row
        for j, p in zip(kept, row.tolist()):
            total[j] += p
    return out


CELL = {"policy": "full", "budget": 0}


def attention(module, query, key, value, mask, scaling, dropout=0.0, **_):
    """batch 1; the heads that share keys have one cache, driven by their mean row"""
    n_head, n_kv, T = query.shape[1], key.shape[1], query.shape[2]
    group = n_head // n_kv
    q, k, v = query[0].double(), key[0].double(), value[0].double()
    out = torch.zeros(T, n_head, q.shape[-1], dtype=torch.float64)
    causal = torch.full((T, T), -math.inf, dtype=torch.float64).triu(1)
    for h in range(n_kv):
        rows = [q[h * group + g] @ k[h].T * scaling + causal for g in range(group)]
        if CELL["policy"] == "full":
            probs = [torch.softmax(r, -1) for r in rows]
        elif group == 1 or CELL["policy"].startswith("streaming"):
            probs = [kept_rows(CELL["policy"], CELL["budget"], r) for r in rows]
        else:
            raise SystemExit("h2o is written out for heads of their own only")
        for g in range(group):
            out[:, h * group + g] = probs[g] @ v[h]
    return out.to(query.dtype)[None], None


def patch(model):
    name = type(model).__module__
    sys.modules[name].eager_attention_forward = attention
    model.config._attn_implementation = "eager"


# ---- scores ----

def score(model, ids, n_context):
    n_cut = max(0, len(ids) - model.config.max_position_embeddings - 1)
    ids, n_context = ids[n_cut:], n_context - n_cut
    with torch.no_grad():
        logits = model(torch.tensor([ids[:-1]])).logits[0].double()
    logp = torch.log_softmax(logits, -1)
    wanted = range(n_context, len(ids))
    return (sum(float(logp[i - 1, ids[i]]) for i in wanted),
            all(int(logits[i - 1].argmax()) == ids[i] for i in wanted), n_context, len(ids) - n_context)


def budget_of(cell, longest):
    """cell: NAME or NAME@BUDGET; a budget with a point is a share of the longest choice's tokens"""
    _, _, b = cell.partition("@")
    return 0 if not b else max(1, int(float(b) * longest + 0.5)) if "." in b else int(b)


def run(model, encode, task, records, shots, cell):
    items = [item(task, r) for r in records]
    examples = "".join(f"{c[g][0]} {c[g][1]}\n\n" for c, g in items[:shots])
    out = []
    for choices, gold in items[shots:]:
        pairs = [pair(encode, examples + c, a) for c, a in choices]
        limit = model.config.max_position_embeddings
        CELL["policy"] = cell.partition("@")[0]
        CELL["budget"] = budget_of(cell, max(min(len(i) - 1, limit) for i, _ in pairs))
        scored = [score(model, i, n) for i, n in pairs]
        sums = [s[0] for s in scored]
        norm = [s / len(a) for s, (_, a) in zip(sums, choices)]
        out.append({"sums": sums, "greedy": [s[1] for s in scored], "context": [s[2] for s in scored],
                    "tokens": [s[3] for s in scored], "choice": sums.index(max(sums)),
                    "choice_norm": norm.index(max(norm)), "gold": gold})
    return out


def mean(values):
    m = sum(values) / len(values)
    deviation = math.sqrt(sum((v - m) ** 2 for v in values) / (len(values) - 1))
    return m, deviation / math.sqrt(len(values))


def accuracy(task, items):
    right = [float(i["greedy"][0] if task == "lambada" else i["choice"] == i["gold"]) for i in items]
    acc, error = mean(right)
    norm, norm_error = mean([float(i["choice_norm"] == i["gold"]) for i in items])
    return {"acc": acc, "stderr": error, "acc_norm": norm, "acc_norm_stderr": norm_error}


# ---- the golden model ----

TASKS = ["hellaswag", "piqa", "winogrande", "mathqa", "openbookqa", "arc_easy", "copa", "lambada"]
CELLS = ["full", "streaming:sinks=2@12", "h2o@0.3"]


def byte_bpe(folder):
    from tokenizers import ByteLevelBPETokenizer
    t = ByteLevelBPETokenizer(f"{folder}/vocab.json", f"{folder}/merges.txt")
    return lambda text: [2] + t.encode(text).ids


def make_model(folder):
    torch.manual_seed(20)
    config = transformers.OPTConfig(vocab_size=561, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                    ffn_dim=24, max_position_embeddings=100, word_embed_proj_dim=16, init_std=0.4,
                                    dropout=0.0, attention_dropout=0.0)
    model = transformers.OPTForCausalLM(config).half().float().eval()
    for p in model.parameters():
        p.data = p.data.half().float()
    os.makedirs(folder, exist_ok=True)
    from safetensors.torch import save_file
    save_file({n: p.half().contiguous() for n, p in model.state_dict().items() if n != "lm_head.weight"},
              f"{folder}/model.safetensors")
    os.chmod(f"{folder}/model.safetensors", 0o644)
    with open(f"{folder}/config.json", "w") as f:
        json.dump({k: v for k, v in config.to_dict().items() if not isinstance(v, (dict, list)) or k == "architectures"}
                  | {"architectures": ["OPTForCausalLM"]}, f, indent=1)
    return model


def rounded(items):
    for i in items:
        i["sums"] = [round(s, 6) for s in i["sums"]]
    return items


def make(folder, tokenizer):
    model, encode, golden = make_model(f"{folder}/model"), byte_bpe(tokenizer), []
    patch(model)
    for task in TASKS:
        records = [json.loads(line) for line in open(f"{folder}/{task}.jsonl", encoding="utf8")]
        for shots in (0, 1):
            for cell in CELLS:
                items = run(model, encode, task, records, shots, cell)
                golden.append({"task": task, "shots": shots, "cell": cell, "items": rounded(items),
                               **accuracy(task, items)})
    with open(f"{folder}/golden.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(g, separators=(",", ":")) for g in golden) + "\n]\n")


def check(folder, task, data, shots, count, cell, dump):
    from tokenizers import Tokenizer
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    patch(model)
    t, start = Tokenizer.from_file(f"{folder}/tokenizer.json"), model.config.bos_token_id
    records = [json.loads(line) for line, _ in zip(open(data, encoding="utf8"), range(int(shots) + int(count)))]
    ours = [json.loads(line) for line in open(dump)]
    ours = [o for o in ours if ("full" if o["policy"] == "full" else o["policy"]) == cell.split("@")[0].split(":")[0]]
    theirs = run(model, lambda s: [start] + t.encode(s, add_special_tokens=False).ids, task, records, int(shots), cell)
    worst, choices = 0.0, 0
    for o, r in zip(ours[:len(theirs)], theirs, strict=True):
        assert [c["tokens"] for c in o["choices"]] == r["tokens"], (o, r)
        assert [c["context_tokens"] for c in o["choices"]] == r["context"], (o, r)
        worst = max([worst] + [abs(c["loglikelihood"] - s) for c, s in zip(o["choices"], r["sums"])])
        choices += o["choice"] == r["choice"] and o["choice_norm"] == r["choice_norm"] and o["gold"] == r["gold"]
    print(f"{task} {cell}: {len(theirs)} items, {choices} same choices, log-likelihoods off by at most {worst:.2e}")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
