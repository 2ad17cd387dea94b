/* Copies to a device and back through libuct_cuda: prints which transports there
 * are, and `right` if every byte came back as it went. With a file name as its
 * argument it exports the device memory, writes the key there, and waits for a
 * line on standard input; with a file name and `open` it reads that memory from
 * another process.
 *
 *     cc -I hook-runtime/include transports.c -L lib/ucx -l:libuct_cuda.so.0 -l:libcuda.so.1
 */
#include <hook_transports.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The little of CUDA's driver that this needs: its header is not. */
#ifdef __cplusplus
extern "C" {
#endif
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t size);
#ifdef __cplusplus
}
#endif

enum { SIZE = 3000000 };

static void must(int worked, const char *what)
{
    char text[300];
    if (worked)
        return;
    hook_transport_error(text, sizeof(text));
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static void note(uint64_t token, int status, void *argument)
{
    *(uint64_t *)argument += status == HOOK_TRANSPORT_OK ? token : 1000;
}

static void copy(hook_copier_t *copier, void *to, void *from)
{
    hook_region_t there, here;
    must(hook_copier_region(copier, to, SIZE, &there) == HOOK_TRANSPORT_OK, "the destination");
    must(hook_copier_region(copier, from, SIZE, &here) == HOOK_TRANSPORT_OK, "the source");
    must(hook_copier_copy_now(copier, &there, 0, &here, 0, SIZE) == HOOK_TRANSPORT_OK, "the copy");
    must(hook_copier_copy_now(copier, &there, SIZE, &here, 0, 1) == HOOK_TRANSPORT_ERROR, "a copy out of bounds");

    /* Small ones at a time: the sum of their tokens is reported. */
    uint64_t sum = 0;
    for (uint64_t token = 1; token <= 8; token++)
        must(hook_copier_copy(copier, &there, 8 * token, &here, 8 * token, 8, token) >= 0, "a small copy");
    must(hook_copier_progress(copier, note, &sum) >= 0, "progress");
    must(hook_copier_flush(copier, note, &sum) == HOOK_TRANSPORT_OK, "flush");
    must(sum == 36, "the reports");
}

/* Waits with the memory exported. */
static void export_to(const char *name, void *memory)
{
    hook_export_t *exported = hook_ipc_export((char *)memory + 100, 50);
    must(exported != NULL && hook_ipc_offset(exported) == 100, "the export");
    size_t length = hook_ipc_key(exported, NULL, 0);
    void *key = malloc(length);
    FILE *file = fopen(name, "wb");
    must(hook_ipc_key(exported, key, length) == length && file != NULL, "the key");
    must(fwrite(key, 1, length, file) == length && fclose(file) == 0, "the key's file");
    free(key);
    puts("exported");
    fflush(stdout);
    (void)getchar();
    hook_ipc_unexport(exported);
}

static hook_mapping_t *open_from(const char *name, void **memory)
{
    char key[4096];
    FILE *file = fopen(name, "rb");
    must(file != NULL, "the key's file");
    size_t read = fread(key, 1, sizeof(key), file), length = 0;
    fclose(file);
    hook_mapping_t *mapping = hook_ipc_open(key, read);
    must(mapping != NULL, "the other process's memory");
    *memory = hook_ipc_address(mapping, &length);
    must(length == SIZE, "its length");
    return mapping;
}

int main(int count, char **arguments)
{
    hook_transport_t transport;
    for (unsigned i = 0; i < uct_cuda_transports(); i++) {
        must(uct_cuda_describe(i, &transport) == HOOK_TRANSPORT_OK, "a description");
        printf("%s: %s\n", transport.name, transport.purpose);
    }
    must(uct_cuda_describe(99, &transport) == HOOK_TRANSPORT_ERROR, "no transport");
    must(uct_cuda_estimate(0, HOOK_MEMORY_PINNED, HOOK_MEMORY_DEVICE, 4096) > 0, "an estimate");
    must(uct_cuda_estimate(0, HOOK_MEMORY_HOST, HOOK_MEMORY_HOST, 4096) < 0, "no estimate");

    void *context = NULL, *device = NULL;
    unsigned long long allocated = 0;
    must(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxSetCurrent(context) == 0, "cuda");
    unsigned char *out = (unsigned char *)malloc(SIZE), *back = (unsigned char *)calloc(1, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        out[i] = (unsigned char)(i * 31 + (i >> 12));

    hook_copier_t *copier = hook_copier_create();
    hook_mapping_t *mapping = NULL;
    must(copier != NULL, "a copier");
    if (count == 3) {
        mapping = open_from(arguments[1], &device);
    } else {
        must(cuMemAlloc_v2(&allocated, SIZE) == 0, "device memory");
        device = (void *)(uintptr_t)allocated;
        copy(copier, device, out);
        if (count == 2)
            export_to(arguments[1], device);
    }
    copy(copier, back, device);
    puts(memcmp(out, back, SIZE) == 0 ? "right" : "WRONG");
    hook_copier_destroy(copier);
    hook_ipc_close(mapping);
    free(out);
    free(back);
    return 0;
}
