/* A driver small enough to see through: addresses come from a counter, sizes are
 * kept in a list, and a context is a number. Built as libcuda.so.1. */
#include <stddef.h>

typedef unsigned long long address_t;

#define LIMIT 65536
static struct { address_t address; size_t size; } known[LIMIT];
static address_t next = 0x700000000000ull;
static int lock;

static void enter(void) { while (__sync_lock_test_and_set(&lock, 1)) { } }
static void leave(void) { __sync_lock_release(&lock); }

static int make(address_t *result, size_t size)
{
    int status = 2;
    if (!size || !result) return 1;
    enter();
    for (int i = 0; i < LIMIT; ++i) {
        if (!known[i].address) {
            known[i].address = next;
            known[i].size = size;
            *result = next;
            next += (size + 511) / 512 * 512;
            status = 0;
            break;
        }
    }
    leave();
    return status;
}

static int end(address_t address)
{
    int status = 1;
    enter();
    for (int i = 0; i < LIMIT; ++i) {
        if (known[i].address == address) {
            known[i].address = 0;
            status = 0;
            break;
        }
    }
    leave();
    return address ? status : 0;
}

static void *current = (void *)0xc0;

int cuMemAlloc_v2(address_t *address, size_t size) { return make(address, size); }
int cuMemAllocManaged(address_t *address, size_t size, unsigned flags) { return flags ? make(address, size) : 1; }
int cuMemAllocAsync(address_t *address, size_t size, void *stream) { (void)stream; return make(address, size); }
int cuMemAllocAsync_ptsz(address_t *address, size_t size, void *stream) { (void)stream; return make(address, size); }
int cuMemFree_v2(address_t address) { return end(address); }
int cuMemFreeAsync(address_t address, void *stream) { (void)stream; return end(address); }
int cuMemFreeAsync_ptsz(address_t address, void *stream) { (void)stream; return end(address); }

int cuMemAllocPitch_v2(address_t *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    return make(address, *pitch * height);
}

/* The old interface: everything in 32 bits. */
int cuMemAlloc(unsigned *address, unsigned size)
{
    address_t whole = 0;
    int status = make(&whole, size);
    *address = (unsigned)whole;
    return status;
}

int cuMemGetAddressRange_v2(address_t *base, size_t *size, address_t address)
{
    int status = 1;
    enter();
    for (int i = 0; i < LIMIT; ++i) {
        if (known[i].address && address - known[i].address < known[i].size) {
            *base = known[i].address;
            *size = known[i].size;
            status = 0;
            break;
        }
    }
    leave();
    return status;
}

int cuMemMap(address_t address, size_t size, size_t offset, unsigned long long handle, unsigned long long flags)
{
    (void)address; (void)offset; (void)handle; (void)flags;
    return size ? 0 : 1;
}
int cuMemUnmap(address_t address, size_t size) { (void)address; return size ? 0 : 1; }

int cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
    (void)flags;
    return make((address_t *)address, size);
}
int cuMemFreeHost(void *address) { return end((address_t)address); }

int cuModuleGetGlobal_v2(address_t *address, size_t *size, void *module, const char *name)
{
    (void)module; (void)name;
    if (address) *address = 0x600000001000ull;
    if (size) *size = 48;
    return 0;
}
int cuModuleUnload(void *module) { return module ? 0 : 1; }

int cuCtxGetCurrent(void **context) { *context = current; return 0; }
int cuCtxDestroy_v2(void *context) { return context ? 0 : 1; }
