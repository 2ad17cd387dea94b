/* Checked. A success proves that sys/syscall.h declares SYS_mremap. On Linux, always for
 * x86-64. Needed by: binary instrumentation, which replaces functions by direct system
 * calls. */
#include <sys/syscall.h>

int main(void)
{
#ifndef SYS_mremap
    (void)SYS_mremap;
#endif
    return 0;
}
