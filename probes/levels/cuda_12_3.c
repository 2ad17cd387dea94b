/* Checked. A success proves that cuda.h has fabric handles, and what is used with them.
 * Since 12.3. Needed by: cuda_ipc, between nodes. */
#include <cuda.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    CUmemFabricHandle handle     = {{0}};
    CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_FABRIC;

    (void)&cuCtxSetFlags;
    return (int)cuCtxSetFlags(CU_CTX_SYNC_MEMOPS) + (int)type + (int)sizeof(handle) +
           (int)CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED;
}
