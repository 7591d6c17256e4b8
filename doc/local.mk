# SPDX-License-Identifier: Apache-2.0
# Help, manual pages and README name the documents; their figures lie next to them.
documentsdir = $(docdir)/doc
dist_documents_DATA = %D%/adding.md %D%/architecture.md %D%/capacity.md %D%/commands.md %D%/decisions.md \
	%D%/figures.md %D%/glossary.md %D%/import.md %D%/library.md %D%/performance.md %D%/planning.md \
	%D%/policies.md %D%/python.md %D%/quality.md %D%/recommend.md %D%/recorder.md %D%/reproduce.md %D%/scale.md %D%/simulate.md \
	%D%/trace-format.md %D%/notebook.ipynb \
	%D%/allocation.svg %D%/budget-curve.svg %D%/compression.svg %D%/compression-texts.svg %D%/drift.svg \
	%D%/dropped-mass.svg %D%/leaderboard.svg %D%/lost-attention.svg %D%/quant.svg %D%/reuse.svg \
	%D%/score-change.svg
slurmdir = $(documentsdir)/slurm
dist_slurm_DATA = %D%/slurm/array.sbatch %D%/slurm/merge.sbatch %D%/slurm/mpi.sbatch
dist_doc_DATA = README.md CHANGELOG.md LICENSE
EXTRA_DIST += tests/README.md

# Manual pages and completion, made by the program from the tables that parse its options.
all-local: %D%/man/shears.1 %D%/man/shears.bash %D%/man/shears.fish %D%/man/shears.zsh
%D%/man/shears.1: shears$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/man && rm -f %D%/man/*.1 && ./shears$(EXEEXT) help --man %D%/man
%D%/man/shears.bash %D%/man/shears.fish %D%/man/shears.zsh: shears$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/man && ./shears$(EXEEXT) help --completion `echo $@ | sed 's/.*\.//'` >$@.part && mv $@.part $@

man1dir = $(mandir)/man1
bashcompletiondir = $(datadir)/bash-completion/completions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
zshcompletiondir = $(datadir)/zsh/site-functions
install-data-local: all-local
	$(MKDIR_P) '$(DESTDIR)$(man1dir)' '$(DESTDIR)$(bashcompletiondir)' '$(DESTDIR)$(fishcompletiondir)' \
		'$(DESTDIR)$(zshcompletiondir)'
	$(INSTALL_DATA) %D%/man/*.1 '$(DESTDIR)$(man1dir)'
	$(INSTALL_DATA) %D%/man/shears.bash '$(DESTDIR)$(bashcompletiondir)/shears'
	$(INSTALL_DATA) %D%/man/shears.fish '$(DESTDIR)$(fishcompletiondir)/shears.fish'
	$(INSTALL_DATA) %D%/man/shears.zsh '$(DESTDIR)$(zshcompletiondir)/_shears'
uninstall-local:
	rm -f '$(DESTDIR)$(libdir)/libshears.so' '$(DESTDIR)$(man1dir)'/shears.1 '$(DESTDIR)$(man1dir)'/shears-*.1
	rm -f '$(DESTDIR)$(bashcompletiondir)/shears' '$(DESTDIR)$(fishcompletiondir)/shears.fish'
	rm -f '$(DESTDIR)$(zshcompletiondir)/_shears'
# Folders that are empty now go, up to the prefix; of a system's own prefix those that are everyone's stay.
uninstall-hook:
	keep=' / $(prefix) '; \
	case '$(prefix)' in /usr|/usr/local) keep="$$keep$(bindir) $(libdir) $(datadir) $(mandir) $(man1dir) $(man3dir) $(includedir) $(pkgconfigdir) " ;; esac; \
	for dir in '$(slurmdir)' '$(documentsdir)' '$(examplesdir)' '$(docdir)' '$(man1dir)' '$(man3dir)' \
		'$(bashcompletiondir)' '$(fishcompletiondir)' '$(zshcompletiondir)' '$(moduledir)' '$(pkgdatadir)' '$(pkgconfigdir)' '$(libdir)' '$(includedir)' '$(bindir)'; do \
		while case "$$keep" in *" $$dir "*) false ;; esac && rmdir "$(DESTDIR)$$dir" 2>/dev/null; do \
			dir=`dirname "$$dir"`; \
		done; \
	done
clean-local:
	rm -rf %D%/man dist
