# SPDX-License-Identifier: Apache-2.0
# The package for Python. `make wheel` puts it into dist/.
python_files = %D%/README.md %D%/backend.py %D%/pyproject.toml \
	%D%/shears/__init__.py %D%/shears/_ask.py %D%/shears/_attend.py %D%/shears/_cache.py %D%/shears/_lib.py \
	%D%/shears/_model.py %D%/shears/_passes.py %D%/shears/_record.py %D%/shears/_recording.py %D%/shears/_store.py %D%/shears/_table.py \
	%D%/shears/py.typed
EXTRA_DIST += $(python_files)
PYTHON = python3
wheel: libshears.so
	SHEARS_BUILD='$(abs_builddir)' $(PYTHON) '$(srcdir)/%D%/backend.py' dist
.PHONY: wheel
