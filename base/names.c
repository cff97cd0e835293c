/* names: valid names of runs, names of devices, and the edit distance of two words. */
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

/* --- names of runs */

bool dt_run_name_is_valid(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strlen(name);

    return length >= 1 && length <= DT_RUN_NAME_MAX_BYTES && strspn(name, letters) == length &&
           name[0] != '.' && name[0] != '-' && strcmp(name, DT_RUN_LAST) != 0;
}

const char *dt_run_name_expected(const char *name)
{
    return strcmp(name, DT_RUN_LAST) == 0
               ? "a name other than '" DT_RUN_LAST "', which stands for the newest run"
               : "1 to 64 letters, digits, '.', '_' or '-', the first neither '.' nor '-'";
}

/* --- devices */

#define GPU_DIGITS_MAX 4

int dt_device_gpu(const char *name)
{
    size_t length = strlen(DT_DEVICE_GPU), digits;

    if (name == NULL || strncmp(name, DT_DEVICE_GPU, length) != 0)
        return -1;
    digits = strspn(name + length, "0123456789");
    return digits > 0 && digits <= GPU_DIGITS_MAX && name[length + digits] == '\0'
               ? (int)strtol(name + length, NULL, 10)
               : -1;
}

/* --- edit distance */

static int smallest(int a, int b, int c)
{
    int least = a < b ? a : b;

    return least < c ? least : c;
}

int dt_distance(const char *a, const char *b)
{
    int rows[3][DT_DISTANCE_MAX];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    size_t height = strlen(a), width = strlen(b);

    if (height >= DT_DISTANCE_MAX || width >= DT_DISTANCE_MAX)
        return DT_DISTANCE_MAX;
    for (size_t j = 0; j <= width; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= height; i++) {
        int *free_row = before;

        now[0] = (int)i;
        for (size_t j = 1; j <= width; j++) {
            int replace = last[j - 1] + (a[i - 1] != b[j - 1]);

            now[j] = smallest(last[j] + 1, now[j - 1] + 1, replace);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        before = last;
        last = now;
        now = free_row;
    }
    return last[width];
}
