/* SPDX-License-Identifier: Apache-2.0 */
/* A tile of attention: some consecutive queries of one sequence, all heads, against the keys that any
 * of them sees. What attend.cu makes, tile.cu finishes, and tile.cu and sets.cu read. */
#ifndef SH_KERNELS_CUDA_TILE_CUH
#define SH_KERNELS_CUDA_TILE_CUH

#include "kernels/backend.h"
#include "kernels/cuda/device.cuh"

struct cuda_tile {
    float *s;                           /* [n_head][n_rows][width]: scores before softmax          */
    float *p;                           /* the same shape: probabilities, 0 for keys not seen; NULL: not wanted */
    float *top, *sum;                   /* [n_head][n_rows]: of each row, largest and sum of exp   */
    int n_head, n_rows, width;          /* width: keys, rounded up                                 */
    int first_row, first_key;           /* position of row 0 and of column 0                       */
    int window, chunk;                  /* 0: none                                                 */
};

struct cuda_bends {                     /* of scores before softmax; as struct sh_attend            */
    float softcap, scale;
    const float *slopes, *sinks;        /* device, [n_head] or NULL                                 */
    float *mass;                        /* of the tile's first row: [n_rows, n_head]; NULL: not wanted */
    int rounds_slopes;
};

/* The first key that the query at `row` sees. */
static __host__ __device__ __forceinline__ int tile_first_key(int row, int window)
{
    return window > 0 && row + 1 > window ? row + 1 - window : 0;
}

/* Scores of the rows 0 .. row - 1. */
static __host__ __device__ __forceinline__ size_t tile_scores_before(int row, int window)
{
    size_t t = (size_t)row, w = (size_t)window;
    return window > 0 && t > w ? w * (w + 1) / 2 + (t - w) * w : t * (t + 1) / 2;
}

static __host__ __device__ __forceinline__ size_t tile_scores(const struct cuda_tile &t)
{
    return tile_scores_before(t.first_row + t.n_rows, t.window) - tile_scores_before(t.first_row, t.window);
}

/* Where a row's visible scores begin in s or p, and where its packed ones do among those of all heads. */
static __device__ __forceinline__ size_t tile_row(const struct cuda_tile &t, int head, int row)
{
    int column = tile_first_key(t.first_row + row, t.window) - t.first_key;
    return ((size_t)head * (size_t)t.n_rows + (size_t)row) * (size_t)t.width + (size_t)column;
}

static __device__ __forceinline__ size_t tile_packed_row(const struct cuda_tile &t, int head, int row)
{
    return (size_t)head * tile_scores(t) + tile_scores_before(t.first_row + row, t.window) -
           tile_scores_before(t.first_row, t.window);
}

/* The probability of a score s of a row, in the form that is recorded. */
static __device__ __forceinline__ float tile_probability(float s, float top, float inverse)
{
    return __fmul_rn(expf(s - top), inverse);
}

/* tile.cu: cap and slopes are applied to s in place; then top, sum and p. `fault` gets `blame` when
 * some row's sum is not a number. */
void cuda_softmax(const struct cuda_tile *t, const struct cuda_bends *bends, int *fault, int blame,
                  cudaStream_t stream);

/* The rows of all heads, one head after another, each as sh_tap wants them. */
void cuda_pack(const struct cuda_tile *t, enum sh_pack pack, void *out, cudaStream_t stream);

struct cuda_sets {                      /* of all rows of a tile; row i of head h is h * n_rows + i */
    struct sh_row_figures *figures;
    uint64_t *bits;                     /* [rows][lanes + 1][n_word]                               */
    uint32_t *n_value;                  /* [rows + 1], with `value`: scores not low in rows before; the last: in all */
    float *value;                       /* NULL: not wanted                                        */
    int first_word, n_word;
};

/* sets.cu: turns s into probabilities. */
void cuda_sets(const struct cuda_tile *t, const struct sh_lanes *lanes, const struct cuda_sets *out,
               cudaStream_t stream);

#endif
