/* A variable of each thread with the name of a function that is hooked: slots of its kind
 * hold no address, and must be left alone. */
#ifdef DEFINE
__thread int cudaMalloc = 42;
__thread int cudaFree = 43;
#else
extern __thread int cudaMalloc, cudaFree;
int sum(void) { return cudaMalloc + cudaFree; }
#endif
