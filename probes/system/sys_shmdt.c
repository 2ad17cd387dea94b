/* Checked. A success proves that sys/syscall.h declares SYS_shmdt. On Linux, always for
 * x86-64. Needed by: binary instrumentation, which replaces functions by direct system
 * calls. */
#include <sys/syscall.h>

int main(void)
{
#ifndef SYS_shmdt
    (void)SYS_shmdt;
#endif
    return 0;
}
