/*
 * Prints what a library allocates and frees on the GPU:
 *
 *     cc events.c -I include -L target/debug -lucm_cuda -ldl -o events
 *     LD_LIBRARY_PATH=target/debug ./events LIBRARY FUNCTION
 *
 * LIBRARY is opened and its FUNCTION called, without arguments.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <hook_runtime.h>

static void print_event(const hook_runtime_event_t *event, void *argument)
{
    const char *what = event->kind == 1 ? "allocated" : "freed";
    fprintf((FILE *)argument, "%s %p %lu by %s\n", what, event->address, (unsigned long)event->size, event->symbol);
}

int main(int argc, char **argv)
{
    const int events = HOOK_RUNTIME_EVENT_ALLOC | HOOK_RUNTIME_EVENT_FREE;
    void (*function)(void);
    void *library, *symbol;

    if (argc != 3) {
        fprintf(stderr, "usage: %s LIBRARY FUNCTION\n", argv[0]);
        return 2;
    }
    if (hook_runtime_set_event_handler(events, 0, print_event, stdout) != HOOK_RUNTIME_OK)
        return 1;
    library = dlopen(argv[1], RTLD_NOW);
    symbol = library ? dlsym(library, argv[2]) : NULL;
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    memcpy(&function, &symbol, sizeof(function));
    function();
    hook_runtime_unset_event_handler(events, print_event, stdout);
    return 0;
}
