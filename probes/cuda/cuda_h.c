/* Compiled. A success proves that cuda.h is there and compiles as C. In every release.
 * Needed by: all CUDA support. */
#include <cuda.h>

int main(void)
{
    return 0;
}
