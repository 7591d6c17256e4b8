/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that people copy into a shell. */
#ifndef SH_BASE_SHELL_H
#define SH_BASE_SHELL_H

/* The word quoted for a shell, if it needs quotes; a quote within is written '\''. Caller frees. */
char *sh_shell_word(const char *word);

#endif
