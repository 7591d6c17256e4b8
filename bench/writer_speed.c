/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of a full trace by itself: no model. Batches of random blobs, as many as a layer has heads, go through the
 * same calls as those of a trace, and the clock stops when the store is closed and on the disk. Prints a JSON object.
 *
 *     writer_speed FILE BYTES [HEADS [BLOCK]]
 *
 * FILE must not be there; BYTES: of all blobs; HEADS: blobs of a (sequence, layer) (32); BLOCK: bytes of each
 * (1000000, about what zstd leaves of a block of 1 MiB of log8 codes). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "traces/store.h"
#include "traces/writer.h"

enum { POOL = 64 << 20, LAYERS = 32, STEP = 4099, QUEUE = 256 << 20 };

struct bench {
    const char *path;
    size_t bytes, block;
    int heads, n_batch;
    unsigned char *pool;                /* random: POOL + block bytes */
    double seconds, cpu_s;
};

static int fill_pool(struct bench *b, struct sh_err *e)
{
    size_t n = POOL + b->block, at = 0;
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    b->pool = xmalloc(n);
    while (fd >= 0 && at < n) {
        ssize_t got = read(fd, b->pool + at, n - at);
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    return at < n ? sh_fail(e, "/dev/urandom cannot be read") : 0;
}

static struct sh_batch batch(const struct bench *b, int number)
{
    struct sh_batch out = {.sequence = number / LAYERS, .layer = number % LAYERS};
    for (int i = 0; i < b->heads; i++) {
        struct sh_block block = {.kind = SH_BLOCK_SCORES, .head = i, .n_rows = 1024, .codec = SH_CODEC_LOG8,
                                 .blob = xmalloc(b->block), .bytes = b->block};
        size_t at = ((size_t)number * (size_t)b->heads + (size_t)i) * (b->block + STEP) % POOL;
        memcpy(block.blob, b->pool + at, b->block);
        sh_batch_add(&out, block);
    }
    return out;
}

static int begin(struct bench *b, struct sh_store *s, struct sh_err *e)
{
    static int32_t token[1];
    static char source[] = "random";
    const struct sh_trace_run run = {
        .model = {.name = "none", .family = "opt", .weights = "random:0", .n_layer = LAYERS, .n_head = b->heads,
                  .n_kv_head = b->heads, .d_head = 128, .d_model = 128 * b->heads, .n_vocab = 2, .max_pos = 2048},
        .program = "writer_speed", .backend = "none", .device = "none", .dtype = "f16", .weight_bits = 16,
        .vectors = "", .statistics = "{}", .command = "writer_speed", .record = SH_RECORD_FULL,
        .codec = SH_CODEC_LOG8, .last_layer = LAYERS - 1};
    int n = (b->n_batch + LAYERS - 1) / LAYERS;
    struct sh_trace_sequence *sequence = xcalloc((size_t)n, sizeof *sequence);
    unsigned char *done = xcalloc((size_t)n * LAYERS, 1);
    for (int i = 0; i < n; i++)
        sequence[i] = (struct sh_trace_sequence){.source = source, .n_tokens = 1, .tokens = token};
    int id = sh_store_begin(s, &run, "writer_speed", sequence, n, done, e);
    free(sequence);
    free(done);
    return id;
}

static int write_all(struct bench *b, struct sh_store *s, struct sh_err *e)
{
    int id = begin(b, s, e), bad = id < 0;
    struct sh_writer *w = bad ? NULL : sh_writer_begin(s, id, QUEUE, e);
    for (int i = 0; w && i < b->n_batch && !bad; i++) {
        struct sh_batch next = batch(b, i);
        bad = sh_writer_push(w, &next, e);
    }
    return !w || sh_writer_end(w, e) || bad ? -1 : 0;
}

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int run(struct bench *b, struct sh_err *e)
{
    struct sh_store *s = sh_store_create(b->path, e);
    double cpu = cpu_s(), began = sh_now_s();
    int bad = !s || write_all(b, s, e);
    sh_store_close(s);
    int fd = open(b->path, O_RDONLY | O_CLOEXEC);
    if (!bad && (fd < 0 || fsync(fd)))
        bad = sh_fail(e, "%s: cannot be synchronised", b->path);
    b->seconds = sh_now_s() - began;
    b->cpu_s = cpu_s() - cpu;
    if (fd >= 0)
        close(fd);
    return bad;
}

int main(int argc, char **argv)
{
    struct bench b = {.heads = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 32,
                      .block = argc > 4 ? strtoul(argv[4], NULL, 10) : 1000000};
    struct sh_err e;
    if (argc < 3 || b.heads < 1 || !b.block || access(argv[1], F_OK) == 0) {
        fprintf(stderr, "writer_speed FILE BYTES [HEADS [BLOCK]], and no FILE is there\n");
        return 2;
    }
    b.path = argv[1];
    size_t layer = (size_t)b.heads * b.block;
    b.n_batch = (int)((strtoull(argv[2], NULL, 10) + layer - 1) / layer);
    b.bytes = (size_t)b.n_batch * layer;
    if (fill_pool(&b, &e) || run(&b, &e)) {
        fprintf(stderr, "writer_speed: %s\n", e.text);
        return 1;
    }
    free(b.pool);
    printf("{\"bytes\": %zu, \"heads\": %d, \"block\": %zu, \"seconds\": %.4f, \"cpu_s\": %.4f,"
           " \"bytes_per_s\": %.0f}\n", b.bytes, b.heads, b.block, b.seconds, b.cpu_s, (double)b.bytes / b.seconds);
    return 0;
}
