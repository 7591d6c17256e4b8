# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/trace-format.md %D%/policies.md %D%/capacity.md %D%/planning.md %D%/adding.md %D%/decisions.md %D%/persistence.svg
EXTRA_DIST += %D%/figures.md %D%/budget-curve.svg %D%/leaderboard.svg %D%/dropped-mass.svg %D%/allocation.svg
EXTRA_DIST += %D%/simulate.md
