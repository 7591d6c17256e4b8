#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shears capacity compared with other calculators in one run: the answer of each to the same case.

    pip install llm-analysis genz-llm aiconfigurator hf-mem
    bench/capacity_peers.py ./shears [--all] > peers.tsv

One line a case: who, the case, what, theirs, ours, theirs / ours. Without --all only disagreements over
2 % are shown, and how many agreed. doc/capacity.md explains them. A peer that is not installed is named.
"""
import contextlib
import glob
import io
import json
import logging
import os
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
shears, show_all = sys.argv[1], "--all" in sys.argv
agreed = {}


def ours(model, length, batch=None, gpu="A100-SXM-80GB", tp=1):
    """The row of shears capacity; a string: why there is none."""
    command = [shears, "capacity", "--model", model, "--gpu", gpu, "--length", str(length), "--tp", str(tp), "--json"]
    done = subprocess.run(command + (["--batch", str(batch)] if batch else []), capture_output=True, text=True)
    if done.returncode:
        return done.stderr.splitlines()[0].partition(": key ")[2] or done.stderr.splitlines()[0]
    return json.loads(done.stdout)["results"][0]


def line(who, case, what, theirs, mine):
    ratio = theirs / mine if mine else float("nan")
    agreed.setdefault(who, [0, 0])
    agreed[who][int(abs(ratio - 1) > 0.02)] += 1
    if show_all or abs(ratio - 1) > 0.02:
        print(f"{who}\t{case}\t{what}\t{theirs:.6g}\t{mine:.6g}\t{ratio:.3f}")


def configs():
    """config.json files that AIConfigurator brings, as (name, path)."""
    import aiconfigurator_core
    folder = os.path.join(os.path.dirname(aiconfigurator_core.__file__), "model_configs")
    for path in sorted(glob.glob(folder + "/*_config.json")):
        name = os.path.basename(path)[:-len("_config.json")].partition("--")[2]
        if not name.endswith("hf_quant"):
            yield name, path


def hf_mem():
    from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size
    for name, path in configs():
        config = json.load(open(path))
        config = config.get("text_config", config)
        row = ours(path, 8192)
        if isinstance(row, str):
            continue
        try:
            theirs = compute_safetensors_kv_cache_size(config, "BF16", 8192)
        except Exception as e:
            print(f"hf-mem\t{name}\tKV bytes at 8192\tfails: {type(e).__name__} {e}\t"
                  f"{row['kv_bytes_per_sequence_per_gpu']}\t-")
            continue
        line("hf-mem", name, "KV bytes at 8192", theirs, row["kv_bytes_per_sequence_per_gpu"])


def aiconfigurator():
    from aiconfigurator_core.sdk.memory import NaiveKVCacheEstimator
    for name, path in configs():
        row = ours(path, 8192)
        if isinstance(row, str):
            print(f"AIConfigurator\t{name}\t-\t-\trefused: {row[:120]}\t-")
            continue
        plain = NaiveKVCacheEstimator.from_hf_config(json.load(open(path)), tp_size=1, pp_size=1)
        per_token = plain.kv_bytes_per_token()
        if per_token:
            line("AIConfigurator", name, "KV bytes at 8192, before its windows", per_token / plain.dtype_bytes * 2 * 8192,
                 row["kv_bytes_per_sequence_per_gpu"])
        weights = plain.weight_bytes()
        if weights:
            line("AIConfigurator", name, "parameters (its fallback's)", weights / plain.dtype_bytes, row["parameters"])


def genz():
    with contextlib.redirect_stdout(io.StringIO()):
        from GenZ.LLM_inference import decode_moddeling
    for theirs, name in (("facebook/opt-6.7b", "opt-6.7b"), ("facebook/opt-66B", "opt-66b"),
                         ("meta-llama/Llama-2-7B", "llama-2-7b"), ("meta-llama/Llama-3.1-8B", "llama-3.1-8b")):
        for batch in (1, 16):
            with contextlib.redirect_stdout(io.StringIO()):
                _, table = decode_moddeling(model=theirs, batch_size=batch, Bb=1, input_tokens=2048, output_tokens=0,
                                            system_name="A100_80GB_GPU", bits="bf16", model_profilling=True)
            row = ours(name, 2048, batch)
            line("GenZ", f"{name}, {batch} of 2048", "weights, bytes", table["Total Weights (MB)"].values[0] * 2**20,
                 row["weights_bytes_per_gpu"])
            line("GenZ", f"{name}, {batch} of 2048", "KV, bytes", table["KV Cache (MB)"].values[0] * 2**20,
                 row["kv_bytes_per_sequence_per_gpu"] * batch)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    run = decode_moddeling(model=theirs, batch_size=batch, Bb=1, input_tokens=2048, output_tokens=0,
                                           system_name="A100_80GB_GPU", bits="bf16")
            except ValueError:
                continue                # does not fit, which ours says, too
            if row["fits"]:
                line("GenZ", f"{name}, {batch} of 2048", "tokens/s", float(run["Throughput"]), row["decode_tokens_per_s"])


def llm_analysis():
    from llm_analysis.analysis import LLMAnalysis
    from llm_analysis.config import DtypeConfig, GPUConfig, ModelConfig
    gpu = GPUConfig(name="a100", mem_per_GPU_in_GB=80, hbm_bandwidth_in_GB_per_sec=2039,
                    intra_node_bandwidth_in_GB_per_sec=600, intra_node_min_message_latency=8e-6,
                    peak_fp16_TFLOPS=312)
    # It takes no feed-forward width that is not a multiple of the width, so no LLaMA.
    shapes = {"opt-6.7b": (32, 32, 4096, 50272, 2048, 4, 1), "opt-66b": (64, 72, 9216, 50272, 2048, 4, 1)}
    for name, (layers, heads, width, vocabulary, positions, expansion, groups) in shapes.items():
        model = ModelConfig(name=name, num_layers=layers, n_head=heads, hidden_dim=width, vocab_size=vocabulary,
                            max_seq_len=positions, num_key_value_heads=heads // groups,
                            ffn_embed_dim=int(width * expansion))
        a = LLMAnalysis(model, gpu, DtypeConfig(name="w16a16e16", weight_bits=16, activation_bits=16, embedding_bits=16))
        row = ours(name, 2048, 1)
        line("llm-analysis", name, "parameters", a.get_num_params_total(), row["parameters"])
        line("llm-analysis", name, "KV bytes at 2048", a.get_memory_kv_cache_per_layer(1, 2048) * layers,
             row["kv_bytes_per_sequence_per_gpu"])


print("who\tcase\twhat\ttheirs\tours\tratio")
for peer in (llm_analysis, genz, hf_mem, aiconfigurator):
    try:
        peer()
    except ImportError as e:
        print(f"{peer.__name__}\tis not installed: {e}\t\t\t\t", file=sys.stderr)
for who, (same, other) in agreed.items():
    print(f"{who}: {same} agree within 2 %, {other} do not", file=sys.stderr)
