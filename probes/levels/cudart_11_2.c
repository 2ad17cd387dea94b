/* Checked. A success proves that cuda_runtime_api.h has allocation in stream order.
 * Since 11.2; in a mixed tree it can differ from what cuda.h has. Needed by: the memory
 * hooks, for cudaMallocAsync and its like. */
#include <cuda_runtime_api.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    void *address       = 0;
    cudaMemPool_t pool  = 0;
    cudaStream_t stream = 0;

    (void)&cudaMallocAsync;
    (void)&cudaMallocFromPoolAsync;
    (void)&cudaFreeAsync;
    return (int)cudaMallocAsync(&address, 1, stream) +
           (int)cudaMallocFromPoolAsync(&address, 1, pool, stream) +
           (int)cudaFreeAsync(address, stream);
}
