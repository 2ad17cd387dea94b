/* Checked. A success proves that gdrapi.h declares gdr_copy_to_mapping. Since gdrcopy
 * 2.0. Needed by: gdr_copy, which otherwise uses the older names. */
#include <gdrapi.h>

int main(void)
{
#ifndef gdr_copy_to_mapping
    (void)gdr_copy_to_mapping;
#endif
    return 0;
}
