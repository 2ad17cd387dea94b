/* For every name on standard input: the address that dlsym gives, those that
 * cuGetProcAddress gives by default, for the legacy and for the per-thread
 * default stream, and the first 32 bytes there. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char name[256];
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (lib == NULL || cuInit(0) != 0) {
        fprintf(stderr, "no driver\n");
        return 1;
    }
    while (scanf("%255s", name) == 1) {
        unsigned char *entry = dlsym(lib, name);
        /* cuGetProcAddress takes names without their version. */
        char plain[256];
        strcpy(plain, name);
        size_t length = strlen(plain);
        if (length > 5 && !strcmp(plain + length - 5, "_ptsz"))
            plain[length -= 5] = 0;
        if (length > 3 && plain[length - 3] == '_' && plain[length - 2] == 'v')
            plain[length - 3] = 0;
        printf("%s dlsym=%p", name, (void *)entry);
        for (int flag = 0; flag <= 2; flag++) {
            void *p = NULL;
            CUdriverProcAddressQueryResult status;
            cuGetProcAddress(plain, &p, CUDA_VERSION, flag, &status);
            printf(" proc%d=%p", flag, p);
        }
        printf(" align=%lu bytes=", (unsigned long)((size_t)entry & 15));
        for (int i = 0; entry != NULL && i < 32; i++)
            printf("%02x", entry[i]);
        printf("\n");
    }
    return 0;
}
