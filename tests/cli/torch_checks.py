# SPDX-License-Identifier: Apache-2.0
"""What record_torch.py and python_cache.py share: PyTorch as they use it, and how their checks are run, all in one process
because PyTorch takes long to import."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

import torch
import transformers

import shears

warnings.simplefilter("ignore")
torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


class Nursery:
    """A process that has imported everything and computed nothing yet. It makes children, which so begin in no time."""

    def __init__(self):
        self.at, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.code = None                            # of a child: what it has to do
        if os.fork():
            return
        self.at.close()
        while request := there.recv(1 << 16):
            made = os.fork()
            if not made:
                self.code, sys.argv[1:], *files = json.loads(request)
                for to, name in enumerate(files, 1):
                    os.dup2(os.open(name, os.O_WRONLY), to)
                return
            there.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(made, 0)[1]))
        os._exit(0)

    def child(self, code, arguments):
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            self.at.send(json.dumps([code, arguments, out.name, err.name]).encode())
            status = int(self.at.recv(100))
            return subprocess.CompletedProcess(arguments, status, out.read().decode(), err.read().decode())


def child(code, *arguments):
    """Another Python, in which `t` is the script that runs: its exit status, stdout and stderr."""
    return nursery.child(code, arguments)


def main(checks):
    """Runs the checks that the arguments name. After what a check prints comes a line "== NAME good" or "== NAME bad"."""
    global nursery
    _ = shears.Cache, shears.record, transformers.LlamaForCausalLM      # imported when they are first named
    nursery = Nursery()
    if nursery.code:
        exec(nursery.code, {"t": sys.modules["__main__"], "sys": sys})
        return
    for name in sys.argv[1:]:
        began, end = time.process_time(), "bad"
        try:
            checks[name]()
            end = "good"
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        print("# %s: %.1f s on a processor\n== %s %s" % (name, time.process_time() - began, name, end), flush=True)
