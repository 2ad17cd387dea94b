/* A library that loads others. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void *host_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

#ifdef AT_ONCE
void *host_opened;
__attribute__((constructor)) static void at_once(void) { host_opened = host_open(AT_ONCE); }
#endif
