#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens that files next to a tokenizer.json name, and the ids that transformers gives a text then.

    tokenizer_folders.py > ../golden/tokenizers/folders.json     (transformers 5.24.0)
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

from transformers import AutoTokenizer

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "tokenizers"
TEXT = "the <|x|> of<extra> it<u> <|endoftext|><|x|>s"


def token(content, **flags):
    return dict(content=content, lstrip=False, rstrip=False, normalized=False, single_word=False, special=True) | flags


def cases():
    """Name: the files besides tokenizer.json (tokenizer_config.json without its class)."""
    x = {"900": token("<|x|>")}
    two = {"special_tokens_map.json": {"bos_token": "<|x|>", "additional_special_tokens": ["<extra>"]}}
    yield "none", {"tokenizer_config.json": {}}
    yield "decoder", {"tokenizer_config.json": {"added_tokens_decoder": x | {"90": token("<extra>")}}}
    yield "decoder, white space", {"tokenizer_config.json": {
        "added_tokens_decoder": {"900": token("<|x|>", lstrip=True, rstrip=True)}}}
    yield "decoder, no special token", {"tokenizer_config.json": {
        "added_tokens_decoder": {"900": token("<|x|>", special=False, normalized=True)}}}
    yield "decoder before other files", {
        "tokenizer_config.json": {"added_tokens_decoder": x}, "added_tokens.json": {"<u>": 7}} | two
    yield "decoder, other flags", {"tokenizer_config.json": {"added_tokens_decoder": {
        "600": token("<|endoftext|>", lstrip=True)}}}
    yield "object and list", {"tokenizer_config.json": {
        "extra_special_tokens": {"image_token": "<extra>"}, "additional_special_tokens": ["<u>"]}}
    yield "object and map", {"tokenizer_config.json": {"extra_special_tokens": {"image_token": "<u>"}}} | two
    yield "named by the model", {"tokenizer_config.json": {"model_specific_special_tokens": {"image_token": "<extra>"}}}
    yield "map", {"tokenizer_config.json": {}} | two
    yield "map and file", {"tokenizer_config.json": {}, "added_tokens.json": {"<u>": 7}} | two
    yield "map after config", {"tokenizer_config.json": {"bos_token": "<u>"}} | two
    yield "map, an object", {"tokenizer_config.json": {},
                             "special_tokens_map.json": {"bos_token": token("<|x|>", lstrip=True)}}
    yield "file", {"tokenizer_config.json": {}, "added_tokens.json": {"<u>": 905, "<|x|>": 903}}
    yield "named, an object", {"tokenizer_config.json": {
        "eos_token": token("<|x|>", lstrip=True, __type="AddedToken"), "pad_token": "<u>"}}
    yield "extra", {"tokenizer_config.json": {"extra_special_tokens": ["<u>"], "additional_special_tokens": ["<extra>"]}}
    yield "lists of both files", {"tokenizer_config.json": {"additional_special_tokens": ["<u>"]}} | two
    yield "lists by both names", {"tokenizer_config.json": {"extra_special_tokens": ["<u>"]}} | two
    yield "extra by name", {"tokenizer_config.json": {"extra_special_tokens": {"image_token": "<extra>"}}}
    yield "other keys", {"tokenizer_config.json": {"image_token": "<extra>", "add_bos_token": False}}
    yield "of the vocabulary", {"tokenizer_config.json": {"bos_token": "the", "pad_token": "of"}}


def main():
    out = []
    for base in ("gpt2_bpe", "unigram_sp"):
        for name, files in cases():
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(GOLDEN / base / "tokenizer.json", folder)
                for file, content in files.items():
                    if file == "tokenizer_config.json":
                        content["tokenizer_class"] = "PreTrainedTokenizerFast"
                    with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                        json.dump(content, f)
                with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                    json.dump({"model_type": "llama"}, f)
                ids = AutoTokenizer.from_pretrained(folder)(TEXT, add_special_tokens=False)["input_ids"]
            out.append({"name": name, "base": base, "files": files, "text": TEXT, "ids": ids})
    sys.stdout.write("[\n" + ",\n".join(json.dumps(v, separators=(",", ":")) for v in out) + "\n]\n")


if __name__ == "__main__":
    main()
