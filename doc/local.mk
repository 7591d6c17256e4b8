# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/trace-format.md %D%/adding.md %D%/decisions.md %D%/persistence.svg
