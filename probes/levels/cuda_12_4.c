/* Checked. A success proves that nvml.h has the versioned form of fabric information.
 * Since 12.4 (driver 550). Needed by: later versions of cuda_ipc, which prefer it. */
#include <nvml.h>

/* Names are mentioned before they are called, since some compilers declare an
 * unknown function by themselves when it is called. */
int main(void)
{
    nvmlDevice_t device       = 0;
    nvmlGpuFabricInfoV_t info = {0};

    info.version = nvmlGpuFabricInfo_v2;
    (void)&nvmlDeviceGetGpuFabricInfoV;
    return (int)nvmlDeviceGetGpuFabricInfoV(device, &info);
}
