/* The headers that the bindings are made from. */
#include <cuda.h>
#include <cuda_runtime_api.h>
