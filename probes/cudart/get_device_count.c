/* Linked with -lcudart. A success proves that the shared runtime exports
 * cudaGetDeviceCount. In every release. Needed by: the memory hooks and the performance
 * test. */
/* Declared by hand: the question is about the library, not about a header. */
char cudaGetDeviceCount(void);

int main(void)
{
    return cudaGetDeviceCount();
}
