/* What becomes of events when things begin and end: allocations from before, contexts,
 * children, threads, the process. Each part is a run of its own, and checks itself.
 *
 *     lifetime PART [ANOTHER_COPY_OF_THE_MODULE]
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <errno.h>
#include <hook_runtime.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOTH (HOOK_RUNTIME_EVENT_ALLOC | HOOK_RUNTIME_EVENT_FREE)

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: failed: %s\n", __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

struct record {
    int count;
    struct {
        unsigned kind, memory;
        uintptr_t address;
        size_t size;
        char symbol[64];
    } events[64];
};

static struct record record;

static void note(const hook_runtime_event_t *event, void *argument)
{
    struct record *r = argument;
    CHECK(r->count < 64);
    r->events[r->count].kind = event->kind;
    r->events[r->count].memory = event->memory_class;
    r->events[r->count].address = (uintptr_t)event->address;
    r->events[r->count].size = event->size;
    strncpy(r->events[r->count].symbol, event->symbol, 63);
    r->count++;
}

static int times(const struct record *r, unsigned kind, CUdeviceptr address, size_t size, const char *symbol)
{
    int found = 0;
    for (int i = 0; i < r->count; i++)
        found += r->events[i].kind == kind && r->events[i].address == address && r->events[i].size == size &&
                 (!symbol || strcmp(r->events[i].symbol, symbol) == 0);
    return found;
}

static void hook(int more)
{
    CHECK(hook_runtime_set_event_handler(BOTH | more, 0, note, &record) == HOOK_RUNTIME_OK);
}

static CUcontext context(void)
{
    CUcontext made = NULL;
    CHECK(cuInit(0) == 0);
    CHECK(cuCtxCreate(&made, 0, 0) == 0);
    return made;
}

static void existing(void)
{
    CUdeviceptr a, b, c, d;
    CUcontext made = context();
    CHECK(cuMemAlloc(&a, 1000) == 0 && cuMemAlloc(&b, 5 << 20) == 0);
    CHECK(cuMemAlloc(&c, 300) == 0 && cuMemAlloc(&d, 77) == 0);
    CHECK(cuMemFree(c) == 0);
    hook(HOOK_RUNTIME_EVENT_EXISTING);
    CHECK(record.count == 3);
    CHECK(times(&record, 1, a, 1000, "existing") == 1 && times(&record, 1, b, 5 << 20, "existing") == 1);
    CHECK(times(&record, 1, d, 77, "existing") == 1);
    for (int i = 0; i < 3; i++)
        CHECK(record.events[i].memory == HOOK_RUNTIME_MEMORY_DEVICE);
    /* No context is needed to know the size. */
    CHECK(cuCtxSetCurrent(NULL) == 0);
    record.count = 0;
    CHECK(cuMemFree(b) != 0);
    /* What has failed is taken back. */
    CHECK(record.count == 2 && times(&record, 2, b, 5 << 20, "cuMemFree_v2") == 1);
    CHECK(times(&record, 1, b, 5 << 20, "cuMemFree_v2") == 1);
    record.count = 0;
    CHECK(cuCtxDestroy(made) == 0);
    CHECK(record.count == 3 && times(&record, 2, b, 5 << 20, "cuCtxDestroy_v2") == 1);
    CHECK(times(&record, 2, a, 1000, "cuCtxDestroy_v2") == 1 && times(&record, 2, d, 77, "cuCtxDestroy_v2") == 1);
    /* A second handler hears of nothing. */
    record.count = 0;
    hook_runtime_unset_event_handler(BOTH, note, &record);
    hook(HOOK_RUNTIME_EVENT_EXISTING);
    CHECK(record.count == 0);
}

/* Freed with its size although nothing was asked for what existed. */
static void existing_unasked(void)
{
    CUdeviceptr a;
    CUcontext made = context();
    CHECK(cuMemAlloc(&a, 1000) == 0);
    hook(0);
    CHECK(record.count == 0);
    CHECK(cuCtxSetCurrent(NULL) == 0);
    CHECK(cuMemFree(a) != 0);
    CHECK(record.count == 2 && times(&record, 2, a, 1000, "cuMemFree_v2") == 1);
    CHECK(times(&record, 1, a, 1000, "cuMemFree_v2") == 1);
    CHECK(cuCtxSetCurrent(made) == 0);
    record.count = 0;
    CHECK(cuMemFree(a) == 0);
    CHECK(record.count == 1 && times(&record, 2, a, 1000, "cuMemFree_v2") == 1);
}

