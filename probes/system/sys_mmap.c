/* Checked. A success proves that sys/syscall.h declares SYS_mmap. On Linux, always for
 * x86-64. Needed by: binary instrumentation, which replaces functions by direct system
 * calls. */
#include <sys/syscall.h>

int main(void)
{
#ifndef SYS_mmap
    (void)SYS_mmap;
#endif
    return 0;
}
