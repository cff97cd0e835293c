#include "recipes/fields/durations.h"

#include <string.h>

#include "recipes/fields/values.h"

bool dt_text_duration(double *seconds, const char *text)
{
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    size_t length = strlen(text);
    char number[64];

    if (dt_text_number(seconds, text))
        return true;
    if (length < 2 || length >= sizeof(number))
        return false;
    memcpy(number, text, length - 1);
    number[length - 1] = '\0';
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (text[length - 1] == units[i].letter && dt_text_number(seconds, number)) {
            *seconds *= units[i].seconds;
            return true;
        }
    return false;
}

bool dt_launcher_lost_seconds(double *seconds, const char *text)
{
    static const char stop_after[] = "stop_after ";

    *seconds = 0;
    if (strcmp(text, "continue") == 0)
        return true;
    return strncmp(text, stop_after, strlen(stop_after)) == 0 &&
           dt_text_duration(seconds, text + strlen(stop_after)) && *seconds > 0 &&
           *seconds <= DT_LAUNCHER_LOST_MAX_SECONDS;
}
