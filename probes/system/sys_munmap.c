/* Checked. A success proves that sys/syscall.h declares SYS_munmap. On Linux, always for
 * x86-64. Needed by: binary instrumentation, which replaces functions by direct system
 * calls. */
#include <sys/syscall.h>

int main(void)
{
#ifndef SYS_munmap
    (void)SYS_munmap;
#endif
    return 0;
}
