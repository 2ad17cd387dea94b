/* Compiled. A success proves that cuda_runtime.h is there and compiles as C, its parts
 * in crt/ included. In every release. Needed by: the memory hooks and the performance
 * test. */
#include <cuda_runtime.h>

int main(void)
{
    return 0;
}
