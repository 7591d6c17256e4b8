# SPDX-License-Identifier: Apache-2.0
"""What record_torch.py and python_cache.py share: PyTorch as they use it, and how their checks are run, all in one process
because PyTorch takes long to import."""
import os
import subprocess
import sys
import time
import traceback
import warnings

import torch
import transformers

warnings.simplefilter("ignore")
torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def child(script, code, *arguments):
    """Another Python, in which `t` is that script: its exit status, stdout and stderr."""
    begin = "import sys; sys.path.insert(0, %r); import %s as t\n" % (os.path.dirname(os.path.abspath(__file__)), script)
    return subprocess.run([sys.executable, "-c", begin + code, *arguments], capture_output=True, text=True, timeout=600)


def main(checks):
    """Runs the checks that the arguments name. After what a check prints comes a line "== NAME good" or "== NAME bad"."""
    for name in sys.argv[1:]:
        began, end = time.process_time(), "bad"
        try:
            checks[name]()
            end = "good"
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        print("# %s: %.1f s on a processor\n== %s %s" % (name, time.process_time() - began, name, end), flush=True)
