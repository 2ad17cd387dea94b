/* Compiled. A success proves that nvml.h is there and compiles as C. In every release.
 * Needed by: cuda_ipc, and by configure when CUDA is asked for. */
#include <nvml.h>

int main(void)
{
    return 0;
}
