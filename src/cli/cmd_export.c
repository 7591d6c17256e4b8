/* SPDX-License-Identifier: Apache-2.0 */
/* shears export: the scores of one head as a file for other programs. */
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "traces/codec.h"
#include "traces/store.h"

struct export_args {
    const char *db, *out;
    long long sequence, layer, head;
};

#define F(name) offsetof(struct export_args, name)
static const struct sh_opt opts[] = {
    SH_STORE_OPT(F(db)),
    SH_INT("sequence", F(sequence), "S", 0, 1e9, "sequence, from 0 in recording order"),
    SH_INT("layer", F(layer), "L", 0, 1e9, "layer, from 0"),
    SH_INT("head", F(head), "H", 0, 1e9, "query head, from 0"),
    {"output", SH_OPT_TEXT, F(out), "FILE", "FILE.npy, FILE.tsv or FILE.safetensors", 0, 0, 'o'},
    {0}};

static const struct export_args defaults = {.sequence = -1, .layer = -1, .head = -1};

struct matrix {
    float *at;                          /* [n, keys], zeros where masked or not stored */
    int n, keys, rows, causal;
};

static int take_row(void *to, const struct sh_row *r)
{
    struct matrix *m = to;
    if (r->q >= m->n || r->first_key + r->n > m->keys)
        return 1;
    float *row = m->at + (size_t)r->q * (size_t)m->keys;
    if (r->sparse)
        for (int i = 0; i < r->n_stored; i++)
            row[r->key[i]] = r->score[i];
    else
        memcpy(row + r->first_key, r->score, (size_t)r->n * sizeof *row);
    m->rows++;
    return 0;
}

/* The first block says how many keys there are. */
static int make_room(struct matrix *m, const struct sh_block *b, struct sh_err *e)
{
    m->causal = b->window >= 0;
    m->keys = m->causal ? m->n : sh_row_keys(0, b->window);
    m->at = m->keys > 0 ? calloc((size_t)m->n * (size_t)m->keys, sizeof *m->at) : NULL;
    return m->at ? 0 : sh_fail(e, "not enough memory for a matrix of %d x %d scores", m->n, m->keys);
}

static int take_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct matrix *m = to;
    if (!m->at && make_room(m, b, e))
        return -1;
    return sh_codec_rows_any(b, take_row, to, e);
}

static void write_npy(const struct matrix *m, FILE *f)
{
    char header[128];
    int n = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", m->n,
                     m->keys);
    int padded = (10 + n + 1 + 63) / 64 * 64 - 10;
    unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 255),
                               (unsigned char)(padded >> 8)};
    fwrite(magic, 1, sizeof magic, f);
    fprintf(f, "%s%*s\n", header, padded - n - 1, "");
    fwrite(m->at, sizeof(float), (size_t)m->n * (size_t)m->keys, f);
}

static void write_safetensors(const struct matrix *m, FILE *f)
{
    char header[160];
    size_t bytes = (size_t)m->n * (size_t)m->keys * sizeof(float);
    int n = snprintf(header, sizeof header,
                     "{\"attention\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]}}", m->n,
                     m->keys, bytes);
    uint64_t length = (uint64_t)((n + 7) / 8 * 8);
    fwrite(&length, 8, 1, f);
    fprintf(f, "%s%*s", header, (int)length - n, "");
    fwrite(m->at, 1, bytes, f);
}

static void write_tsv(const struct matrix *m, FILE *f)
{
    fputs("query\tkey\tscore\n", f);
    for (int q = 0; q < m->n; q++)
        for (int k = 0; k < (m->causal ? q + 1 : m->keys); k++)
            fprintf(f, "%d\t%d\t%.9g\n", q, k, (double)m->at[(size_t)q * (size_t)m->keys + (size_t)k]);
}

static const struct { const char *ending; void (*write)(const struct matrix *, FILE *); } formats[] = {
    {".npy", write_npy}, {".tsv", write_tsv}, {".safetensors", write_safetensors}};

static void (*format_of(const char *path))(const struct matrix *, FILE *)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t k = strlen(formats[i].ending);
        if (n > k && !strcmp(path + n - k, formats[i].ending))
            return formats[i].write;
    }
    return NULL;
}

static int write_file(const char *path, const struct matrix *m, struct sh_err *e)
{
    struct sh_file *f = sh_file_begin(path, e);
    if (!f)
        return -1;
    format_of(path)(m, sh_file_stream(f));
    return sh_file_end(f, 0, e);
}

static int load(struct sh_store *s, const struct export_args *a, struct matrix *m, struct sh_err *e)
{
    int32_t *tokens;
    if (sh_store_tokens(s, (int)a->sequence, &tokens, &m->n, e))
        return -1;
    free(tokens);
    if (sh_store_blocks(s, SH_BLOCK_SCORES, (int)a->sequence, (int)a->layer, (int)a->head, take_block, m, e))
        return sh_err_prefix(e, "%s: sequence %lld, layer %lld, head %lld", a->db, a->sequence, a->layer, a->head);
    if (m->rows != m->n)
        return sh_fail(e, "%s: sequence %lld: no scores of layer %lld, head %lld (found %d rows of %d)", a->db,
                       a->sequence, a->layer, a->head, m->rows, m->n),
               sh_hint(e, "shears info %s shows what was recorded", a->db);
    return 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct export_args *a = args;
    (void)common;
    const struct sh_need needs[] = {{"--db FILE", a->db != NULL}, {"--sequence S", a->sequence >= 0},
                                    {"--layer L", a->layer >= 0}, {"--head H", a->head >= 0},
                                    {"-o FILE", a->out != NULL}, {0}};
    if (sh_args_none("export", positional, e) || sh_args_need("export", needs, e) ||
        sh_output_differs("-o", a->out, a->db, e))
        return -1;
    if (!format_of(a->out))
        return sh_misused(e, "-o %s: expected a name ending in .npy, .tsv or .safetensors", a->out);
    struct matrix m = {0};
    struct sh_store *s = sh_store_open(a->db, e);
    int bad = !s || load(s, a, &m, e) || write_file(a->out, &m, e);
    sh_store_close(s);
    free(m.at);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_export = {
    .name = "export",
    .usage = "--db FILE --sequence S --layer L --head H -o FILE.{npy,tsv,safetensors}",
    .summary = "write the attention scores of one head to a file",
    .about = "npy and safetensors hold float32 [T, T], query by key, with zeros where masked and where a sparse trace\n"
             "stored nothing. tsv has one line per visible pair. Imported cross-attention is [T, keys].\n\n"
             "  shears export --db traces.db --sequence 0 --layer 3 --head 5 -o head.npy",
    .opts = opts, .args_bytes = sizeof(struct export_args), .defaults = &defaults, .run = run};
