/* Compiled, and must be refused. A success proves that the compiler accepts anything, so
 * that its "yes" means nothing. Needed by: every run. */
#error "a compiler that accepts this does not compile"

int main(void)
{
    return 1 +;
}
