/* SPDX-License-Identifier: Apache-2.0 */
/* The target under AFL++, in a process that goes through many inputs. Each comes in memory of just its size, so
 * that the address sanitizer sees what reads beyond it. */
#include "tests/fuzz/afl.h"

#ifdef __AFL_COMPILER
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"

enum { INPUTS = 2000 };                 /* of a process: what it took is known when it ends       */

__AFL_FUZZ_INIT();

int fuzz_afl(void)
{
    if (!getenv("__AFL_SHM_ID"))
        return 0;
    __AFL_INIT();
    const unsigned char *shared = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(INPUTS)) {
        size_t n = (size_t)__AFL_FUZZ_TESTCASE_LEN;
        unsigned char *data = xmalloc(n ? n : 1);
        memcpy(data, shared, n);
        LLVMFuzzerTestOneInput(data, n);
        free(data);
    }
    return 1;
}
#else
int fuzz_afl(void) { return 0; }
#endif
