/* Checked. A success proves that cuda.h declares CU_MEM_LOCATION_TYPE_HOST. Since 12.2.
 * Needed by: cuda_copy, to tell where virtual memory lies. */
#include <cuda.h>

int main(void)
{
#ifndef CU_MEM_LOCATION_TYPE_HOST
    (void)CU_MEM_LOCATION_TYPE_HOST;
#endif
    return 0;
}
