/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, loading and opening backends, with the modules of tests/fake in $SH_FAKE. What was found stays
 * found until a program ends, so each case is a child process; its first unmet condition comes back in
 * shared memory. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/load.h"
#include "src/app/common/devices.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static char *unmet;                     /* [4096], shared with the children */
static struct sh_err e;

#define MUST(x) ((x) || unmet[0] ? 0 : snprintf(unmet, 4096, "line %d: %s (error: %s)", __LINE__, #x, e.text))
#define MUST_SAY(text, part) MUST(strstr(text, part) != NULL)

static const char *fake(const char *name)
{
    static char path[4096];
    const char *folder = getenv("SH_FAKE");
    snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : "tests/fake", name);
    return path;
}

/* Run fn in a child that finds modules in this folder (NULL: in the usual places); its exit status. */
static int child(const char *folder, void (*fn)(void))
{
    int status = 0;
    unmet[0] = '\0';
    pid_t p = fork();
    CU_ASSERT_FATAL(p >= 0);
    if (p == 0) {
        if (folder)
            setenv("SH_MODULE_DIR", folder, 1);
        else
            unsetenv("SH_MODULE_DIR");
        fn();
        _exit(0);
    }
    CU_ASSERT(waitpid(p, &status, 0) == p);
    if (unmet[0])
        printf("# %s\n", unmet);
    CU_ASSERT(!unmet[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void want_cpu(void)
{
    const struct sh_module *m = sh_backend_look("cpu");
    const struct sh_backend *b = sh_backend_find("cpu", &e);
    MUST(m && m->state == SH_MODULE_READY && !m->path[0]);
    MUST(b && m->backend == b && !strcmp(b->name, "cpu"));
    MUST(!sh_backend_look("abacus") && !sh_backend_find("abacus", &e) && e.status == SH_MISUSED);
    MUST_SAY(e.text, "unknown backend \"abacus\"");
}

static void want_cuda(void)
{
    sh_backend_find("cuda", &e);
}

static void cpu_loads_nothing(void)
{
    CU_ASSERT(child(fake("trap"), want_cpu) == 0);
    CU_ASSERT(child(fake("trap"), want_cuda) == 97);
}

static void good(void)
{
    const struct sh_module *m = sh_backend_look("cuda");
    MUST(m && m->state == SH_MODULE_READY && !strcmp(m->path, fake("good/cuda.so")));
    MUST(m->backend && !strcmp(m->backend->name, "cuda") && m->backend->abi == SH_BACKEND_ABI);
    setenv("SH_MODULE_DIR", scratch_folder(), 1);
    MUST(sh_backend_look("cuda") == m && sh_backend_find("cuda", &e) == m->backend);
    MUST(sh_backend_find("auto", &e) == m->backend);
}

static void a_module_is_found(void)
{
    CU_ASSERT(child(fake("good"), good) == 0);
}

static void nothing_there(void)
{
    const struct sh_module *m = sh_backend_look("cuda");
    MUST(m && m->state == SH_MODULE_NOT_BUILT && !m->backend && !m->path[0]);
    MUST(!sh_backend_find("cuda", &e) && e.status == SH_ABSENT);
    MUST_SAY(e.text, "backend cuda: not built: there is no cuda.so in ");
    MUST_SAY(e.text, scratch_folder());
    MUST_SAY(e.hint, "./configure --with-cuda");
    setenv("SH_MODULE_DIR", fake("good"), 1);
    MUST(!sh_backend_find("cuda", &e) && sh_backend_look("cuda")->state == SH_MODULE_NOT_BUILT);
    MUST(!strcmp(sh_backend_find("auto", &e)->name, "cpu"));
}

static void none_is_built(void)
{
    CU_ASSERT(child(scratch_folder(), nothing_there) == 0);
}

/* The module is there and cannot be used: it is named, and so is the reason. */
static void broken(const char *reason)
{
    const struct sh_module *m = sh_backend_look("cuda");
    MUST(m && m->state == SH_MODULE_CANNOT_LOAD && !m->backend);
    MUST(!sh_backend_find("cuda", &e) && e.status == SH_ABSENT);
    MUST_SAY(e.text, "backend cuda: cannot load: ");
    MUST_SAY(e.text, m->path);
    MUST_SAY(e.text, reason);
    MUST(!strcmp(sh_backend_find("auto", &e)->name, "cpu"));
}

static void stale(void)
{
    char reason[100];
    snprintf(reason, sizeof reason, "its interface version is %d, this program's is %d",
             SH_BACKEND_ABI - 1, SH_BACKEND_ABI);
    broken(reason);
}

static void foreign(void)
{
    broken("holds backend \"rocm\", expected \"cuda\"");
}

static void hidden(void)
{
    broken("undefined symbol: " SH_BACKEND_SYMBOL);
}

static void unresolved(void)
{
    MUST(!dlopen(fake("needs/cuda.so"), RTLD_NOW | RTLD_LOCAL));
    char words[1000];                   /* the next dlopen takes the original away */
    snprintf(words, sizeof words, "%s", dlerror());
    MUST_SAY(words, "undefined symbol: fake_function_that_nobody_has");
    broken(words);
}

static void no_module(void)
{
    broken("file too short");
}

static void unusable_modules(void)
{
    CU_ASSERT(child(fake("stale"), stale) == 0);
    CU_ASSERT(child(fake("foreign"), foreign) == 0);
    CU_ASSERT(child(fake("hidden"), hidden) == 0);
    CU_ASSERT(child(fake("needs"), unresolved) == 0);
    scratch_write("cuda.so", "no", 2);
    CU_ASSERT(child(scratch_folder(), no_module) == 0);
    scratch_clear();
}

static void search_from_trap(void)
{
    MUST(chdir(fake("trap")) == 0);
    sh_backend_find("cuda", &e);
    sh_backend_find("auto", &e);
}

static void current_folder(void)
{
    CU_ASSERT(child(NULL, search_from_trap) == 0);
    CU_ASSERT(child("", search_from_trap) == 0);
    CU_ASSERT(child(".", search_from_trap) == 97);
}

static struct sh_common request(const char *backend, int n_threads, int n, const int *ordinal)
{
    struct sh_common c = {.backend = backend, .threads = n_threads};
    c.device.n = n;
    for (int i = 0; i < n; i++)
        c.device.at[i] = ordinal[i];
    return c;
}

static void several_devices(void)
{
    struct sh_devices d = {0};
    struct sh_common c = request("cuda", 8, 3, (const int[]){2, 0, 1});
    setenv("FAKE_DEVICES", "3", 1);
    MUST(sh_devices_open(&d, &c, 4096, &e) == 0 && d.n == 3 && !strcmp(d.backend->name, "cuda"));
    char *chips = sh_devices_chips(&d);
    MUST(!strcmp(chips, "chip B, 3 threads; chip A, 3 threads; chip A, 2 threads"));
    free(chips);
    struct sh_props p;
    d.backend->props(d.at[2], &p);
    MUST(p.memory_bytes == 4096);
    sh_devices_close(&d);
    MUST(!d.n && !d.at);
    sh_devices_close(&d);

    c = request("auto", 2, 0, NULL);                    /* fewer threads than devices: one each */
    c.device.all = 1;
    MUST(sh_devices_open(&d, &c, 0, &e) == 0 && d.n == 3);
    chips = sh_devices_chips(&d);
    MUST(!strcmp(chips, "2 x chip A, 1 threads; chip B, 1 threads"));
    free(chips);
    sh_devices_close(&d);

    c = request("cuda", 2, 2, (const int[]){0, 3});
    MUST(sh_devices_open(&d, &c, 0, &e) == -1 && e.status == SH_ABSENT);
    MUST_SAY(e.text, "no device 3, found 3 devices");
    setenv("FAKE_BUSY", "1", 1);
    c = request("auto", 2, 2, (const int[]){0, 1});
    MUST(sh_devices_open(&d, &c, 0, &e) == -1 && e.status == SH_ABSENT);
    MUST_SAY(e.text, "device 1 is busy");
}

static void devices_open_together(void)
{
    CU_ASSERT(child(fake("good"), several_devices) == 0);
}

/* What sh_devices_open wrote to stderr. */
static const char *remark(const struct sh_common *c, struct sh_devices *d, int *bad)
{
    static char text[4096];
    char path[4096];
    snprintf(path, sizeof path, "%s", scratch_path("stderr"));
    MUST(freopen(path, "w", stderr) != NULL);
    *bad = sh_devices_open(d, c, 0, &e);
    fflush(stderr);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    MUST(f && fclose(f) == 0);
    return text;
}

static void falls_back(const struct sh_common *asked, const char *said)
{
    struct sh_devices d = {0};
    int bad;
    struct sh_common c = *asked;
    MUST(!strcmp(remark(&c, &d, &bad), said) && !bad && d.n == 1 && !strcmp(d.backend->name, "cpu"));
    char *chips = sh_devices_chips(&d);
    MUST_SAY(chips, "2 threads");
    free(chips);
    sh_devices_close(&d);
    c.quiet = 1;
    MUST(!*remark(&c, &d, &bad) && !bad);
    sh_devices_close(&d);
    c.quiet = 0;
    c.backend = "cuda";
    MUST(!*remark(&c, &d, &bad) && bad && e.status == SH_ABSENT);
    c.backend = "cpu";
    MUST(!*remark(&c, &d, &bad) && !bad);
    sh_devices_close(&d);
}

static void no_chip(void)
{
    static const char said[] =
        "shears: backend cuda: cannot open: no CUDA-capable device is detected; using cpu\n";
    struct sh_common c = request("auto", 2, 1, (const int[]){0});
    struct sh_devices d = {0};
    int bad;
    setenv("FAKE_DEVICES", "0", 1);
    MUST(!*remark(&c, &d, &bad) && !bad);               /* as expected: nothing without --verbose */
    sh_devices_close(&d);
    c.verbose = 1;
    falls_back(&c, said);
    c = request("auto", 2, 0, NULL);
    c.verbose = 1;
    falls_back(&c, said);
    c.device.all = 1;
    falls_back(&c, said);
    c = request("auto", 2, 2, (const int[]){0, 1});     /* the CPU has no second device */
    MUST(!*remark(&c, &d, &bad) && bad && e.status == SH_ABSENT);
    MUST_SAY(e.text, "no CUDA-capable device is detected");
    c.backend = "cpu";
    MUST(!*remark(&c, &d, &bad) && bad && e.status == SH_MISUSED);
}

static void not_built_is_silent(void)
{
    struct sh_common c = request("auto", 2, 0, NULL);
    struct sh_devices d = {0};
    int bad;
    falls_back(&c, "");
    c.verbose = 1;
    MUST_SAY(remark(&c, &d, &bad), "shears: backend cuda: not built: there is no cuda.so in ");
    MUST(!bad);
    sh_devices_close(&d);
}

static void auto_falls_back(void)
{
    CU_ASSERT(child(fake("good"), no_chip) == 0);
    scratch_clear();
    CU_ASSERT(child(scratch_folder(), not_built_is_silent) == 0);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"cpu: is there, and nothing is loaded for it", cpu_loads_nothing},
        {"module: found, loaded once, what auto means", a_module_is_found},
        {"module: none is built", none_is_built},
        {"module: other interface, other backend, no symbol, unresolved symbol, no module", unusable_modules},
        {"module: the current folder is not searched", current_folder},
        {"devices: several share the threads; one that fails closes the others", devices_open_together},
        {"devices: auto falls back and says why, a named backend does not", auto_falls_back},
        {0}};
    unmet = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (unmet == MAP_FAILED)
        return 99;
    scratch_folder();                   /* before there are children: it goes with the program */
    return tap_run("load", tests);
}
