# SPDX-License-Identifier: Apache-2.0
# Benchmarks are run by hand; see bench/README.md.
EXTRA_DIST += %D%/README.md %D%/trace_speed.py %D%/memory.sh %D%/results
