/* Checked. A success proves that cuda.h has cuCtxGetId, and cuGetProcAddress with five
 * arguments. Since 12.0. Needed by: cuda_copy and the context checks. */
#include <cuda.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
    CUcontext context                     = 0;
    unsigned long long id                 = 0;
    void *entry                           = 0;

    (void)&cuCtxGetId;
    (void)&cuGetProcAddress;
    return (int)cuCtxGetId(context, &id) +
           (int)cuGetProcAddress("cuInit", &entry, 12000, 0, &result);
}
