/* Checked. A success proves that sys/syscall.h declares SYS_pidfd_getfd. Since Linux
 * 5.6. Needed by: cuda_ipc, to take over file descriptors of another process. */
#include <sys/syscall.h>

int main(void)
{
#ifndef SYS_pidfd_getfd
    (void)SYS_pidfd_getfd;
#endif
    return 0;
}
