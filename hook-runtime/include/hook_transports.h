/*
 * The transports over CUDA: copies between host and device memory, memory of other
 * processes, and gdrcopy.
 *
 * Link to libuct_cuda, and to libuct_cuda_gdrcopy for `hook_gdr_*`, or open them and look
 * the functions up. Made from the functions themselves by `tests/header.rs`, not to be edited.
 */

#ifndef HOOK_TRANSPORTS_H
#define HOOK_TRANSPORTS_H

#include <stddef.h>
#include <stdint.h>

/*
 Status: done.
 */
#define HOOK_TRANSPORT_OK 0

/*
 Status: a copy goes on; its token will be reported.
 */
#define HOOK_TRANSPORT_PENDING 1

/*
 Status: not done; `hook_transport_error` says why.
 */
#define HOOK_TRANSPORT_ERROR -1

/*
 Kind of memory: the host's, unknown to CUDA.
 */
#define HOOK_MEMORY_HOST 0

/*
 Kind of memory: the host's, page-locked.
 */
#define HOOK_MEMORY_PINNED 1

/*
 Kind of memory: a device's.
 */
#define HOOK_MEMORY_DEVICE 2

/*
 Kind of memory: managed.
 */
#define HOOK_MEMORY_MANAGED 3

/*
 Makes copies, for one thread at a time.
 */
typedef struct hook_copier_t hook_copier_t;

/*
 Memory that is known to other processes for as long as this is there.
 */
typedef struct hook_export_t hook_export_t;

/*
 gdrcopy, opened.
 */
typedef struct hook_gdr_t hook_gdr_t;

/*
 Memory of another process, open for as long as this is there.
 */
typedef struct hook_mapping_t hook_mapping_t;

/*
 What a transport is and can do.
 */
typedef struct {
  /*
   Its name, which is UCX's.
   */
  char name[16];
  /*
   What it is for.
   */
  char purpose[112];
  /*
   The largest copy that is complete when the call returns; 0: there is none.
   */
  size_t max_short;
  /*
   The largest copy that goes on after the call; 0: there is none.
   */
  size_t max_zcopy;
  /*
   Not 0: the other side's memory can be written.
   */
  int put;
  /*
   Not 0: it can be read.
   */
  int get;
  /*
   Not 0: the memory of other processes on this machine; 0: this process's own.
   */
  int other_processes;
} hook_transport_t;

/*
 A range of memory of one kind. It keeps nothing alive.
 */
typedef struct {
  /*
   The first address.
   */
  void *address;
  /*
   The number of bytes.
   */
  size_t length;
  /*
   The context that copies are made in; 0 for host memory.
   */
  size_t context;
  /*
   One of `HOOK_MEMORY_*`.
   */
  uint32_t kind;
  /*
   The device that it lies on; -1 if that is not one device's.
   */
  int32_t device;
} hook_region_t;

/*
 Is told of each copy that ends: its token, and whether it was made (`HOOK_TRANSPORT_OK`
 or `HOOK_TRANSPORT_ERROR`).
 */
typedef void (*hook_report_t)(uint64_t token, int status, void *argument);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the hook runtime that the module was built from.
 */
const char *uct_cuda_version(void);

/*
 How many transports libuct_cuda holds.
 */
unsigned int uct_cuda_transports(void);

/*
 Describes transport `number` of libuct_cuda, from 0 on.

 `transport` has room for the description.
 */
int uct_cuda_describe(unsigned int number, hook_transport_t *transport);

/*
 Seconds that a copy of `size` bytes between two kinds of memory (`HOOK_MEMORY_*`) is
 estimated to take with transport `number`; below 0 if it does not do that.
 */
double uct_cuda_estimate(unsigned int number, uint32_t from, uint32_t to, size_t size);

/*
 Writes what the last failed call of this thread has met into `buffer`, cut off to `length`
 bytes, and returns the length of the whole text, as `snprintf` does.

 `buffer` has room for `length` bytes; it may be null if `length` is 0.
 */
size_t hook_transport_error(char *buffer, size_t length);

/*
 cuda_copy: makes a copier, for one thread at a time, with the settings of the environment.
 Null on failure.
 */
hook_copier_t *hook_copier_create(void);

/*
 Waits for the copies of a copier and gives it back.

 `copier` came from `hook_copier_create`, and is given back once; it may be null.
 */
void hook_copier_destroy(hook_copier_t *copier);

/*
 Finds out what kind of memory `length` bytes at `address` are. A region stays right until
 its memory is freed.

 `copier` is alive and used by this thread alone; `region` has room for the answer.
 */
int hook_copier_region(hook_copier_t *copier, void *address, size_t length, hook_region_t *region);

