/* Checked. A success proves that nvml.h declares nvmlDeviceGetGpuFabricInfo. Since 12.0
 * (driver 525). Needed by: cuda_ipc, to recognise multi-node NVLink. */
#include <nvml.h>

int main(void)
{
#ifndef nvmlDeviceGetGpuFabricInfo
    (void)nvmlDeviceGetGpuFabricInfo;
#endif
    return 0;
}
