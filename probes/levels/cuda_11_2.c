/* Checked. A success proves that cuda.h has memory pools and allocation in stream order.
 * Since 11.2. Needed by: the memory hooks, for cuMemAllocAsync and its like. */
#include <cuda.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    CUdeviceptr address = 0;
    CUmemoryPool pool   = 0;
    CUstream stream     = 0;

    (void)&cuMemAllocAsync;
    (void)&cuMemAllocFromPoolAsync;
    (void)&cuMemFreeAsync;
    return (int)cuMemAllocAsync(&address, 1, stream) +
           (int)cuMemAllocFromPoolAsync(&address, 1, pool, stream) +
           (int)cuMemFreeAsync(address, stream);
}
