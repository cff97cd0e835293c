#include "base/exit.h"

#include <stdio.h>
#include <string.h>

const char *dt_exit_words(char out[DT_EXIT_WORDS_BYTES], int code)
{
    const char *name = code < 0 ? sigabbrev_np(-code) : NULL;

    if (code >= 0)
        snprintf(out, DT_EXIT_WORDS_BYTES, "ended with exit code %d", code);
    else if (name != NULL)
        snprintf(out, DT_EXIT_WORDS_BYTES, "was ended by SIG%s (%s)", name, sigdescr_np(-code));
    else
        snprintf(out, DT_EXIT_WORDS_BYTES, "was ended by signal %d", -code);
    return out;
}

const char *dt_exit_words_of_shell(char out[DT_EXIT_WORDS_BYTES], int code)
{
    return dt_exit_words(out, code > 128 && code <= 128 + 64 ? 128 - code : code);
}
