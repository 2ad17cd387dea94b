/*
 * Memory events of CUDA: what a program allocates and frees, told as it happens.
 *
 * Link to libucm_cuda, or open it and look the functions up. Made from the functions
 * themselves by `tests/header.rs`, not to be edited.
 */

#ifndef HOOK_RUNTIME_H
#define HOOK_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/*
 Kind of event: memory was allocated. It is told after the call.
 */
#define HOOK_RUNTIME_EVENT_ALLOC (1 << 20)

/*
 Kind of event: memory is freed. It is told before the call.
 */
#define HOOK_RUNTIME_EVENT_FREE (1 << 21)

/*
 With the kinds: no hooks are to be installed now.
 */
#define HOOK_RUNTIME_EVENT_NO_INSTALL (1 << 24)

/*
 With `HOOK_RUNTIME_EVENT_ALLOC`: what is allocated already is told at once.
 */
#define HOOK_RUNTIME_EVENT_EXISTING (1 << 25)

/*
 Class of memory: not known; CUDA can be asked.
 */
#define HOOK_RUNTIME_MEMORY_UNKNOWN 0

/*
 Class of memory: a device's.
 */
#define HOOK_RUNTIME_MEMORY_DEVICE 1

/*
 Class of memory: managed.
 */
#define HOOK_RUNTIME_MEMORY_MANAGED 2

/*
 Class of memory: the host's, page-locked.
 */
#define HOOK_RUNTIME_MEMORY_HOST 3

/*
 Status: done.
 */
#define HOOK_RUNTIME_OK 0

/*
 Status: not done; a message is logged.
 */
#define HOOK_RUNTIME_ERROR -1

/*
 Status: the arguments make no sense.
 */
#define HOOK_RUNTIME_INVALID -5

/*
 One event. It is valid until the handler returns.
 */
typedef struct {
  /*
   1: allocated; 2: freed.
   */
  uint32_t kind;
  /*
   One of `HOOK_RUNTIME_MEMORY_*`.
   */
  uint32_t memory_class;
  /*
   The first address.
   */
  void *address;
  /*
   The number of bytes; 0 if not known.
   */
  size_t size;
  /*
   The function that was called, or `existing`. The text stays for ever.
   */
  const char *symbol;
} hook_runtime_event_t;

/*
 A handler. It is called by the thread that allocates or frees, must not throw, and may
 itself allocate and free. Its second argument is the one that it was set with.
 */
typedef void (*hook_runtime_handler_t)(const hook_runtime_event_t *event, void *argument);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the hook runtime.
 */
const char *hook_runtime_version(void);

/*
 Installs hooks as the environment says. 0: done; -1: not done, and a message is logged.
 */
int hook_runtime_install(void);

/*
 Takes all hooks out again.
 */
void hook_runtime_uninstall(void);

/*
 Sets `handler` for the kinds of `events` (`HOOK_RUNTIME_EVENT_*`, joined by `|`), and
 installs hooks unless `HOOK_RUNTIME_EVENT_NO_INSTALL` is among them. Handlers of lower
 `priority` are called first. Returns `HOOK_RUNTIME_OK`, or a negative status.

 `handler` may be called by any thread, with `argument`, until it is unset.
 */
int hook_runtime_set_event_handler(int events,
                                   int priority,
                                   hook_runtime_handler_t handler,
                                   void *argument);

/*
 Ends what `hook_runtime_set_event_handler` began with the same handler and argument, for
 the kinds of `events`. On return the handler does not run any more, unless this is called
 inside a handler.
 */
void hook_runtime_unset_event_handler(int events, hook_runtime_handler_t handler, void *argument);

/*
 Calls `handler` with each event and `argument`. 0 if there is no handler, else the
 number of the subscription.

 `handler` may be called by any thread, with `argument`, until the subscription ends.
 */
uint64_t hook_runtime_subscribe(int priority, hook_runtime_handler_t handler, void *argument);

/*
 Ends a subscription. 0: ended; -1: there is none with this number.
 */
int hook_runtime_unsubscribe(uint64_t subscription);

/*
 Writes the coverage report into `buffer`, cut off to `length` bytes, and returns the
 length of the whole text, as `snprintf` does.

 `buffer` has room for `length` bytes; it may be null if `length` is 0.
 */
size_t hook_runtime_coverage(char *buffer, size_t length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOOK_RUNTIME_H */
