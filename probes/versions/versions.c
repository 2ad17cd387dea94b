/* Preprocessed, never compiled: each line that remains holds a version macro
 * and its value. Proves nothing but what the headers say of themselves; a
 * header that is not there leaves no line. Needed by: every report. */
#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif
#if __has_include(<nvml.h>)
#include <nvml.h>
#endif
#if __has_include(<gdrapi.h>)
#include <gdrapi.h>
#endif
#endif
#ifdef CUDA_VERSION
ucx_configure_version "CUDA_VERSION" CUDA_VERSION
#endif
#ifdef CUDART_VERSION
ucx_configure_version "CUDART_VERSION" CUDART_VERSION
#endif
#ifdef NVML_API_VERSION
ucx_configure_version "NVML_API_VERSION" NVML_API_VERSION
#endif
#ifdef GDR_API_MAJOR_VERSION
ucx_configure_version "GDR_API_MAJOR_VERSION" GDR_API_MAJOR_VERSION
#endif
#ifdef GDR_API_MINOR_VERSION
ucx_configure_version "GDR_API_MINOR_VERSION" GDR_API_MINOR_VERSION
#endif
