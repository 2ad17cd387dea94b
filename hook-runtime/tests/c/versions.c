/* A runtime whose functions exist in two versions. */
#include <stddef.h>

#define AT(tera) { *address = (void *)((tera) << 40); (void)size; return 0; }

int first_malloc(void **address, size_t size) AT(1ul)
int second_malloc(void **address, size_t size) AT(2ul)
int cudaFree(void *address) { (void)address; return 0; }

#ifdef BOTH
__asm__(".symver first_malloc,cudaMalloc@VERSION_1");
__asm__(".symver second_malloc,cudaMalloc@@VERSION_2");
#else
__asm__(".symver first_malloc,cudaMalloc@@VERSION_1");
#endif
