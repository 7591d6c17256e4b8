/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the host's memory is free. */
#ifndef SH_BASE_HOST_MEMORY_H
#define SH_BASE_HOST_MEMORY_H

#include <stddef.h>

/* Bytes that can be taken without pushing others out, as the kernel estimates them (MemAvailable of /proc/meminfo);
 * where it does not, half of what is there. */
size_t sh_host_memory_free(void);

#endif
