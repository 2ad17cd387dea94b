/* Linked with -lcuda. A success proves that the library exports
 * cuMemRetainAllocationHandle. Since 11.0. Needed by: cuda_copy, to tell virtual memory
 * from other memory. */
/* Declared by hand: the question is about the library, not about a header. */
char cuMemRetainAllocationHandle(void);

int main(void)
{
    return cuMemRetainAllocationHandle();
}