static void contexts(void)
{
    CUdeviceptr a, b, c, none;
    void *p;
    hook(0);
    CUcontext first = context(), second;
    CHECK(cuMemAlloc(&a, 100) == 0 && cuMemAllocManaged(&b, 200, CU_MEM_ATTACH_GLOBAL) == 0);
    CHECK(cuCtxCreate(&second, 0, 0) == 0 && cuMemAlloc(&c, 300) == 0);
    CHECK(record.count == 3);
    record.count = 0;
    CHECK(cuCtxDestroy(first) == 0);
    CHECK(record.count == 2);
    CHECK(times(&record, 2, a, 100, "cuCtxDestroy_v2") == 1 && times(&record, 2, b, 200, "cuCtxDestroy_v2") == 1);
    /* What is gone cannot be freed. Its handle is used by nobody any more. */
    record.count = 0;
    CHECK(cuCtxDestroy(first) != 0);
    CHECK(cuMemFree(a) != 0);
    CHECK(times(&record, 1, a, 0, NULL) == 0);
    record.count = 0;
    CHECK(cuCtxSetCurrent(NULL) == 0);
    CHECK(cuMemAlloc(&none, 1) != 0 && record.count == 0);
    /* The driver cannot free it now, but its size is known, and when it ends. */
    CHECK(cuMemFree(c) != 0);
    CHECK(record.count == 2 && times(&record, 2, c, 300, "cuMemFree_v2") == 1);
    record.count = 0;
    CHECK(cuCtxDestroy(second) == 0);
    CHECK(record.count == 1 && times(&record, 2, c, 300, "cuCtxDestroy_v2") == 1);

    record.count = 0;
    CHECK(cudaMalloc(&p, 500) == 0 && record.count == 1);
    CHECK(cudaDeviceReset() == 0);
    CHECK(record.count == 2 && times(&record, 2, (CUdeviceptr)p, 500, NULL) == 1);
    record.count = 0;
    CHECK(cudaMalloc(&p, 400) == 0);
    CHECK(cuDevicePrimaryCtxReset(0) == 0);
    CHECK(record.count == 2 && times(&record, 2, (CUdeviceptr)p, 400, "cuDevicePrimaryCtxReset_v2") == 1);
}

static atomic_int stop, told;

static void count(const hook_runtime_event_t *event, void *argument)
{
    (void)event;
    (void)argument;
    atomic_fetch_add(&told, 1);
}

static void *allocate_and_free(void *argument)
{
    (void)argument;
    while (!stop) {
        void *p;
        CHECK(cudaMalloc(&p, 512) == 0);
        CHECK(cudaFree(p) == 0);
    }
    return NULL;
}

static void *come_and_go(void *argument)
{
    while (!stop) {
        CHECK(hook_runtime_set_event_handler(BOTH, 1, count, argument) == 0);
        hook_runtime_unset_event_handler(BOTH, count, argument);
    }
    return NULL;
}

static void *load(void *argument)
{
    while (!stop) {
        void *library = dlopen("libcudart.so", RTLD_NOW);
        CHECK(library);
        dlclose(library);
    }
    return argument;
}

static void child(void)
{
    struct record own = {0};
    void *p;
    alarm(20);
    CHECK(hook_runtime_set_event_handler(BOTH | HOOK_RUNTIME_EVENT_EXISTING, 0, note, &own) == 0);
    CHECK(own.count == 0);
    CHECK(cudaMalloc(&p, 512) != 0 && own.count == 0);
    hook_runtime_unset_event_handler(BOTH, note, &own);
    hook_runtime_unset_event_handler(BOTH, count, NULL);
    hook_runtime_uninstall();
    CHECK(hook_runtime_install() == 0);
    _exit(0);
}

static void fork_one(void)
{
    int status = 0;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        child();
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
}

static void fork_in_handler(const hook_runtime_event_t *event, void *argument)
{
    (void)argument;
    if (event->size == 640 && event->kind == 1)
        fork_one();
}

