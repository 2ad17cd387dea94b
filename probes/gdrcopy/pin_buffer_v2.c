/* Checked. A success proves that gdrapi.h declares gdr_pin_buffer_v2. Since gdrcopy 2.5.
 * Needed by: gdr_copy, to ask for mappings through PCIe. */
#include <gdrapi.h>

int main(void)
{
#ifndef gdr_pin_buffer_v2
    (void)gdr_pin_buffer_v2;
#endif
    return 0;
}
