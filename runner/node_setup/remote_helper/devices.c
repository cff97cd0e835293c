/* devices: lists the NVIDIA GPUs that nvidia-smi reports; if it fails, those in the driver's files,
 * which do not have the memory sizes:
 *
 *   /proc/driver/nvidia/version
 *       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  ..."
 *   /proc/driver/nvidia/gpus/BUS/information
 *       "Model: \t\t NVIDIA H100 80GB HBM3"
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/file.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

#define ASK_SECONDS  6.0 /* without persistence mode nvidia-smi first loads the driver */
#define ANSWER_BYTES ((size_t)64 << 10)
#define FILE_BYTES   ((size_t)64 << 10)
#define DRIVER       "/proc/driver/nvidia"

/* Runs a program and appends its stdout; false if it cannot be run, fails or takes too long. */
static bool ask(dt_strbuf *out, const char *const *argv)
{
    int code;

    return dt_child_run(
               &code,
               &(dt_child_call){
                   .argv = argv, .out = out, .most_bytes = ANSWER_BYTES, .seconds = ASK_SECONDS},
               NULL) == DT_OK &&
           code == 0;
}

/* Parses a line of nvidia-smi, "535.104.05, 81559, 80000, NVIDIA H100 80GB HBM3": driver, total and
 * free MiB, name. */
static void add_device(json_t *devices, char *line, char *driver, size_t size)
{
    char *field[4] = {line, NULL, NULL, NULL};

    for (int i = 1; i < 4; i++) {
        char *comma = strchr(field[i - 1], ',');

        if (comma == NULL)
            return;
        *comma = '\0';
        field[i] = comma + 1 + strspn(comma + 1, " ");
    }
    snprintf(driver, size, "%s", field[0]);
    json_array_append_new(devices,
                          json_pack("{s:s, s:I, s:I}", "name", field[3], "memory_bytes",
                                    (json_int_t)strtoll(field[1], NULL, 10) << 20, "free_bytes",
                                    (json_int_t)strtoll(field[2], NULL, 10) << 20));
}

/* Copies the first word that is a number with a point, such as "535.104.05". */
static void read_driver_version(char *driver, size_t size)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    (void)dt_file_read(&text, DRIVER "/version", FILE_BYTES, NULL);
    for (const char *word = text.data; *word != '\0'; word += strspn(word, " \t\n")) {
        size_t length = strcspn(word, " \t\n");

        if (isdigit((unsigned char)*word) && memchr(word, '.', length) != NULL) {
            snprintf(driver, size, "%.*s", (int)length, word);
            break;
        }
        word += length;
    }
    dt_strbuf_release(&text);
}

/* Adds a device for each folder in gpus/: one per GPU that this machine, or container, may use. */
static void add_driver_files(json_t *devices)
{
    static const char model[] = "Model:";
    DIR *gpus = opendir(DRIVER "/gpus");
    struct dirent *entry;
    dt_strbuf path, text;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    while (gpus != NULL && (entry = readdir(gpus)) != NULL) {
        char *name, *end;

        if (entry->d_name[0] == '.')
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, DRIVER "/gpus/%s/information", entry->d_name);
        if (dt_file_read(&text, path.data, FILE_BYTES, NULL) != DT_OK)
            continue;
        name = strstr(text.data, model);
        name = name != NULL ? name + sizeof(model) - 1 : text.data + text.length;
        name += strspn(name, " \t");
        end = name + strcspn(name, "\n");
        *end = '\0';
        json_array_append_new(devices,
                              json_pack("{s:s}", "name", *name != '\0' ? name : "NVIDIA GPU"));
    }
    if (gpus != NULL)
        closedir(gpus);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
}

json_t *dt_remote_helper_devices(char *driver, size_t size)
{
    static const char *const argv[] = {"nvidia-smi",
                                       "--query-gpu=driver_version,memory.total,memory.free,name",
                                       "--format=csv,noheader,nounits", NULL};
    json_t *devices = json_array();
    dt_strbuf text;

    driver[0] = '\0';
    dt_strbuf_init(&text);
    if (dt_file_exists(DRIVER "/version")) {
        snprintf(driver, size, "unknown");
        read_driver_version(driver, size);
        if (ask(&text, argv))
            for (char *line = text.data, *next; line != NULL && line[0] != '\0'; line = next) {
                next = strchr(line, '\n');
                if (next != NULL)
                    *next++ = '\0';
                add_device(devices, line, driver, size);
            }
        if (json_array_size(devices) == 0)
            add_driver_files(devices);
    }
    dt_strbuf_release(&text);
    return devices;
}