static void forks(void)
{
    pthread_t threads[5];
    char a, b;
    void *p, *held;
    alarm(100);
    CHECK(hook_runtime_set_event_handler(BOTH, 0, count, NULL) == 0);
    CHECK(cudaMalloc(&held, 1024) == 0);
    pthread_create(&threads[0], NULL, allocate_and_free, NULL);
    pthread_create(&threads[1], NULL, allocate_and_free, NULL);
    pthread_create(&threads[2], NULL, come_and_go, &a);
    pthread_create(&threads[3], NULL, come_and_go, &b);
    pthread_create(&threads[4], NULL, load, NULL);
    for (int i = 0; i < 10; i++)
        fork_one();
    CHECK(hook_runtime_set_event_handler(BOTH, 0, fork_in_handler, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(cudaMalloc(&p, 640) == 0);
        CHECK(cudaFree(p) == 0);
    }
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    int status = 1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    stop = 1;
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    hook_runtime_unset_event_handler(BOTH, fork_in_handler, NULL);
    int before = told;
    CHECK(cudaFree(held) == 0);
    CHECK(told == before + 1);
}

static void *at_end;
static int ends;

__attribute__((destructor)) static void destructor(void)
{
    if (!ends)
        return;
    int before = told;
    /* The program's own business, as it was without hooks. */
    CHECK(cudaFree(at_end) == 0);
    CHECK(told == before);
    printf("ended\n");
    fflush(stdout);
}

static void end(void)
{
    CHECK(hook_runtime_set_event_handler(BOTH, 0, count, NULL) == 0);
    CHECK(cudaMalloc(&at_end, 512) == 0);
    CHECK(told == 1);
    ends = 1;
}

/* Every way to a function; `expected` is the number of events of each. */
static void ways(int expected)
{
    CUresult (*function)(CUdeviceptr *, size_t);
    CUdeviceptr a;
    hook(0);
    CHECK(cuInit(0) == 0);
    context();
    CHECK(cuMemAlloc(&a, 10) == 0);
    CHECK(record.count == 1);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    CHECK(driver);
    record.count = 0;
    *(void **)&function = dlsym(driver, "cuMemAlloc_v2");
    CHECK(function && function(&a, 20) == 0);
    CHECK(record.count == expected);
    record.count = 0;
    function = NULL;
    CHECK(cuGetProcAddress("cuMemAlloc", (void **)&function, 12000, 0, NULL) == 0);
    CHECK(function && function(&a, 30) == 0);
    CHECK(record.count == expected);
    CHECK(!expected || times(&record, 1, a, 30, "cuMemAlloc_v2") == 1);
}

/* Two copies of the module: each tells its own handlers once of each call. */
static void two(const char *another)
{
    struct record other = {0};
    void *p;
    void *module = dlopen(another, RTLD_NOW | RTLD_LOCAL);
    CHECK(module);
    int (*set)(int, int, hook_runtime_handler_t, void *) = dlsym(module, "hook_runtime_set_event_handler");
    void (*uninstall)(void) = dlsym(module, "hook_runtime_uninstall");
    CHECK(set && uninstall && (void *)set != (void *)hook_runtime_set_event_handler);
    hook(0);
    CHECK(set(BOTH, 0, note, &other) == 0);
    for (int round = 0; round < 2; round++) {
        record.count = other.count = 0;
        CHECK(cudaMalloc(&p, 1000) == 0 && cudaFree(p) == 0);
        CHECK(record.count == 2 && other.count == (round ? 0 : 2));
        CHECK(times(&record, 1, (CUdeviceptr)p, 1000, NULL) == 1 && times(&record, 2, (CUdeviceptr)p, 1000, NULL) == 1);
        CHECK(round || times(&other, 1, (CUdeviceptr)p, 1000, NULL) == 1);
        /* The last to come is the first to go. */
        uninstall();
    }
    hook_runtime_uninstall();
    record.count = 0;
    CHECK(cudaMalloc(&p, 1000) == 0 && cudaFree(p) == 0);
    CHECK(record.count == 0 && other.count == 0);
}

/* A policy under which no code can be changed: slots serve. */
static void refuse(void)
{
    static char text[1 << 16];
    CUdeviceptr a;
    /* The driver is loaded before. */
    CHECK(cuInit(0) == 0);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    hook(0);
    context();
    CHECK(cuMemAlloc(&a, 10) == 0);
    CHECK(record.count == 1);
    CHECK(hook_runtime_coverage(text, sizeof(text)) > 0);
    printf("%s", text);
}

static void arguments(void)
{
    CHECK(hook_runtime_set_event_handler(BOTH, 0, NULL, NULL) == HOOK_RUNTIME_INVALID);
    CHECK(hook_runtime_set_event_handler(0, 0, note, NULL) == HOOK_RUNTIME_INVALID);
    void *p;
    CHECK(hook_runtime_set_event_handler(BOTH | HOOK_RUNTIME_EVENT_NO_INSTALL, 0, note, &record) == 0);
    CHECK(cudaMalloc(&p, 16) == 0 && record.count == 0);
    CHECK(hook_runtime_install() == 0);
    /* No more releases, then nothing at all. */
    hook_runtime_unset_event_handler(HOOK_RUNTIME_EVENT_FREE, note, &record);
    CHECK(cudaFree(p) == 0 && cudaMalloc(&p, 16) == 0);
    CHECK(record.count == 1 && record.events[0].kind == 1);
    hook_runtime_unset_event_handler(HOOK_RUNTIME_EVENT_ALLOC, note, &record);
    CHECK(cudaFree(p) == 0 && cudaMalloc(&p, 16) == 0);
    CHECK(record.count == 1);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    const char *part = argv[1];
    if (strcmp(part, "existing") == 0)
        existing();
    else if (strcmp(part, "existing_unasked") == 0)
        existing_unasked();
    else if (strcmp(part, "contexts") == 0)
        contexts();
    else if (strcmp(part, "forks") == 0)
        forks();
    else if (strcmp(part, "end") == 0)
        end();
    else if (strcmp(part, "ways") == 0)
        ways(strcmp(argv[2], "reloc") != 0);
    else if (strcmp(part, "two") == 0)
        two(argv[2]);
    else if (strcmp(part, "refuse") == 0)
        refuse();
    else if (strcmp(part, "arguments") == 0)
        arguments();
    else
        return 2;
    printf("passed\n");
    return 0;
}
