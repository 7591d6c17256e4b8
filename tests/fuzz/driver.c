/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one fuzz target without libFuzzer: every file of its corpus, then seeded mutations of them, for
 * at most SECONDS. The mutations are the same in every run. TAP on stdout. When the target crashes, hangs
 * or ends the program, the input is left in fuzz_<target>.input. Built and started by AFL++, it does what that
 * says (long.sh).
 *
 *     fuzz_dense [FILE...]             only these inputs
 *     SH_FUZZ_RUNS=1000000 fuzz_dense  so many mutations, however long they take
 *     SH_FUZZ_SEED=7 fuzz_dense        other mutations */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/fuzz/afl.h"
#include "tests/fuzz/fuzz.h"

enum { RUNS = 4000, SECONDS = 3, PATIENCE_SECONDS = 30, MOST_SEEDS = 256, MOST_BYTES = 1 << 16 };

struct input {
    char *name;
    size_t n;
    unsigned char at[MOST_BYTES];
};

static struct input *seeds[MOST_SEEDS], now;
static int n_seed, finished;
static const char *target;
static uint64_t seed, drawn;

/* ---- when it goes wrong ---- */

static void keep_input(void)
{
    char path[300];
    if (finished)
        return;
    snprintf(path, sizeof path, "%s.input", target);
    FILE *f = fopen(path, "wb");
    if (f) {
        fwrite(now.at, 1, now.n, f);
        fclose(f);
    }
    finished = 1;
    printf("not ok - ended by %s; it is in %s\n", now.name, path);
    fflush(stdout);
}

static void on_signal(int number)
{
    keep_input();
    signal(number, SIG_DFL);
    raise(number);
}

/* Of the address sanitizer, when the program is linked with it. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch(void)
{
    static const int signals[] = {SIGABRT, SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGILL};   /* two are ours alone */
    int mine = __sanitizer_set_death_callback ? 2 : sizeof signals / sizeof *signals;
    atexit(keep_input);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(keep_input);
    for (int i = 0; i < mine; i++)
        signal(signals[i], on_signal);
}

/* ---- inputs ---- */

static int load(struct input *to, const char *path)
{
    const char *slash = strrchr(path, '/');
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    to->n = fread(to->at, 1, MOST_BYTES, f);
    free(to->name);
    to->name = xstrdup(slash ? slash + 1 : path);
    return fclose(f);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct input *const *)a)->name, (*(struct input *const *)b)->name);
}

static void load_corpus(void)
{
    const char *top = getenv("SH_TOP");
    char *folder = xasprintf("%s/tests/fuzz/corpus/%s", top && *top ? top : ".", target + strlen("fuzz_"));
    DIR *d = opendir(folder);
    for (struct dirent *f; d && n_seed < MOST_SEEDS && (f = readdir(d)) != NULL;) {
        char *path = xasprintf("%s/%s", folder, f->d_name);
        struct input *s = xcalloc(1, sizeof *s);
        if (f->d_name[0] != '.' && !load(s, path))
            seeds[n_seed++] = s;
        else
            free(s);
        free(path);
    }
    if (d)
        closedir(d);
    qsort(seeds, (size_t)n_seed, sizeof *seeds, by_name);
    if (!n_seed)
        printf("Bail out! no corpus in %s\n", folder);
    free(folder);
}

/* ---- mutations ---- */

static size_t draw(size_t below)
{
    return below ? (size_t)(sh_rng(seed, drawn++) % below) : 0;
}

/* Replace [at, at + old) by `n` bytes; what does not fit is cut off. */
static void splice(size_t at, size_t old, const void *with, size_t n)
{
    static unsigned char rest[MOST_BYTES];
    size_t behind = now.n - at - old;
    memcpy(rest, now.at + at + old, behind);
    n = n < MOST_BYTES - at ? n : MOST_BYTES - at;
    memcpy(now.at + at, with, n);
    behind = behind < MOST_BYTES - at - n ? behind : MOST_BYTES - at - n;
    memcpy(now.at + at + n, rest, behind);
    now.n = at + n + behind;
}

static void put_number(size_t at)
{
    static const uint64_t number[] = {0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff,
                                      0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
                                      0xffffffffffffffff};
    size_t width = (size_t)1 << draw(4), left = now.n - at;
    memcpy(now.at + at, &number[draw(sizeof number / sizeof *number)], width < left ? width : left);
}

