/* Compiled. A success proves that gdrapi.h is there and compiles as C. In every release
 * of gdrcopy. Needed by: gdr_copy. */
#include <gdrapi.h>

int main(void)
{
    return 0;
}
