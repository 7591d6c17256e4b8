/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches: arguments are converted and copied as a call would, pointers are looked up, and the
 * grid goes into the stream. */
#ifndef SH_EMU_LAUNCH_H
#define SH_EMU_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <tuple>
#include <type_traits>

#include "emu/device.h"

typedef struct CUstream_st *cudaStream_t;

namespace emu {

struct Launch {
    const char *kernel;
    dim3 grid, block;
    std::function<void()> thread;       /* what one thread does */
};

/* The number counts from 1. `is_struct`: the words of a structure, of which any may be no pointer. */
void check_argument(const char *kernel, int number, const void *at, size_t bytes, bool is_struct);
void launch(cudaStream_t stream, Launch work);

template <typename P> void check(const char *kernel, int number, const P &argument)
{
    static_assert(std::is_trivially_copyable<P>::value, "kernel arguments are copied byte by byte");
    if (std::is_pointer<P>::value || std::is_class<P>::value)
        check_argument(kernel, number, &argument, sizeof argument, std::is_class<P>::value);
}

/* Called with a kernel's arguments, which so become its parameters' types. */
template <typename... P> struct Launcher {
    const char *name;
    void (*kernel)(P...);
    dim3 grid, block;
    cudaStream_t stream;

    void operator()(P... argument) const
    {
        static_assert((sizeof(P) + ... + 0) <= 4096, "CUDA passes no more than 4 KiB of arguments");
        int number = 0;
        (check(name, ++number, argument), ...);
        (void)number;
        launch(stream, Launch{name, grid, block, [kernel = kernel, all = std::tuple<P...>(argument...)] {
                                  std::apply(kernel, all);
                              }});
    }
};

template <typename... P>
Launcher<P...> launcher(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream)
{
    return {name, kernel, grid, block, stream};
}

}

#define SH_LAUNCH(kernel, grid, block, stream, ...) \
    (emu::launcher(#kernel, kernel, grid, block, stream)(__VA_ARGS__))

#endif
