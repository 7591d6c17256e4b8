/* SPDX-License-Identifier: Apache-2.0 */
/* What a test may ask the emulation, in C. A module that holds it exports these two functions. */
#ifndef SH_EMU_H
#define SH_EMU_H

#ifdef __cplusplus
extern "C" {
#endif

#define EMU_API __attribute__((visibility("default")))

/* Kernels and products so far: SH_EMU_FAIL and SH_EMU_LOST (settings.h) count on from the start of the
 * process. */
EMU_API unsigned long emu_launches(void);

/* Device and pinned memory, streams, events and cuBLAS handles that are not given back: their number,
 * with a line for each on stderr. */
EMU_API int emu_leaks(void);

#ifdef __cplusplus
}
#endif

#endif
