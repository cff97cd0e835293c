#define _GNU_SOURCE
#include "runner/agent/process/activity.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/agent/process/process.h"

#include "base/banned.h"

#define FILE_BYTES ((size_t)4 << 10)

/* Returns the state letter after the name; the name may contain parentheses and spaces. */
static char thread_state(pid_t pid, long thread, dt_strbuf *text)
{
    const char *close_paren;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task/%ld/stat", (int)pid, thread);
    if (dt_file_read(text, path, FILE_BYTES, NULL) != DT_OK)
        return '?';
    close_paren = strrchr(text->data, ')');
    return close_paren != NULL && close_paren[1] == ' ' ? close_paren[2] : '?';
}

static char state_of_threads(pid_t pid, dt_strbuf *text)
{
    struct dirent *entry;
    char path[32], found = 'S';
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir != NULL && found != 'R' && (entry = readdir(dir)) != NULL) {
        char state = isdigit((unsigned char)entry->d_name[0])
                         ? thread_state(pid, strtol(entry->d_name, NULL, 10), text)
                         : '?';

        if (state == 'R' || state == 'D')
            found = state;
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

/* Returns bytes read from and written to disks; 0 if not readable. (Page cache hits use
 * processor time and show there.) */
static int64_t disk_bytes(pid_t pid, dt_strbuf *text)
{
    static const char *const names[] = {"\nread_bytes: ", "\nwrite_bytes: "};
    int64_t sum = 0;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    if (dt_file_read(text, path, FILE_BYTES, NULL) != DT_OK)
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *at = strstr(text->data, names[i]);

        sum += at != NULL ? strtoll(at + strlen(names[i]), NULL, 10) : 0;
    }
    return sum;
}

bool dt_process_activity_read(dt_process_activity *out, pid_t pid)
{
    dt_process process;
    dt_strbuf text;

    if (!dt_process_read(&process, pid))
        return false;
    dt_strbuf_init(&text);
    out->cpu_seconds = (double)process.cpu_ticks / (double)sysconf(_SC_CLK_TCK);
    out->work = process.major_faults + disk_bytes(pid, &text);
    out->state =
        strchr("TtZX", process.state) != NULL ? process.state : state_of_threads(pid, &text);
    dt_strbuf_release(&text);
    return true;
}
