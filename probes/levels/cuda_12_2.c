/* Checked. A success proves that cuda.h has host and NUMA locations of virtual memory.
 * Since 12.2. Needed by: tests of host memory mapped by CUDA. */
#include <cuda.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    CUmemLocation location;

    location.type = CU_MEM_LOCATION_TYPE_HOST;
    location.id   = (int)CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    return (int)location.type + location.id + (int)CU_MEM_LOCATION_TYPE_HOST_NUMA;
}
