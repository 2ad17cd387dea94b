/* Preprocessed, never compiled: each line that remains says one thing about
 * the compiler. A success proves who it is, and that it preprocesses. Needed
 * by: every run, before anything else is believed. */
#if defined(__NVCOMPILER)
ucx_configure_identity kind nvhpc
ucx_configure_identity version __NVCOMPILER_MAJOR__ __NVCOMPILER_MINOR__ __NVCOMPILER_PATCHLEVEL__
#elif defined(__clang__)
ucx_configure_identity kind clang
ucx_configure_identity version __clang_major__ __clang_minor__ __clang_patchlevel__
#elif defined(__GNUC__)
ucx_configure_identity kind gcc
ucx_configure_identity version __GNUC__ __GNUC_MINOR__ __GNUC_PATCHLEVEL__
#else
ucx_configure_identity kind other
ucx_configure_identity version 0
#endif
/* `linux` and machine names can be macros themselves, in GNU dialects. */
#undef linux
#undef gnu
#undef unknown
#if defined(__x86_64__)
ucx_configure_identity machine x86_64
#elif defined(__aarch64__)
ucx_configure_identity machine aarch64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
ucx_configure_identity machine powerpc64le
#elif defined(__riscv) && __riscv_xlen == 64
ucx_configure_identity machine riscv64
#elif defined(__i386__)
ucx_configure_identity machine i386
#else
ucx_configure_identity machine unknown
#endif
#if defined(__gnu_linux__)
ucx_configure_identity system linux gnu
#elif defined(__linux__)
ucx_configure_identity system linux
#else
ucx_configure_identity system unknown
#endif
#if defined(__SIZEOF_POINTER__)
ucx_configure_identity pointer __SIZEOF_POINTER__
#else
ucx_configure_identity pointer 0
#endif
#if defined(__cplusplus)
ucx_configure_identity language cplusplus
#endif
