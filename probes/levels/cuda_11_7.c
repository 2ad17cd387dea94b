/* Checked. A success proves that cuda.h has DMA-BUF handles of address ranges, and that
 * cudaTypedefs.h, which configure never looks for, has the type of the function. Since
 * 11.7. Needed by: cuda_copy. */
#include <cuda.h>
#include <cudaTypedefs.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    PFN_cuMemGetHandleForAddressRange_v11070 get_handle = 0;
    CUdevice_attribute attribute                        = CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
    CUmemRangeHandleType type                           = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    int handle                                          = 0;

    return (int)get_handle(&handle, 0, 1, type, 0) + (int)attribute;
}
