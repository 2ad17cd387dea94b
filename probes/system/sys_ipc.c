/* Checked. A success proves that sys/syscall.h declares SYS_ipc. Few machines have it;
 * x86-64 does not. Needed by: binary instrumentation, which replaces functions by direct
 * system calls. */
#include <sys/syscall.h>

int main(void)
{
#ifndef SYS_ipc
    (void)SYS_ipc;
#endif
    return 0;
}
