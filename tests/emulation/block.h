/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the emulation. */
#ifndef EMU_BLOCK_INNER_H
#define EMU_BLOCK_INNER_H

#include <cuda_runtime.h>

namespace emu {

/* Every block of the grid, now. */
void run_grid(const char *kernel, dim3 grid, dim3 block, const std::function<void()> &body);

} /* namespace emu */

#endif
