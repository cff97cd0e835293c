#include "runner/agent/process/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

static void append(dt_environment *environment, char *item)
{
    if (environment->count + 2 > environment->capacity) {
        environment->capacity = environment->capacity != 0 ? 2 * environment->capacity : 64;
        environment->items =
            dt_realloc(environment->items, environment->capacity, sizeof(environment->items[0]));
    }
    DT_ASSERT(item != NULL);
    environment->items[environment->count++] = item;
    environment->items[environment->count] = NULL;
}

void dt_environment_init(dt_environment *environment)
{
    memset(environment, 0, sizeof(*environment));
    for (char **item = environ; *item != NULL; item++)
        append(environment, dt_strdup(*item));
}

void dt_environment_copy(dt_environment *out, const dt_environment *from)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < from->count; i++)
        append(out, dt_strdup(from->items[i]));
}

void dt_environment_release(dt_environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->items[i]);
    free(environment->items);
    memset(environment, 0, sizeof(*environment));
}

void dt_environment_set(dt_environment *environment, const char *name, const char *value)
{
    size_t length = strlen(name);
    char *item = NULL;

    if (asprintf(&item, "%s=%s", name, value) < 0)
        item = NULL;
    DT_ASSERT(item != NULL);
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], item, length + 1) == 0) {
            free(environment->items[i]);
            environment->items[i] = item;
            return;
        }
    append(environment, item);
}

void dt_environment_set_int(dt_environment *environment, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    dt_environment_set(environment, name, text);
}

void dt_environment_unset(dt_environment *environment, const char *start)
{
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], start, strlen(start)) == 0) {
            free(environment->items[i]);
            environment->items[i--] = environment->items[--environment->count];
            environment->items[environment->count] = NULL;
        }
}

const char *dt_environment_get(const dt_environment *environment, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], name, length) == 0 &&
            environment->items[i][length] == '=')
            return environment->items[i] + length + 1;
    return NULL;
}
