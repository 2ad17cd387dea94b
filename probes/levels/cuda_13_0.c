/* Checked. A success proves that cuCtxCreate takes four arguments, and that batched
 * copies have their later form, without the index of the failed one. Since 13.0. Needed
 * by: tests, and later versions of cuda_copy. */
#include <cuda.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    CUctxCreateParams params      = {0};
    CUmemcpyAttributes attributes = {0};
    CUcontext context             = 0;
    CUdeviceptr address           = 0;
    CUstream stream               = 0;
    size_t size                   = 0;

    (void)&cuCtxCreate;
    (void)&cuMemcpyBatchAsync;
    return (int)cuCtxCreate(&context, &params, 0, 0) +
           (int)cuMemcpyBatchAsync(&address, &address, &size, 1, &attributes, &size, 1, stream);
}
