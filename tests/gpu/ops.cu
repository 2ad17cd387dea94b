/* Calls every hooked function once or more and says, line by line, which
 * events that has to give: `ALLOC ADDRESS SIZE WHO` and `FREE ADDRESS SIZE WHO`.
 * The runtime parts are linked static or shared, with legacy or per-thread
 * default streams, by the script that builds it. Host memory is allocated
 * too, and expected under its own class. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                            \
    do {                                                                       \
        int result = (int)(call);                                              \
        if (result != 0) {                                                     \
            fprintf(stderr, "%s: error %d\n", #call, result);                  \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

__device__ char symbol[4096];

static void expect(const char *kind, const void *address, size_t size, const char *who)
{
    printf("%s %p %zu %s\n", kind, address, size, who);
}

static void runtime_api(void)
{
    void *p;
    size_t pitch;
    cudaStream_t stream;
    cudaMemPool_t pool;

    CHECK(cudaMalloc(&p, 1000));
    expect("ALLOC", p, 1000, "cudaMalloc");
    CHECK(cudaFree(p));
    expect("FREE", p, 1000, "cudaFree");

    CHECK(cudaMallocManaged(&p, 5000, cudaMemAttachGlobal));
    expect("ALLOC", p, 5000, "cudaMallocManaged");
    CHECK(cudaFree(p));
    expect("FREE", p, 5000, "cudaFree");

    CHECK(cudaMallocPitch(&p, &pitch, 100, 100));
    expect("ALLOC", p, pitch * 100, "cudaMallocPitch");
    CHECK(cudaFree(p));
    expect("FREE", p, pitch * 100, "cudaFree");

    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMallocAsync(&p, 1 << 20, stream));
    expect("ALLOC", p, 1 << 20, "cudaMallocAsync");
    CHECK(cudaFreeAsync(p, stream));
    expect("FREE", p, 1 << 20, "cudaFreeAsync");
    CHECK(cudaMallocAsync(&p, 4096, 0));
    expect("ALLOC", p, 4096, "cudaMallocAsync, default stream");
    CHECK(cudaFreeAsync(p, 0));
    expect("FREE", p, 4096, "cudaFreeAsync, default stream");
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMallocFromPoolAsync(&p, 3 << 20, pool, stream));
    expect("ALLOC", p, 3 << 20, "cudaMallocFromPoolAsync");
    CHECK(cudaFreeAsync(p, stream));
    expect("FREE", p, 3 << 20, "cudaFreeAsync");
    CHECK(cudaStreamSynchronize(stream));

    CHECK(cudaMallocHost(&p, 8192));
    expect("HOST-ALLOC", p, 8192, "cudaMallocHost");
    CHECK(cudaFreeHost(p));
    expect("HOST-FREE", p, 8192, "cudaFreeHost");

    CHECK(cudaGetSymbolAddress(&p, symbol));
    expect("ALLOC", p, sizeof symbol, "cudaGetSymbolAddress");
    CHECK(cudaFree(NULL));
}

static void driver_api(void)
{
    CUdeviceptr p;
    size_t pitch, size;
    CUstream stream;
    CUmemoryPool pool;
    CUmodule module;

    CHECK(cuMemAlloc(&p, 3000));
    expect("ALLOC", (void *)p, 3000, "cuMemAlloc");
    CHECK(cuMemFree(p));
    expect("FREE", (void *)p, 3000, "cuMemFree");
    CHECK(cuMemAllocManaged(&p, 7000, CU_MEM_ATTACH_GLOBAL));
    expect("ALLOC", (void *)p, 7000, "cuMemAllocManaged");
    CHECK(cuMemFree(p));
    expect("FREE", (void *)p, 7000, "cuMemFree");
    CHECK(cuMemAllocPitch(&p, &pitch, 1000, 10, 4));
    expect("ALLOC", (void *)p, pitch * 10, "cuMemAllocPitch");
    CHECK(cuMemFree(p));
    expect("FREE", (void *)p, pitch * 10, "cuMemFree");

    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAllocAsync(&p, 2 << 20, stream));
    expect("ALLOC", (void *)p, 2 << 20, "cuMemAllocAsync");
    CHECK(cuMemFreeAsync(p, stream));
    expect("FREE", (void *)p, 2 << 20, "cuMemFreeAsync");
    CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cuMemAllocFromPoolAsync(&p, 5 << 20, pool, stream));
    expect("ALLOC", (void *)p, 5 << 20, "cuMemAllocFromPoolAsync");
    CHECK(cuMemFreeAsync(p, stream));
    expect("FREE", (void *)p, 5 << 20, "cuMemFreeAsync");
    CHECK(cuStreamSynchronize(stream));

    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle handle;
    CHECK(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemAddressReserve(&p, 2 * size, 0, 0, 0));
    CHECK(cuMemCreate(&handle, size, &prop, 0));
    CHECK(cuMemMap(p, size, 0, handle, 0));
    expect("ALLOC", (void *)p, size, "cuMemMap");
    CHECK(cuMemUnmap(p, size));
    expect("FREE", (void *)p, size, "cuMemUnmap");
    CHECK(cuMemRelease(handle));
    CHECK(cuMemAddressFree(p, 2 * size));

    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .global .align 4 .b8 global_one[256];\n";
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetGlobal(&p, &size, module, "global_one"));
    expect("ALLOC", (void *)p, size, "cuModuleGetGlobal");
    CHECK(cuModuleUnload(module));
    expect("FREE", (void *)p, size, "cuModuleUnload");

    void *host;
    CHECK(cuMemAllocHost(&host, 12288));
    expect("HOST-ALLOC", host, 12288, "cuMemAllocHost");
    CHECK(cuMemFreeHost(host));
    expect("HOST-FREE", host, 12288, "cuMemFreeHost");
}

int main(void)
{
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(0));
    runtime_api();
    driver_api();
    return 0;
}
