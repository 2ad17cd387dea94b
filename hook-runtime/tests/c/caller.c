/* Passes calls on to both interfaces through its own slots. */
#include <stddef.h>

typedef unsigned long long address_t;

int cuMemAlloc_v2(address_t *address, size_t size);
int cuMemAllocManaged(address_t *address, size_t size, unsigned flags);
int cuMemAllocPitch_v2(address_t *address, size_t *pitch, size_t width, size_t height, unsigned element);
int cuMemAllocAsync(address_t *address, size_t size, void *stream);
int cuMemAllocAsync_ptsz(address_t *address, size_t size, void *stream);
int cuMemAlloc(unsigned *address, unsigned size);
int cuMemHostAlloc(void **address, size_t size, unsigned flags);
int cuMemMap(address_t address, size_t size, size_t offset, unsigned long long handle, unsigned long long flags);
int cuMemUnmap(address_t address, size_t size);
int cuMemFree_v2(address_t address);
int cuMemFreeAsync(address_t address, void *stream);
int cuMemFreeAsync_ptsz(address_t address, void *stream);
int cuMemFreeHost(void *address);
int cuModuleGetGlobal_v2(address_t *address, size_t *size, void *module, const char *name);
int cuModuleUnload(void *module);
int cuCtxDestroy_v2(void *context);
int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height);
int cudaFree(void *address);

int call_cuMemAlloc_v2(address_t *address, size_t size) { return cuMemAlloc_v2(address, size); }
int call_cuMemAllocManaged(address_t *address, size_t size) { return cuMemAllocManaged(address, size, 1); }
int call_cuMemAllocAsync(address_t *address, size_t size) { return cuMemAllocAsync(address, size, NULL); }
int call_cuMemAllocAsync_ptsz(address_t *address, size_t size) { return cuMemAllocAsync_ptsz(address, size, NULL); }
int call_cuMemAlloc(address_t *address, size_t size)
{
    unsigned low = 0;
    int status = cuMemAlloc(&low, (unsigned)size);
    *address = low;
    return status;
}
int call_cuMemHostAlloc(void **address, size_t size) { return cuMemHostAlloc(address, size, 0); }
int call_cuMemAllocPitch_v2(address_t *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    return cuMemAllocPitch_v2(address, pitch, width, height, element);
}
int call_cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    (void)element;
    return cudaMallocPitch(address, pitch, width, height);
}
int call_cuMemFree_v2(address_t address) { return cuMemFree_v2(address); }
int call_cuMemFreeAsync(address_t address) { return cuMemFreeAsync(address, NULL); }
int call_cuMemFreeAsync_ptsz(address_t address) { return cuMemFreeAsync_ptsz(address, NULL); }
int call_cuMemFreeHost(void *address) { return cuMemFreeHost(address); }
int call_cudaFree(void *address) { return cudaFree(address); }
int call_cuMemMap(address_t address, size_t size) { return cuMemMap(address, size, 0, 1, 0); }
int call_cuMemUnmap(address_t address, size_t size) { return cuMemUnmap(address, size); }
int call_cuModuleGetGlobal_v2(address_t *address, size_t *size, void *module)
{
    return cuModuleGetGlobal_v2(address, size, module, "variable");
}
int call_cuModuleUnload(void *module) { return cuModuleUnload(module); }
int call_cuCtxDestroy_v2(void *context) { return cuCtxDestroy_v2(context); }
