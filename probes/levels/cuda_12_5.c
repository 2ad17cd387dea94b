/* Checked. A success proves that cuda.h has contexts created with parameters. Since
 * 12.5. Needed by: tests that switch devices. */
#include <cuda.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    CUctxCreateParams params = {0};
    CUcontext context        = 0;

    (void)&cuCtxCreate_v4;
    return (int)cuCtxCreate_v4(&context, &params, 0, 0);
}
