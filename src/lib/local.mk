# SPDX-License-Identifier: Apache-2.0
# libshears, shared and static: shears.h over the use cases. Both are one object, in which everything is local but
# shears_*; it holds what the program is linked with, as far as the library needs it.
noinst_LIBRARIES += libapi.a
libapi_a_SOURCES = \
	%D%/ask.c \
	%D%/error.c \
	%D%/evictor.c \
	%D%/lib.h \
	%D%/own_policy.c \
	%D%/record.c \
	%D%/result.c \
	%D%/rows.c \
	%D%/shears.h \
	%D%/store.c
include_HEADERS = %D%/shears.h
dist_man_MANS = %D%/libshears.3
EXTRA_DIST += %D%/shears.map
examplesdir = $(docdir)/examples
dist_examples_DATA = %D%/examples/policy.c %D%/examples/read.c

lib_parts   = libcli.a $(app_libs) $(filter %.a,$(kernel_libs))
lib_outside = $(SQLITE_LIBS) $(ZSTD_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) $(DNNL_LIBS) -ldl -lpthread -lm
CLEANFILES += libshears.o libshears.a libshears.so.0 libshears.so
libshears.o: libapi.a $(lib_parts)
	$(AM_V_CCLD)$(CC) -r -nostdlib -o $@.part -Wl,--whole-archive libapi.a -Wl,--no-whole-archive $(lib_parts) && \
	$(OBJCOPY) --wildcard --keep-global-symbol='shears_*' $@.part && mv $@.part $@
libshears.a: libshears.o
	$(AM_V_AR)rm -f $@ && $(AR) $(ARFLAGS) $@ libshears.o && $(RANLIB) $@
lib_link = $(CC) -shared $(AM_CFLAGS) $(CFLAGS) $(LDFLAGS) $(LIB_LDFLAGS) -Wl,-soname,libshears.so.0 \
	-Wl,--version-script,$(srcdir)/%D%/shears.map libshears.o $(lib_outside)
libshears.so.0: libshears.o $(srcdir)/%D%/shears.map
	$(AM_V_CCLD)$(lib_link) -o $@
# For the package for Python: at LIB_SHARED, with LIB_LDFLAGS that say where to look for what the package brings along.
lib_shared: libshears.o
	$(lib_link) -o '$(LIB_SHARED)'
.PHONY: lib_shared
libshears.so: libshears.so.0
	$(AM_V_GEN)ln -sf libshears.so.0 $@
all-local: libshears.so

sharedlibdir       = $(libdir)
sharedlib_DATA     = libshears.a libshears.so.0
pkgconfigdir       = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = %D%/shears.pc
install-data-hook:
	ln -sf libshears.so.0 '$(DESTDIR)$(libdir)/libshears.so'
