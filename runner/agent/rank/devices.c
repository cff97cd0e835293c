#include "runner/agent/rank/devices.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const dt_devices_question[] = {"nvidia-smi", "--query-gpu=index,uuid,memory.used",
                                           "--format=csv,noheader,nounits", NULL};

const char *const dt_devices_watch[] = {
    "nvidia-smi",
    "--query-gpu=uuid,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu",
    "--format=csv,noheader,nounits", "--loop=" DT_DEVICES_WATCH_SECONDS, NULL};

dt_status dt_devices_parse(dt_devices *out, const char *answer, dt_error *err)
{
    memset(out, 0, sizeof(*out));
    for (const char *line = answer, *end; *line != '\0'; line = *end != '\0' ? end + 1 : end) {
        dt_device_memory *device = &out->items[out->count];
        long long index, megabytes;

        end = strchrnul(line, '\n');
        if (end == line)
            continue;
        if (out->count == DT_DEVICES_MAX ||
            sscanf(line, "%lld , %63[^, \n] , %lld", &index, device->uuid, &megabytes) != 3 ||
            index < 0 || megabytes < 0 || megabytes > (1LL << 40))
            return DT_FAIL(err, DT_ERR_CORRUPT, "unexpected output of nvidia-smi: '%.*s'",
                           (int)(end - line < 200 ? end - line : 200), line);
        device->index = index;
        device->used_bytes = device->baseline_bytes = (int64_t)megabytes << 20;
        out->count++;
    }
    return DT_OK;
}

/* True if `word`, an index or the start of a UUID, names the device. */
static bool is_meant(const dt_device_memory *device, const char *word, size_t length)
{
    char number[24];

    if (length == 0)
        return false;
    snprintf(number, sizeof(number), "%lld", (long long)device->index);
    if (isdigit((unsigned char)word[0]))
        return strlen(number) == length && strncmp(number, word, length) == 0;
    return strncmp(device->uuid, word, length) == 0;
}

static bool is_among(const dt_devices *devices, const dt_device_memory *device)
{
    for (int64_t i = 0; i < devices->count; i++)
        if (devices->items[i].index == device->index)
            return true;
    return false;
}

void dt_devices_keep_visible(dt_devices *devices, const char *visible)
{
    dt_devices kept = {.count = 0};

    if (visible == NULL)
        return;
    for (const char *word = visible, *end; *word != '\0'; word = *end != '\0' ? end + 1 : end) {
        end = strchrnul(word, ',');
        for (int64_t i = 0; i < devices->count; i++)
            if (is_meant(&devices->items[i], word, (size_t)(end - word)) &&
                !is_among(&kept, &devices->items[i]))
                kept.items[kept.count++] = devices->items[i];
    }
    *devices = kept;
}

void dt_devices_keep_used(dt_devices *devices, const bool used[DT_DEVICES_MAX])
{
    int64_t kept = 0;

    for (int64_t i = devices->count; i < DT_DEVICES_MAX; i++)
        if (used[i])
            return;
    for (int64_t i = 0; i < devices->count; i++)
        if (used[i])
            devices->items[kept++] = devices->items[i];
    devices->count = kept;
}

void dt_devices_update(dt_devices *devices, const dt_devices *now)
{
    for (int64_t i = 0; i < devices->count; i++)
        for (int64_t j = 0; j < now->count; j++)
            if (strcmp(devices->items[i].uuid, now->items[j].uuid) == 0)
                devices->items[i].used_bytes = now->items[j].used_bytes;
}

bool dt_devices_are_free(const dt_devices *devices)
{
    for (int64_t i = 0; i < devices->count; i++)
        if (devices->items[i].used_bytes >
            devices->items[i].baseline_bytes + DT_DEVICES_SLACK_BYTES)
            return false;
    return true;
}

json_t *dt_devices_watched(const dt_devices *devices, const char *line)
{
    static const struct {
        const char *name;
        double unit;
    } fields[] = {{"gpu_busy_percent", 1},
                  {"gpu_used_bytes", 1 << 20},
                  {"gpu_total_bytes", 1 << 20},
                  {"gpu_power_watts", 1},
                  {"gpu_temperature_c", 1}};
    const char *at = strchr(line, ',');
    json_t *out = NULL;

    for (int64_t i = 0; i < devices->count && at != NULL; i++)
        if (strlen(devices->items[i].uuid) == (size_t)(at - line) &&
            strncmp(devices->items[i].uuid, line, (size_t)(at - line)) == 0)
            out = json_pack("{s:I}", "index", (json_int_t)devices->items[i].index);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && out != NULL && at != NULL; i++) {
        char *end;
        double value = strtod(
            at + 1,
            &end); /* fails for "[N/A]", which the driver prints if it does not know a value */

        if (end != at + 1 && value >= 0)
            json_object_set_new(out, fields[i].name, json_real(value * fields[i].unit));
        at = strchr(at + 1, ',');
    }
    return out;
}

json_t *dt_devices_to_json(const dt_devices *devices)
{
    json_t *out = json_array();

    for (int64_t i = 0; i < devices->count; i++)
        json_array_append_new(
            out, json_pack("{s:I, s:I, s:I}", "index", (json_int_t)devices->items[i].index,
                           "baseline_bytes", (json_int_t)devices->items[i].baseline_bytes,
                           "used_bytes", (json_int_t)devices->items[i].used_bytes));
    return out;
}
