# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of Markdown files, or of manual pages, and compares what they print.

    examples.py document README.md doc/commands.md      TAP: one line a command; its output is the indented text after it
    examples.py manual shears-*.1                       TAP: one line a command; it must succeed and print something

In Markdown, blocks indented by four spaces that begin with `shears ` are commands, one per line. Indented
blocks after them, up to the next prose, are the whole output of the last command: a line of "…" stands for any
lines, a word "…" for any words. Numbers may differ by 2 % or by three in their last digit, since machines sum in
different orders. A command with `…` or a placeholder in capitals is not run.
"""
import os
import re
import shlex
import subprocess
import sys

program = os.environ["SHEARS"]


def run(line):
    words = shlex.split(line)
    assert words[0] == "shears", line
    piped = shlex.join([program] + words[1:]) if "|" not in words else None
    if piped is None:
        return None
    done = subprocess.run(piped, shell=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done


def blocks(text):
    """(is prose, lines) of a Markdown file; indented blocks lose their indentation."""
    found, kind = [], None
    for raw in text.split("\n"):
        now = "blank" if not raw.strip() else "code" if raw.startswith("    ") else "prose"
        if now == "blank":
            kind = None
            continue
        if now != kind:
            found.append((now == "prose", []))
        kind = now
        found[-1][1].append(raw[4:] if now == "code" else raw)
    return found


def examples(text):
    """(command, the lines of its output or None)"""
    last = None
    for is_prose, lines in blocks(text):
        if is_prose:
            last = None
        elif lines[0].startswith("shears "):
            joined = "\n".join(lines).replace("\\\n", " ").split("\n")
            for line in joined:
                last = [line, None]
                yield last
        elif last:
            last[1] = (last[1] or []) + lines


def same_word(wanted, found):
    if wanted == found:
        return True
    a, b = (re.fullmatch(r"([(=]*)(-?\d[\d.]*(?:e[+-]?\d+)?)([%,;:)]*)", w) for w in (wanted, found))
    if not a or not b or a[1] != b[1] or a[3] != b[3]:
        return False
    x, y = float(a[2]), float(b[2])
    last = 10.0 ** -len(a[2].partition(".")[2])
    return abs(x - y) <= max(0.02 * abs(x), 3.01 * last if "." in a[2] else 0)


def same_line(wanted, found):
    w, f = wanted.split(), found.split()

    def match(i, j):
        if i == len(w):
            return j == len(f)
        if w[i] == "…":
            return any(match(i + 1, k) for k in range(j, len(f) + 1))
        return j < len(f) and same_word(w[i], f[j]) and match(i + 1, j + 1)
    return match(0, 0)


def difference(wanted, found):
    """None, or the first line that has no counterpart."""
    found = [line for line in found if line.strip()]
    i, j, anything = 0, 0, False
    while i < len(wanted):
        if wanted[i].strip() == "…":
            anything = True
        else:
            while j < len(found) and anything and not same_line(wanted[i], found[j]):
                j += 1
            if j == len(found) or not same_line(wanted[i], found[j]):
                return f"expected: {wanted[i]}\nfound:    {found[j] if j < len(found) else '(nothing more)'}"
            anything = False
            j += 1
        i += 1
    if j < len(found) and not anything:
        return f"not expected: {found[j]}"
    return None


def judge(kind, command, wanted):
    done = run(command)
    if done is None:
        return "skip"
    if done.returncode == 3:
        return "skip"
    if done.returncode:
        return f"exit status {done.returncode}\n{done.stderr[-600:]}"
    if wanted is None and not done.stdout.strip() and "-o " not in command and kind == "manual":
        return "it said nothing"
    if wanted:
        return difference(wanted, done.stdout.split("\n"))
    return None


# Pages whose examples make what others read come first; commands that cannot run by themselves have their own tests.
FIRST = ("trace", "eval", "replay", "plan")
ELSEWHERE = ("demo", "import", "merge", "reproduce")


def page_order(path):
    name = os.path.basename(path)[len("shears-"):-len(".1")]
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)


def manual(text):
    """The examples of a manual page; the text after three spaces explains them."""
    part = text.partition(".SH EXAMPLES")[2].partition(".SH")[0]
    part = part.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
    part = re.sub(r"\\\n *", "", part)
    for line in part.split("\n"):
        command = line.strip().partition("   ")[0]
        if command.startswith("shears ") and command.split()[1] not in ELSEWHERE and not re.search(r"[|>*]|, ", command):
            yield command, None


def main():
    kind, *paths = sys.argv[1:]
    n = 0
    for path in sorted(paths, key=page_order) if kind == "manual" else paths:
        text = open(path, encoding="utf-8").read()
        # what an example needs comes before it, so the list may be read as it is
        for command, wanted in list(examples(text) if kind == "document" else manual(text)):
            if "…" in command or re.search(r"\b(DIR|FILE|NAME)\b", command):
                continue
            n += 1
            fault = judge(kind, command, wanted)
            name = command.replace("#", "\\#")
            if fault == "skip":
                print(f"ok {n} - {name} # SKIP needs what is not here", flush=True)
            elif fault:
                print(f"not ok {n} - {name}", flush=True)
                print("\n".join("# " + line for line in fault.split("\n")), flush=True)
            else:
                print(f"ok {n} - {name}", flush=True)
    print(f"1..{n}")


main()
