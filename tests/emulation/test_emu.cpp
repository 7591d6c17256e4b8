/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation itself: what is right runs and gives the right numbers, and each kind of mistake ends the
 * program with its sentence. Faulty kernels run in a child. TAP. */
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 96, N = 1000 };

static int n_test;
static cudaStream_t stream, other;

static void report(bool good, const char *name)
{
    std::printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_test, name);
    std::fflush(stdout);
}

/* What `run` says on stderr when it aborts; "" when it does not. */
static std::string dying_words(const std::function<void()> &run)
{
    int pipes[2], status;
    if (pipe(pipes))
        return "no pipe";
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], 2);
        close(pipes[0]);
        run();
        _exit(0);
    }
    close(pipes[1]);
    std::string said;
    char part[512];
    for (ssize_t n; (n = read(pipes[0], part, sizeof part)) > 0;)
        said.append(part, (size_t)n);
    close(pipes[0]);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? said : "";
}

static void dies(const char *name, const char *words, const std::function<void()> &run)
{
    std::string said = dying_words(run);
    bool good = said.find("emu: ") != std::string::npos && said.find(words) != std::string::npos;
    report(good, name);
    if (!good)
        std::printf("# expected \"%s\", found \"%s\"\n", words, said.c_str());
}

template <typename T> static T *device_new(size_t n)
{
    void *at = nullptr;
    if (cudaMalloc(&at, n * sizeof(T)) != cudaSuccess)
        std::abort();
    return (T *)at;
}

template <typename T> static void get(T *to, const T *from, size_t n)
{
    cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToHost, stream);
}

/* ---- kernels that are right ---- */

__global__ void sum_blocks(const int *x, int *sums, int n)
{
    SH_SHARED(int, part, THREADS / 32);
    int i = (int)(blockIdx.x * THREADS + threadIdx.x), own = i < n ? x[i] : 0;
    for (int step = 16; step; step /= 2)
        own += __shfl_xor_sync(0xffffffffu, own, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0] + part[1] + part[2];
}

__global__ void scan_warp(int *x, unsigned *votes)
{
    int lane = (int)threadIdx.x, sum = x[lane];
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? before : 0;
    }
    x[lane] = sum;
    unsigned vote = __ballot_sync(0xffffffffu, sum % 2);
    if (lane == 0)
        *votes = vote;
}

__global__ void count_bins(const int *x, unsigned *out, int n)
{
    SH_SHARED(unsigned, bins, 8);
    for (int i = (int)threadIdx.x; i < 8; i += THREADS)
        bins[i] = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        atomicAdd(&bins[x[i] % 8], 1u);
    __syncthreads();
    if (threadIdx.x < 8)
        out[threadIdx.x] = bins[threadIdx.x];
}

__global__ void add_one(int *x, int n)
{
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        x[i]++;
}

static void right_kernels()
{
    static int x[N], sums[(N + THREADS - 1) / THREADS];
    unsigned bins[8], votes, expected_bins[8] = {};
    int *there = device_new<int>(N), *there_sums = device_new<int>(16);
    unsigned *there_bins = device_new<unsigned>(8);
    bool good = true;
    for (int i = 0; i < N; i++) {
        x[i] = i * i % 101;
        expected_bins[x[i] % 8]++;
    }
    cudaMemcpyAsync(there, x, sizeof x, cudaMemcpyHostToDevice, stream);
    SH_LAUNCH(sum_blocks, dim3(11), dim3(THREADS), stream, there, there_sums, (int)N);
    get(sums, there_sums, 11);
    for (int b = 0; b < 11; b++) {
        int expected = 0;
        for (int i = b * THREADS; i < (b + 1) * THREADS && i < N; i++)
            expected += x[i];
        good = good && sums[b] == expected;
    }
    report(good, "shuffles, barriers, shared memory: a sum by blocks");
    SH_LAUNCH(count_bins, dim3(1), dim3(THREADS), stream, there, there_bins, (int)N);
    get(bins, there_bins, 8);
    report(!std::memcmp(bins, expected_bins, sizeof bins), "atomics on shared memory: a histogram");
    SH_LAUNCH(scan_warp, dim3(1), dim3(32), stream, there, there_bins);
    get(sums, there, 11);
    get(&votes, there_bins, 1);
    unsigned expected_votes = 0;
    for (int i = 0, sum = 0; i < 32; i++) {
        sum += x[i];
        expected_votes |= (unsigned)(sum % 2) << i;
        good = good && (i >= 11 || sums[i] == sum);
    }
    report(good && votes == expected_votes, "shuffles and votes of a warp: a running sum");
    cudaFree(there);
    cudaFree(there_sums);
    cudaFree(there_bins);
}

/* ---- kernels that are wrong ---- */

__global__ void past_the_end(int *x)
{
    SH_SHARED(int, part, 4);
    part[threadIdx.x] = 1;
    __syncthreads();
    x[0] = part[0];
}

__global__ void never_written(int *x)
{
    SH_SHARED(int, part, THREADS);
    if (threadIdx.x != 5)
        part[threadIdx.x] = 1;
    __syncthreads();
    x[0] = part[threadIdx.x];
}

__global__ void no_barrier(int *x)
{
    SH_SHARED(int, part, THREADS);
    part[threadIdx.x] = 1;
    x[0] = part[threadIdx.x ? threadIdx.x - 1 : 0];
}

__global__ void overwritten(int *x)
{
    SH_SHARED(int, part, 1);
    if (threadIdx.x == 0)
        part[0] = 1;
    __syncthreads();
    x[threadIdx.x] = part[0];
    if (threadIdx.x == 0)
        part[0] = 2;
}