static void put_word(size_t at)
{
    static const char *const word[] = {
        "\"", "{", "}", "[", "]", ",", ":", "{}", "[]", "null", "true", "-1", "0", "1e999", "0.5", "4294967296",
        "9223372036854775807", "18446744073709551616", "\"\"", "\\u0000", "\\ud800", "\xff", "\xc3", "\n", " ", "(",
        "*", "\\p{L}", "(?=", "[^"};
    const char *w = word[draw(sizeof word / sizeof *word)];
    splice(at, draw(3) ? 0 : draw(now.n - at < 8 ? now.n - at + 1 : 8), w, strlen(w));
}

static void change(void)
{
    static unsigned char piece[MOST_BYTES];
    size_t at = draw(now.n), most = now.n - at, n = 1 + draw(most < 16 ? most : 16), from;
    const struct input *other = seeds[draw((size_t)n_seed)];
    if (!now.n)
        return;
    switch (draw(9)) {
    case 0: now.at[at] ^= (unsigned char)(1 << draw(8)); break;
    case 1: now.at[at] = (unsigned char)draw(256); break;
    case 2: put_number(at); break;
    case 3: put_word(at); break;
    case 4: splice(at, n <= most ? n : most, "", 0); break;
    case 5:                                             /* the same once more                     */
        n = n <= most ? n : most;
        memcpy(piece, now.at + at, n);
        splice(at, 0, piece, n);
        break;
    case 6: now.n = draw(8) ? now.n : at; break;
    case 7:                                             /* a piece of another seed                */
        from = draw(other->n);
        n = draw(other->n - from < 64 ? other->n - from : 64);
        splice(at, draw(2) && n <= most ? n : 0, other->at + from, n);
        break;
    default:                                            /* the next digit                         */
        for (size_t i = at; i < now.n; i++)
            if (now.at[i] >= '0' && now.at[i] <= '9') {
                now.at[i] = (unsigned char)('0' + draw(10));
                break;
            }
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void set_now(const char *name, const struct input *from)
{
    free(now.name);
    now.name = xstrdup(name);
    now.n = from->n;
    memcpy(now.at, from->at, from->n);
}

/* One input that takes longer is a fault; in processor time, which stands still when the machine is busy. */
static void be_patient(int seconds)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

static void try_now(void)
{
    be_patient(PATIENCE_SECONDS);
    LLVMFuzzerTestOneInput(now.at, now.n);
    be_patient(0);
}

static void run_seeds(void)
{
    int refused = 0;
    for (int i = 0; i < n_seed; i++) {
        int before = fuzz_accepted;
        set_now(seeds[i]->name, seeds[i]);
        try_now();
        if (!strncmp(now.name, "ok", 2) && fuzz_accepted == before) {
            printf("# %s was not accepted\n", now.name);
            refused++;
        }
    }
    printf("%s 1 - %s: %d seeds\n", refused ? "not ok" : "ok", target, n_seed);
}

static void run_mutations(void)
{
    const char *asked = getenv("SH_FUZZ_RUNS");
    long runs = asked && *asked ? strtol(asked, NULL, 10) : RUNS, done = 0;
    double end = seconds() + SECONDS;
    int before = fuzz_accepted;
    for (; done < runs && ((asked && *asked) || seconds() < end); done++) {
        char name[96];
        const struct input *s = seeds[draw((size_t)n_seed)];
        snprintf(name, sizeof name, "mutation %ld of %.40s", done, s->name);
        set_now(name, s);
        for (size_t i = 1 + draw(4); i > 0; i--)
            change();
        try_now();
    }
    printf("ok 2 - %s: seeded mutations\n# %ld mutations, %d of them accepted\n", target, done, fuzz_accepted - before);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *other = getenv("SH_FUZZ_SEED");
    if (fuzz_afl())
        return 0;
    target = slash ? slash + 1 : argv[0];
    seed = other && *other ? strtoull(other, NULL, 10) : 1;
    watch();
    for (int i = 1; i < argc; i++) {
        if (load(&now, argv[i]))
            perror(argv[i]);
        else
            try_now();
    }
    if (argc == 1) {
        printf("1..2\n");
        load_corpus();
        if (n_seed) {
            run_seeds();
            run_mutations();
        }
    }
    finished = 1;
    for (int i = 0; i < n_seed; i++) {
        free(seeds[i]->name);
        free(seeds[i]);
    }
    free(now.name);
    return argc == 1 && !n_seed;
}
