#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an interactive zsh, with the completion function of a folder, makes of a line and the Tab key.
    zsh_tab.py FOLDER LINE"""
import os
import pty
import select
import sys
import time

PATIENCE = 20
folder, line = sys.argv[1:]
child, terminal = pty.fork()
if not child:
    os.environ.update(TERM="dumb", ZDOTDIR=folder)
    os.execvp("zsh", ["zsh", "-f", "-i"])


def read_until(is_there):
    text, end = "", time.time() + PATIENCE
    while not is_there(text) and time.time() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                text += os.read(terminal, 65536).decode(errors="replace")
            except OSError:
                break
    return text


def say(text):
    os.write(terminal, text.encode())


say(f"fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; PROMPT=''; LISTMAX=999; print rea''dy\n")
read_until(lambda text: "ready" in text)
say(line + "\t\t")
offered = read_until(lambda text: text.count("\n") >= 2)
offered += read_until(lambda text, end=time.time() + 0.5: time.time() > end)
print(" ".join(sorted(set(offered.split()) - set(line.split()))))
os.kill(child, 9)
