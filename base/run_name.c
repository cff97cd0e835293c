#include "base/run_name.h"

#include <string.h>

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
