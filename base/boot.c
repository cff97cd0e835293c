#include "base/boot.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

char *dt_boot_id(char *out)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, out, DT_BOOT_ID_SIZE - 1) : -1;

    if (fd >= 0)
        close(fd);
    out[length > 0 ? length : 0] = '\0';
    out[strcspn(out, " \n")] = '\0';
    return out;
}

int64_t dt_boot_ms(void)
{
    struct timespec now;

    DT_ASSERT(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool dt_boot_differs(const char *before, const char *now)
{
    return before != NULL && now != NULL && before[0] != '\0' && now[0] != '\0' &&
           strcmp(before, now) != 0;
}
