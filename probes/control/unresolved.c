/* Linked, and must be refused. A success proves that the linker lets missing symbols
 * pass (as with --unresolved-symbols=ignore-all), so that no library can be looked for.
 * Needed by: every run. */
char ucx_configure_is_defined_nowhere(void);

int main(void)
{
    return ucx_configure_is_defined_nowhere();
}
