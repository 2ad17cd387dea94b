/* A library that uses the GPU. */
#include <cuda_runtime.h>

void use(void)
{
    void *address = NULL;
    if (cudaMalloc(&address, 4096) == 0)
        cudaFree(address);
}
