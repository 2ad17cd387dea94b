/* A runtime that calls the driver through slots, as one with a link to libcuda would. With
 * TAG it allocates by itself instead, from addresses that tell which copy was called. */
#include <stddef.h>

#ifdef TAG
static char *next = (char *)((unsigned long)TAG << 40);
int cudaMalloc(void **address, size_t size) { *address = next; next += size; return 0; }
int cudaFree(void *address) { return (unsigned long)address >> 40 == TAG ? 0 : 1; }
int cudaGetSymbolAddress(void **address, const void *symbol) { *address = (void *)symbol; return 0; }
int cudaGetSymbolSize(size_t *size, const void *symbol) { (void)symbol; *size = TAG; return 0; }
#else
int cuMemAlloc_v2(unsigned long long *address, size_t size);
int cuMemAllocPitch_v2(unsigned long long *address, size_t *pitch, size_t width, size_t height, unsigned element);
int cuMemFree_v2(unsigned long long address);

int cudaMalloc(void **address, size_t size) { return cuMemAlloc_v2((unsigned long long *)address, size); }
int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    return cuMemAllocPitch_v2((unsigned long long *)address, pitch, width, height, 4);
}
int cudaFree(void *address) { return cuMemFree_v2((unsigned long long)address); }
#endif
