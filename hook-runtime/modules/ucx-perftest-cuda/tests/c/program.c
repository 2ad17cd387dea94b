/* Stands for ucx_perftest of one release: exports its table, and calls the
 * allocators with a structure that has things where that release has them.
 *
 *     program MODULE MAJOR MINOR GROUP FUNCTIONS DOMAIN DEVICE
 *
 * GROUP, FUNCTIONS and DOMAIN are places in the structure; DEVICE is that of the
 * device chosen for the second process, or 0. With FAIL_REGISTER=1 no memory
 * can be registered. Prints `none` if there are no allocators, `done` at the end. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                            \
    do {                                                                       \
        if (!(what)) {                                                         \
            printf("line %d: %s\n", __LINE__, #what);                          \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

struct allocated {
    void *address;
    size_t length;
    int method;
    int memory_type;
    void *domain;
    void *handle;
};

struct allocator {
    int memory_type;
    signed char (*init)(const void *);
    signed char (*alloc)(const void *, size_t, unsigned, struct allocated *);
    void (*release)(const void *, struct allocated *);
    void (*copy)(void *, int, const void *, int, size_t);
    void *(*set)(void *, int, size_t);
};

const struct allocator *ucx_perf_mem_type_allocators[16];
static unsigned version[3];
static int registered, domain, group;

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
{
    *major = version[0], *minor = version[1], *release = version[2];
}

signed char uct_md_mem_reg(void *md, void *address, size_t length, unsigned flags, void **handle)
{
    CHECK(md == &domain && flags == 7 && (uintptr_t)address % 65536 == 0 && length % 65536 == 0);
    if (getenv("FAIL_REGISTER"))
        return -3;
    *handle = &registered;
    registered++;
    return 0;
}

signed char uct_md_mem_dereg(void *md, void *handle)
{
    CHECK(md == &domain && handle == &registered);
    registered--;
    return 0;
}

static unsigned group_index(void *of)
{
    CHECK(of == &group);
    return 1;
}

int cuCtxGetDevice(int *device);
int cuMemGetInfo_v2(size_t *free, size_t *all);

static void use(const struct allocator *allocator, int memory_type, const char *perf, int device)
{
    struct allocated memory = {0};
    char bytes[5000], back[5000];
    size_t before, after, all;
    int current = -1;

    CHECK(allocator && allocator->memory_type == memory_type);
    CHECK(allocator->init(perf) == 0);
    CHECK(cuCtxGetDevice(&current) == 0 && current == device);
    CHECK(cuMemGetInfo_v2(&before, &all) == 0);
    signed char status = allocator->alloc(perf, sizeof(bytes), 7, &memory);
    if (getenv("FAIL_REGISTER")) {
        CHECK(status == -3);
        CHECK(cuMemGetInfo_v2(&after, &all) == 0 && after == before);
        return;
    }
    CHECK(status == 0 && registered == 1);
    CHECK(memory.memory_type == memory_type && memory.domain == &domain && memory.length == sizeof(bytes));
    memset(bytes, 0x5a, sizeof(bytes));
    CHECK(allocator->set(memory.address, 0x5a, sizeof(bytes)) == memory.address);
    allocator->copy(back, 0, memory.address, memory_type, sizeof(bytes));
    CHECK(memcmp(bytes, back, sizeof(bytes)) == 0);
    bytes[17] = 1;
    allocator->copy(memory.address, memory_type, bytes, 0, sizeof(bytes));
    allocator->copy(back, 0, memory.address, memory_type, sizeof(bytes));
    CHECK(memcmp(bytes, back, sizeof(bytes)) == 0);
    allocator->release(perf, &memory);
    CHECK(registered == 0 && cuMemGetInfo_v2(&after, &all) == 0 && after == before);
}

int main(int count, char **arguments)
{
    CHECK(count == 8);
    char *perf = calloc(1, 0x6000);
    void *functions[8] = {0};
    long number[8];
    for (int i = 2; i < count; i++)
        number[i] = strtol(arguments[i], NULL, 0);
    version[0] = (unsigned)number[2], version[1] = (unsigned)number[3];
    functions[3] = (void *)(uintptr_t)group_index;
    *(void **)(perf + number[4]) = &group;
    *(void **)(perf + number[5]) = functions;
    *(void **)(perf + number[6]) = &domain;
    /* The second of two devices by the number of the process, unless the user says the first. */
    int device = number[7] ? 0 : 1;
    void *module = dlopen(arguments[1], RTLD_LAZY | RTLD_LOCAL);
    CHECK(module);
    unsigned (*allocators)(void) = (unsigned (*)(void))(uintptr_t)dlsym(module, "ucx_perftest_cuda_allocators");
    CHECK(allocators);
    if (allocators() == 0) {
        for (int i = 0; i < 16; i++)
            CHECK(!ucx_perf_mem_type_allocators[i]);
        puts("none");
        return 0;
    }
    CHECK(allocators() == 2);
    use(ucx_perf_mem_type_allocators[1], 1, perf, device);
    use(ucx_perf_mem_type_allocators[2], 2, perf, device);
    CHECK(dlclose(module) == 0);
    CHECK(!ucx_perf_mem_type_allocators[1] && !ucx_perf_mem_type_allocators[2]);
    puts("done");
    return 0;
}
