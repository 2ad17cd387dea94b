/* Linked with -lgdrapi. A success proves that the library exports gdr_pin_buffer. In
 * every release of gdrcopy. Needed by: gdr_copy. */
/* Declared by hand: the question is about the library, not about a header. */
char gdr_pin_buffer(void);

int main(void)
{
    return gdr_pin_buffer();
}
