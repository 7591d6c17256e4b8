# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/trace-format.md %D%/policies.md %D%/capacity.md %D%/adding.md %D%/decisions.md %D%/persistence.svg
