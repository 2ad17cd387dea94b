/* Checked. A success proves that cuda.h declares CU_MEM_HANDLE_TYPE_FABRIC. Since 12.3.
 * Needed by: cuda_ipc and cuda_copy, to share memory between nodes. */
#include <cuda.h>

int main(void)
{
#ifndef CU_MEM_HANDLE_TYPE_FABRIC
    (void)CU_MEM_HANDLE_TYPE_FABRIC;
#endif
    return 0;
}
