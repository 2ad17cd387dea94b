/* A program that uses CUDA and, from the directory that it is given, the real UCX, opened
 * for itself alone as Python does. It prints what it did, what UCX's handler was told and
 * what UCX's table of memory types knows:
 *
 *     existing 0x700000000000 4096
 *     did ALLOC 0x700000200000 4096
 *     told ALLOC 0x700000200000 4096 unknown
 *     cache 0x700000200000 unknown
 *
 *     beside_ucx DIRECTORY [MODULE]
 *
 * MODULE is the file that must have been loaded as UCX's module. */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALLOC = 1 << 20, FREE = 1 << 21, EXISTING = 1 << 25 };

struct event {
    void *address;
    size_t size;
    int type;
    unsigned char device, flags;
};

typedef void (*handler_t)(int kind, struct event *event, void *argument);

static const char **names;
static int (*lookup)(const void *address, size_t size, void *info);
static int new_layout;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("failed: %s: %s\n", #what, dlerror()); \
            exit(1); \
        } \
    } while (0)

static void print_existing(int kind, struct event *event, void *argument)
{
    CHECK(argument == &names);
    if (kind == ALLOC)
        printf("existing %p %zu\n", event->address, event->size);
}

static void print_event(int kind, struct event *event, void *argument)
{
    CHECK(argument == &names);
    CHECK(kind == ALLOC || kind == FREE);
    if (new_layout)
        CHECK(event->device == 0xff && event->flags == 1);
    printf("told %s %p %zu %s\n", kind == ALLOC ? "ALLOC" : "FREE", event->address, event->size, names[event->type]);
}

static void ask_cache(void *address)
{
    int info[32] = {0};
    int status = lookup(address, 1, info);
    CHECK(status == 0 || status == -12);
    printf("cache %p %s\n", address, status == 0 ? names[info[0]] : "nothing");
}

static void did(const char *what, void *address, size_t size)
{
    printf("did %s %p %zu\n", what, address, size);
}

static void *open_ucx(const char *directory, const char *library)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", directory, library);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(handle != NULL);
    return handle;
}

static void use(void)
{
    void *address = NULL;
    size_t pitch = 0;
    CUdeviceptr device = 0;

    CHECK(cudaMalloc(&address, 4096) == 0);
    did("ALLOC", address, 4096);
    ask_cache(address);
    did("FREE", address, 4096);
    CHECK(cudaFree(address) == 0);
    ask_cache(address);

    CHECK(cudaMallocPitch(&address, &pitch, 100, 100) == 0);
    did("ALLOC", address, pitch * 100);
    ask_cache((char *)address + pitch * 100 - 1);
    did("FREE", address, pitch * 100);
    CHECK(cudaFree(address) == 0);

    CHECK(cudaMallocManaged(&address, 8192, cudaMemAttachGlobal) == 0);
    did("ALLOC", address, 8192);
    ask_cache(address);
    did("FREE", address, 8192);
    CHECK(cudaFree(address) == 0);
    ask_cache(address);

    CHECK(cuMemAlloc(&device, 1 << 20) == 0);
    did("ALLOC", (void *)(uintptr_t)device, 1 << 20);
    ask_cache((void *)(uintptr_t)device);
    did("FREE", (void *)(uintptr_t)device, 1 << 20);
    CHECK(cuMemFree(device) == 0);
    ask_cache((void *)(uintptr_t)device);
}

int main(int argc, char **argv)
{
    unsigned major = 0, minor = 0, patch = 0;
    void *before = NULL, *again = NULL;

    CHECK(argc >= 2);
    CHECK(cuInit(0) == 0);
    CHECK(cudaMalloc(&before, 12288) == 0);
    printf("before %p 12288\n", before);

    void *ucs = open_ucx(argv[1], "libucs.so.0");
    void *ucm = open_ucx(argv[1], "libucm.so.0");
    void *ucp = open_ucx(argv[1], "libucp.so.0");
    CHECK(dlsym(RTLD_DEFAULT, "ucm_event_dispatch") == NULL);
    void (*get_version)(unsigned *, unsigned *, unsigned *) = dlsym(ucp, "ucp_get_version");
    int (*set_handler)(int, int, handler_t, void *) = dlsym(ucm, "ucm_set_event_handler");
    void (*unset_handler)(int, handler_t, void *) = dlsym(ucm, "ucm_unset_event_handler");
    names = dlsym(ucs, "ucs_memory_type_names");
    lookup = dlsym(ucs, "ucs_memtype_cache_lookup");
    CHECK(get_version && set_handler && unset_handler && names && lookup);
    get_version(&major, &minor, &patch);
    printf("version %u.%u.%u\n", major, minor, patch);
    new_layout = minor >= 22;

    int status = set_handler(ALLOC | FREE | EXISTING, 5, print_existing, &names);
    printf("existing handler: %d\n", status);
    if (status != 0)
        return 0;
    unset_handler(ALLOC | FREE | EXISTING, print_existing, &names);
    if (argc > 2) {
        void *module = dlopen(argv[2], RTLD_LAZY | RTLD_NOLOAD);
        CHECK(module != NULL);
        CHECK(dlsym(module, "hook_runtime_version") != NULL);
    }

    ask_cache(before);
    CHECK(set_handler(ALLOC | FREE, 5, print_event, &names) == 0);
    use();
    did("FREE", before, 12288);
    CHECK(cudaFree(before) == 0);
    ask_cache(before);
    unset_handler(ALLOC | FREE, print_event, &names);
    CHECK(cudaMalloc(&again, 64) == 0);
    ask_cache(again);
    CHECK(cudaFree(again) == 0);
    printf("done\n");
    return 0;
}
