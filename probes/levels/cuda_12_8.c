/* Checked. A success proves that cuda.h has DMA-BUF mappings through PCIe, and batched
 * copies in either form. Since 12.8. Needed by: later versions of cuda_copy. */
#include <cuda.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    CUmemcpyAttributes attributes = {0};

    (void)&cuMemcpyBatchAsync;
    return (int)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE + (int)sizeof(attributes);
}
