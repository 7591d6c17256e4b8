/* SPDX-License-Identifier: Apache-2.0 */
/* See settings.h. */
#include "tests/emu/settings.h"

#include <stdlib.h>

#include "tests/emu/emu.h"
#include "tests/emu/running.h"

namespace emu {

static unsigned long launches;
static cudaError_t lasting = cudaSuccess;

/* A whole number, with K, M or G after it; `otherwise` when the variable is not set. */
static unsigned long long number_in(const char *name, unsigned long long otherwise)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return otherwise;
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end == text || end[shift ? 1 : 0])
        fail("%s=%s: a whole number is expected, with K, M or G after it", name, text);
    return n << shift;
}

cudaError_t device_count(int *count)
{
    const char *text = getenv("SH_EMU_DEVICES");
    *count = 0;
    if (text && !strcmp(text, "driver"))
        return cudaErrorInsufficientDriver;
    unsigned long long n = number_in("SH_EMU_DEVICES", 1);
    if (n > MOST_DEVICES)
        fail("SH_EMU_DEVICES=%s: there are at most %d", text, MOST_DEVICES);
    *count = (int)n;
    return n ? cudaSuccess : cudaErrorNoDevice;
}

size_t device_memory()
{
    return (size_t)number_in("SH_EMU_MEMORY", 1 << 30);
}

size_t pinned_memory()
{
    return (size_t)number_in("SH_EMU_PINNED", SIZE_MAX);
}

/* Is it the other of two words? Unset: the usual one. */
static bool is_other(const char *name, const char *usual, const char *other)
{
    const char *text = getenv(name);
    if (!text || !*text || !strcmp(text, usual))
        return false;
    if (strcmp(text, other))
        fail("%s=%s: %s or %s is expected", name, text, usual, other);
    return true;
}

bool reads_late()
{
    return !is_other("SH_EMU_PAGEABLE", "late", "early");
}

bool closes_always()
{
    return is_other("SH_EMU_CLOSE", "seldom", "always");
}

Order stream_order()
{
    const char *text = getenv("SH_EMU_STREAMS");
    if (!text || !*text || !strcmp(text, "lazy"))
        return LAZY;
    if (!strcmp(text, "others"))
        return OTHERS;
    if (strcmp(text, "eager"))
        fail("SH_EMU_STREAMS=%s: lazy, others or eager is expected", text);
    return EAGER;
}

bool has_code()
{
    return number_in("SH_EMU_CODE", 1) != 0;
}

bool leaks_fail()
{
    return number_in("SH_EMU_LEAKS", 0) != 0;
}

bool graph_fails(const char *part, unsigned long capture)
{
    static const char *const parts[] = {"begin", "kernel", "end", "make"};
    const char *text = getenv("SH_EMU_GRAPH");
    if (!text || !*text)
        return false;
    size_t n = strcspn(text, ":");
    bool known = false;
    for (const char *p : parts)
        known |= strlen(p) == n && !strncmp(p, text, n);
    unsigned long first = text[n] ? strtoul(text + n + 1, nullptr, 10) : 1;
    if (!known || !first)
        fail("SH_EMU_GRAPH=%s: begin, kernel, end or make is expected, with :N", text);
    return strlen(part) == n && !strncmp(part, text, n) && capture >= first;
}

bool count_launch()
{
    launches++;
    if (launches == number_in("SH_EMU_FAIL", 0))
        lasting = cudaErrorIllegalAddress;
    if (launches == number_in("SH_EMU_LOST", 0))
        lasting = cudaErrorDevicesUnavailable;
    return lasting == cudaSuccess;
}

cudaError_t lasting_error()
{
    return lasting;
}

}

unsigned long emu_launches(void)
{
    return emu::launches;
}
