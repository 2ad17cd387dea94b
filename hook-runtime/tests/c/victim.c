/* Calls the runtime in every way that a slot can be used. */
#include <stddef.h>

int cudaMalloc(void **address, size_t size);
int cudaFree(void *address);
int cudaGetSymbolAddress(void **address, const void *symbol) __attribute__((weak));

typedef int (*malloc_t)(void **, size_t);

/* Pointers in data: one in a page that stays writable, one in a page that does not. */
malloc_t victim_data = cudaMalloc;
static const malloc_t victim_constant[] = { cudaMalloc };

static int other(void **address, size_t size) { (void)size; *address = (void *)0x123000; return 0; }
/* A pointer that the program has changed before anything is hooked. */
malloc_t victim_changed = cudaMalloc;
__attribute__((constructor)) static void change(void) { victim_changed = other; }

static void *run(malloc_t function, size_t size)
{
    void *address = NULL;
    return function(&address, size) ? NULL : address;
}

void *by_call(size_t size)
{
    void *address = NULL;
    return cudaMalloc(&address, size) ? NULL : address;
}
void *by_address(size_t size) { malloc_t volatile function = cudaMalloc; return run(function, size); }
void *by_data(size_t size) { return run(*(malloc_t volatile *)&victim_data, size); }
void *by_constant(size_t size) { return run(*(malloc_t const volatile *)victim_constant, size); }
void *by_changed(size_t size) { return run(*(malloc_t volatile *)&victim_changed, size); }

int release(void *address) { return cudaFree(address); }

void *symbol(const void *name)
{
    void *address = NULL;
    return !cudaGetSymbolAddress || cudaGetSymbolAddress(&address, name) ? NULL : address;
}
