/* Compiled by nvcc. A success proves that nvcc, its host compiler and the runtime
 * headers fit together. In every release. Needed by: tests and examples. */
#include <cuda_runtime.h>

__global__ void ucx_configure_kernel(int *value)
{
    *value = 1;
}

int main(void)
{
    ucx_configure_kernel<<<1, 1>>>(0);
    return (int)cudaGetLastError();
}