/*
 Begins to copy `size` bytes. `HOOK_TRANSPORT_PENDING`: `token` will be reported when it is
 over; `HOOK_TRANSPORT_OK`: it is over now, and not reported.

 Until then both ranges stay allocated, nobody writes to the source, and nobody else
 touches the destination.
 */
int hook_copier_copy(hook_copier_t *copier,
                     const hook_region_t *to,
                     size_t to_offset,
                     const hook_region_t *from,
                     size_t from_offset,
                     size_t size,
                     uint64_t token);

/*
 Copies `size` bytes and returns when that is over, without waiting for copies that were
 begun before.

 Meanwhile nobody writes to the source, and nobody else touches the destination.
 */
int hook_copier_copy_now(hook_copier_t *copier,
                         const hook_region_t *to,
                         size_t to_offset,
                         const hook_region_t *from,
                         size_t from_offset,
                         size_t size);

/*
 Hands small copies that were gathered to the driver, and reports copies that are over as
 far as one look tells. Returns how many, or `HOOK_TRANSPORT_ERROR`.

 `copier` is alive and used by this thread alone; `report` may be called with `argument`.
 */
int hook_copier_progress(hook_copier_t *copier, hook_report_t report, void *argument);

/*
 Waits until every copy that was begun is over, and reports them.

 As for `hook_copier_progress`.
 */
int hook_copier_flush(hook_copier_t *copier, hook_report_t report, void *argument);

/*
 cuda_ipc: makes device memory known to other processes, with the allocation that it lies
 in. Null on failure. Memory of a pool has to be closed by the others before it is freed.
 */
hook_export_t *hook_ipc_export(void *address, size_t length);

/*
 Takes the memory back; what is open elsewhere stays open.

 `exported` came from `hook_ipc_export`, and is given back once; it may be null.
 */
void hook_ipc_unexport(hook_export_t *exported);

/*
 Writes at most `length` bytes of the key, which other processes open the memory with, into
 `buffer`. Returns the length of the whole key.

 `buffer` has room for `length` bytes; it may be null if `length` is 0.
 */
size_t hook_ipc_key(const hook_export_t *exported, void *buffer, size_t length);

/*
 Where the exported address lies in the memory that the key stands for.

 `exported` is alive.
 */
size_t hook_ipc_offset(const hook_export_t *exported);

/*
 Opens the memory of another process that a key stands for. Null on failure.

 `key` leads to `length` bytes.
 */
hook_mapping_t *hook_ipc_open(const void *key, size_t length);

/*
 Where that memory is in this process; its length is written to `length` unless that is
 null.

 `mapping` is alive.
 */
void *hook_ipc_address(const hook_mapping_t *mapping, size_t *length);

/*
 Closes it. The mapping may be kept for the next time, as the environment says.

 `mapping` came from `hook_ipc_open`, is given back once, and no copy uses it; it may be null.
 */
void hook_ipc_close(hook_mapping_t *mapping);

/*
 The version of the hook runtime that the module was built from.
 */
const char *uct_cuda_gdrcopy_version(void);

/*
 How many transports libuct_cuda_gdrcopy holds.
 */
unsigned int uct_cuda_gdrcopy_transports(void);

/*
 Describes transport `number` of libuct_cuda_gdrcopy, from 0 on.

 `transport` has room for the description.
 */
int uct_cuda_gdrcopy_describe(unsigned int number, hook_transport_t *transport);

/*
 Writes what the last failed call of this thread has met into `buffer`, as
 `hook_transport_error` does for libuct_cuda.

 `buffer` has room for `length` bytes; it may be null if `length` is 0.
 */
size_t hook_gdr_error(char *buffer, size_t length);

/*
 gdr_copy: opens libgdrapi. Null on failure.
 */
hook_gdr_t *hook_gdr_open(void);

/*
 Gives everything that was registered back, and closes it.

 `gdr` came from `hook_gdr_open`, and is given back once; it may be null.
 */
void hook_gdr_close(hook_gdr_t *gdr);

/*
 Registers `size` bytes of device memory, unless that is done already. Any thread may call
 it, and the functions below.

 `gdr` is alive.
 */
int hook_gdr_register(const hook_gdr_t *gdr, void *address, size_t size);

/*
 Gives up what is registered of `size` bytes of device memory: to be called before they are
 freed.

 `gdr` is alive.
 */
int hook_gdr_forget(const hook_gdr_t *gdr, void *address, size_t size);

/*
 Writes `size` bytes to registered device memory. Complete on return.

 `gdr` is alive; `from` leads to `size` bytes.
 */
int hook_gdr_put(const hook_gdr_t *gdr, void *address, const void *from, size_t size);

/*
 Reads `size` bytes of registered device memory. Complete on return.

 `gdr` is alive; `to` has room for `size` bytes.
 */
int hook_gdr_get(const hook_gdr_t *gdr, void *to, void *address, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOOK_TRANSPORTS_H */
