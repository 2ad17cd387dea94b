/* Linked with -lcudart_static and what it needs. A success proves that the static
 * runtime is there. In every release; wheels have it since 12.9. Needed by: a test of
 * hooks in statically linked programs. */
/* Declared by hand: the question is about the library, not about a header. */
char cudaGetDeviceCount(void);

int main(void)
{
    return cudaGetDeviceCount();
}
