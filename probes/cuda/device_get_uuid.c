/* Linked with -lcuda. A success proves that the library exports cuDeviceGetUuid under
 * its first name. Since 9.2; newer drivers keep it beside its second version. Needed by:
 * all CUDA support. */
/* Declared by hand: the question is about the library, not about a header. */
char cuDeviceGetUuid(void);

int main(void)
{
    return cuDeviceGetUuid();
}