__global__ void not_all_reach(int *x)
{
    if (threadIdx.x < 40)
        __syncthreads();
    x[0] = 1;
}

__global__ void lane_is_missing(int *x)
{
    if (threadIdx.x != 3)
        x[0] = __shfl_sync(0xffffffffu, 1, 0);
}

__global__ void writes(int *x, int at)
{
    x[at] = 1;
}

static void wrong_kernels()
{
    struct { const char *name, *words; void (*kernel)(int *); } const all[] = {
        {"shared memory past its end", "part[4]: is past its end", past_the_end},
        {"shared memory that nobody wrote", "part[5]: is read before", never_written},
        {"shared memory read without a barrier", "a barrier is missing", no_barrier},
        {"shared memory overwritten without a barrier", "a barrier is missing", overwritten},
        {"a barrier that not all reach", "waits for ever", not_all_reach},
        {"a shuffle with a lane missing", "waits for ever", lane_is_missing},
    };
    int *x = device_new<int>(THREADS);
    for (auto &k : all)
        dies(k.name, k.words, [&] {
            SH_LAUNCH((k.kernel), dim3(1), dim3(THREADS), stream, x);
            cudaStreamSynchronize(stream);
        });
#ifndef __SANITIZE_ADDRESS__                            /* which finds it first, in words of its own */
    dies("device memory past its end", "outside an allocation", [&] {
        SH_LAUNCH(writes, dim3(1), dim3(1), stream, x, (int)THREADS);
        cudaFree(x);
    });
#endif
    int here;
    dies("a kernel with a pointer to the host's memory", "argument 0", [&] {
        SH_LAUNCH(writes, dim3(1), dim3(1), stream, &here, 0);
    });
    dies("a copy past the end of device memory", "not the device's", [&] {
        int much[THREADS + 1];
        cudaMemcpyAsync(much, x, sizeof much, cudaMemcpyDeviceToHost, stream);
    });
    cudaFree(x);
}

/* ---- streams ---- */

/* What arrives on the host when one stream changes memory and another fetches it. */
static int fetched(bool with_wait)
{
    int *there = device_new<int>(1), zero = 0, *here, found;
    void *pinned;
    cudaEvent_t changed;
    cudaHostAlloc(&pinned, sizeof *here, cudaHostAllocDefault);
    here = (int *)pinned;
    cudaEventCreateWithFlags(&changed, cudaEventDisableTiming);
    cudaMemcpyAsync(there, &zero, sizeof zero, cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    SH_LAUNCH(add_one, dim3(1), dim3(THREADS), stream, there, 1);
    cudaEventRecord(changed, stream);
    if (with_wait)
        cudaStreamWaitEvent(other, changed, 0);
    cudaMemcpyAsync(here, there, sizeof *here, cudaMemcpyDeviceToHost, other);
    cudaStreamSynchronize(other);
    found = *here;
    cudaEventDestroy(changed);
    cudaFreeHost(pinned);
    cudaFree(there);
    return found;
}

static void streams_are_late()
{
    report(fetched(true) == 1, "a stream that waits for another's event sees its work");
    report(fetched(false) == 0, "a stream that does not wait sees none of it");
    int *there = device_new<int>(1), *here, found;
    void *pinned;
    cudaHostAlloc(&pinned, sizeof *here, cudaHostAllocDefault);
    here = (int *)pinned;
    *here = 1;
    cudaMemcpyAsync(there, here, sizeof *here, cudaMemcpyHostToDevice, stream);
    *here = 2;
    get(&found, there, 1);
    report(found == 2, "pinned memory is read when the copy's turn comes");
    int pageable = 3;
    cudaMemcpyAsync(there, &pageable, sizeof pageable, cudaMemcpyHostToDevice, stream);
    pageable = 4;
    get(&found, there, 1);
    report(found == 3, "pageable memory is read at once");
    cudaFreeHost(pinned);
    cudaFree(there);
}

/* ---- cuBLAS ---- */

static void products()
{
    /* column-major [2, 3] [3, 2]: (1 2 3; 4 5 6) (1 0; 0 1; 2 -1) = (7 -1; 16 -1) */
    const float a[] = {1, 4, 2, 5, 3, 6}, b[] = {1, 0, 2, 0, 1, -1}, one = 1, zero = 0;
    float c[4];
    float *there = device_new<float>(16);
    cublasHandle_t blas;
    cublasCreate(&blas);
    cublasSetStream(blas, stream);
    cudaMemcpyAsync(there, a, sizeof a, cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(there + 6, b, sizeof b, cudaMemcpyHostToDevice, stream);
    cublasStatus_t status = cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &one, there, CUDA_R_32F, 2, there + 6,
                                         CUDA_R_32F, 3, &zero, there + 12, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                                         CUBLAS_GEMM_DEFAULT);
    get(c, there + 12, 4);
    report(status == CUBLAS_STATUS_SUCCESS && c[0] == 7 && c[1] == 16 && c[2] == -1 && c[3] == -1,
           "a product by its definition");
    status = cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &one, there, CUDA_R_32F, 1, there + 6, CUDA_R_32F, 3,
                          &zero, there + 12, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    report(status == CUBLAS_STATUS_INVALID_VALUE, "a leading dimension that is too small is refused");
    cublasDestroy(blas);
    cudaFree(there);
}

int main()
{
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    right_kernels();
    wrong_kernels();
    streams_are_late();
    products();
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other);
    std::printf("1..%d\n", n_test);
    return 0;
}
