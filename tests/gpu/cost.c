/* What hooks cost in one process: how long installing them takes, idle and
 * with 64 busy threads, and what they add to a call.
 *
 *   cost none
 *   cost ours LIBUCM_CUDA
 *   cost ucx DIRECTORY-OF-LIBUCS
 *
 * Linked with libcuda and a shared libcudart. UCX_MEM_CUDA_HOOK_MODE chooses
 * the mechanisms for both. Prints `KEY VALUE` lines; times in nanoseconds. */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static atomic_long events;
static atomic_int stop;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *need(void *p, const char *what)
{
    if (p == NULL) {
        fprintf(stderr, "%s: %s\n", what, dlerror());
        exit(1);
    }
    return p;
}

static void on_event(const void *event, void *argument)
{
    (void)event, (void)argument;
    atomic_fetch_add(&events, 1);
}

static void on_ucm_event(int type, void *event, void *argument)
{
    (void)type, (void)event, (void)argument;
    atomic_fetch_add(&events, 1);
}

static void install(const char *who, const char *where)
{
    char path[4096];
    double begin;
    if (!strcmp(who, "ours")) {
        begin = now();
        void *lib = need(dlopen(where, RTLD_NOW), "dlopen");
        printf("load_ns %.0f\n", now() - begin);
        int (*go)(void) = need(dlsym(lib, "hook_runtime_install"), "dlsym");
        unsigned long (*subscribe)(int, void *, void *) =
            need(dlsym(lib, "hook_runtime_subscribe"), "dlsym");
        subscribe(0, (void *)on_event, NULL);
        begin = now();
        int result = go();
        printf("install_ns %.0f\n", now() - begin);
        if (result != 0)
            fprintf(stderr, "install: %d\n", result);
        size_t (*coverage)(char *, size_t) = dlsym(lib, "hook_runtime_coverage");
        static char text[65536];
        if (coverage != NULL && getenv("SHOW_COVERAGE") != NULL) {
            coverage(text, sizeof text);
            fprintf(stderr, "%s\n", text);
        }
    } else if (!strcmp(who, "ucx")) {
        snprintf(path, sizeof path, "%s/libucs.so.0", where);
        need(dlopen(path, RTLD_NOW | RTLD_GLOBAL), "libucs");
        snprintf(path, sizeof path, "%s/libucm.so.0", where);
        void *lib = need(dlopen(path, RTLD_NOW | RTLD_GLOBAL), "libucm");
        int (*set)(int, int, void *, void *) = need(dlsym(lib, "ucm_set_event_handler"), "dlsym");
        begin = now();
        int result = set(1 << 20 | 1 << 21, 0, (void *)on_ucm_event, NULL);
        printf("install_ns %.0f\n", now() - begin);
        if (result != 0)
            fprintf(stderr, "ucm_set_event_handler: %d\n", result);
    }
}

static void *busy(void *argument)
{
    volatile unsigned long count = 0;
    (void)argument;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        cuMemFree(0);
        for (int i = 0; i < 1000; i++)
            count++;
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over rounds of the time of one call. */
static double free_null(void)
{
    enum { ROUNDS = 51, CALLS = 20000 };
    double times[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double begin = now();
        for (int i = 0; i < CALLS; i++)
            cuMemFree(0);
        times[r] = (now() - begin) / CALLS;
    }
    qsort(times, ROUNDS, sizeof *times, compare);
    return times[ROUNDS / 2];
}

static double async_pair(CUstream stream)
{
    enum { ROUNDS = 51, CALLS = 500 };
    double times[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double begin = now();
        for (int i = 0; i < CALLS; i++) {
            CUdeviceptr p;
            if (cuMemAllocAsync(&p, 1 << 20, stream) != 0 || cuMemFreeAsync(p, stream) != 0)
                exit(1);
        }
        times[r] = (now() - begin) / CALLS;
        cuStreamSynchronize(stream);
    }
    qsort(times, ROUNDS, sizeof *times, compare);
    return times[ROUNDS / 2];
}

typedef CUresult (*alloc_async)(CUdeviceptr *, size_t, CUstream);
typedef CUresult (*free_async)(CUdeviceptr, CUstream);

/* Pairs through the program's slots and through pointers of dlsym, which
 * relocation hooks do not see, in turn: the medians over rounds of both, and
 * of the difference within a round. */
static void slot_and_direct(CUstream stream)
{
    enum { ROUNDS = 201, CALLS = 200 };
    static double times[3][ROUNDS];
    void *lib = need(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "libcuda");
    alloc_async alloc = (alloc_async)need(dlsym(lib, "cuMemAllocAsync"), "dlsym");
    free_async release = (free_async)need(dlsym(lib, "cuMemFreeAsync"), "dlsym");
    for (int r = 0; r < ROUNDS; r++) {
        for (int turn = 0; turn < 2; turn++) {
            int way = (r + turn) % 2;
            double begin = now();
            for (int i = 0; i < CALLS; i++) {
                CUdeviceptr p;
                CUresult result = way == 0 ? cuMemAllocAsync(&p, 1 << 20, stream) : alloc(&p, 1 << 20, stream);
                if (result != 0 || (way == 0 ? cuMemFreeAsync(p, stream) : release(p, stream)) != 0)
                    exit(1);
            }
            times[way][r] = (now() - begin) / CALLS;
            cuStreamSynchronize(stream);
        }
        times[2][r] = times[0][r] - times[1][r];
    }
    for (int i = 0; i < 3; i++)
        qsort(times[i], ROUNDS, sizeof **times, compare);
    printf("pair_slot_ns %.1f\npair_direct_ns %.1f\npair_added_ns %.1f\n", times[0][ROUNDS / 2],
           times[1][ROUNDS / 2], times[2][ROUNDS / 2]);
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    CUstream stream;
    void *p;
    int crowd = getenv("BUSY") != NULL ? 64 : 0;
    if (argc < 2)
        return 2;
    if (cudaSetDevice(0) != 0 || cudaFree(0) != 0 || cuInit(0) != 0)
        return 1;
    if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0)
        return 1;
    for (int i = 0; i < crowd; i++)
        pthread_create(&threads[i], NULL, busy, NULL);
    if (crowd) {
        struct timespec rest = {0, 50000000};
        nanosleep(&rest, NULL);
    } else {
        printf("free_null_before_ns %.2f\n", free_null());
        printf("async_pair_before_ns %.1f\n", async_pair(stream));
    }
    if (argc > 2)
        install(argv[1], argv[2]);
    atomic_store(&stop, crowd);
    for (int i = 0; i < crowd; i++)
        pthread_join(threads[i], NULL);
    if (!crowd) {
        printf("free_null_after_ns %.2f\n", free_null());
        printf("async_pair_after_ns %.1f\n", async_pair(stream));
        slot_and_direct(stream);
    }
    long before = atomic_load(&events);
    if (cudaMalloc(&p, 1000) != 0 || cudaFree(p) != 0)
        return 1;
    printf("events_per_pair %ld\n", atomic_load(&events) - before);
    return 0;
}
