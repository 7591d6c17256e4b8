# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/trace-format.md %D%/policies.md %D%/capacity.md %D%/planning.md %D%/reproduce.md %D%/adding.md %D%/decisions.md %D%/persistence.svg
EXTRA_DIST += %D%/figures.md %D%/budget-curve.svg %D%/leaderboard.svg %D%/dropped-mass.svg %D%/allocation.svg
EXTRA_DIST += %D%/quality.md %D%/compression.svg %D%/compression-texts.svg %D%/quant.svg %D%/drift.svg %D%/score-change.svg

# Manual pages and completion, made by the program from the tables that parse its options.
all-local: %D%/man/shears.1 %D%/man/shears.bash %D%/man/shears.fish
%D%/man/shears.1: shears$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/man && rm -f %D%/man/*.1 && ./shears$(EXEEXT) help --man %D%/man
%D%/man/shears.bash %D%/man/shears.fish: shears$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/man && ./shears$(EXEEXT) help --completion `echo $@ | sed 's/.*\.//'` >$@.part && mv $@.part $@

man1dir = $(mandir)/man1
bashcompletiondir = $(datadir)/bash-completion/completions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
install-data-local: all-local
	$(MKDIR_P) '$(DESTDIR)$(man1dir)' '$(DESTDIR)$(bashcompletiondir)' '$(DESTDIR)$(fishcompletiondir)'
	$(INSTALL_DATA) %D%/man/*.1 '$(DESTDIR)$(man1dir)'
	$(INSTALL_DATA) %D%/man/shears.bash '$(DESTDIR)$(bashcompletiondir)/shears'
	$(INSTALL_DATA) %D%/man/shears.fish '$(DESTDIR)$(fishcompletiondir)/shears.fish'
uninstall-local:
	rm -f '$(DESTDIR)$(man1dir)'/shears.1 '$(DESTDIR)$(man1dir)'/shears-*.1
	rm -f '$(DESTDIR)$(bashcompletiondir)/shears' '$(DESTDIR)$(fishcompletiondir)/shears.fish'
clean-local:
	rm -rf %D%/man
EXTRA_DIST += %D%/simulate.md %D%/import.md tests/README.md
EXTRA_DIST += %D%/architecture.md %D%/commands.md %D%/glossary.md %D%/performance.md %D%/scale.md %D%/slurm/array.sbatch %D%/slurm/merge.sbatch %D%/slurm/mpi.sbatch
