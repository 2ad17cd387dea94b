/* Compiled and linked. A success proves that the compiler and its flags can build a
 * program at all: a "no" of another probe then means something. Needed by: every run. */
int main(void)
{
    return 0;
}
