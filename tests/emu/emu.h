/* SPDX-License-Identifier: Apache-2.0 */
/* What a test may ask the emulation, in C. A module that holds it exports these functions. */
#ifndef SH_EMU_H
#define SH_EMU_H

#ifdef __cplusplus
extern "C" {
#endif

#define EMU_API __attribute__((visibility("default")))

/* Kernels and products so far: SH_EMU_FAIL and SH_EMU_LOST (settings.h) count on from the start of the
 * process. */
EMU_API unsigned long emu_launches(void);

/* What streams have run so far: kernels, products, copies and fills. */
EMU_API unsigned long emu_done(void);

/* How often the host has waited for the device: for a stream, an event or all of it, and in copies that return when
 * they are done. Freeing memory is not counted. */
EMU_API unsigned long emu_waits(void);

/* Those of them that keep a processor busy: all but for events with cudaEventBlockingSync. */
EMU_API unsigned long emu_spins(void);

/* Is called at the head of each cudaFree, which waits for the device, in its thread; NULL: nothing is. */
EMU_API void emu_before_free(void (*fn)(void));

/* Device and pinned memory, streams, events and cuBLAS handles that are not given back: their number,
 * with a line for each on stderr. */
EMU_API int emu_leaks(void);

#ifdef __cplusplus
}
#endif

#endif
