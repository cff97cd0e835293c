#include "runner/agent/process/kernel.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/agent/rank/text.h"

#define RECORD_BYTES 8192 /* size of a read; the kernel refuses smaller buffers for long records */
#define RECORDS_MAX  200000 /* limit, because the log may grow while we read */

bool dt_kernel_line_names(const char *line, pid_t pid)
{
    static const char *const before[] = {"process ", "pid=", "pid ", "["};
    char number[16];

    snprintf(number, sizeof(number), "%d", (int)pid);
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        for (const char *at = strstr(line, before[i]); at != NULL; at = strstr(at + 1, before[i])) {
            const char *end = at + strlen(before[i]);

            if (strncmp(end, number, strlen(number)) == 0 &&
                !isalnum((unsigned char)end[strlen(number)]) && end[strlen(number)] != '.')
                return true;
        }
    return false;
}

bool dt_kernel_line_is_oom(const char *line)
{
    return strcasestr(line, "out of memory") != NULL || strstr(line, "oom-kill") != NULL ||
           strstr(line, "oom_reaper") != NULL;
}

/* Returns the text of "6,1234,5678901,-;text\n KEY=value\n", up to the first newline; NULL if
 * there is none. */
static const char *text_of(char *record)
{
    char *text = strchr(record, ';');

    if (text == NULL)
        return NULL;
    *strchrnul(++text, '\n') = '\0';
    return text;
}

static void keep(json_t *lines, const char *text)
{
    dt_strbuf clean;

    dt_strbuf_init(&clean);
    dt_text_clean(&clean, text, strlen(text), false);
    if (json_array_size(lines) == DT_KERNEL_LINES)
        json_array_remove(lines, 0);
    json_array_append_new(lines, json_string(clean.data));
    dt_strbuf_release(&clean);
}

int dt_kernel_log_open(void)
{
    int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (log >= 0 && lseek(log, 0, SEEK_END) < 0) {
        close(log);
        return -1;
    }
    return log;
}

json_t *dt_kernel_log_lines(int log, pid_t pid)
{
    json_t *lines = json_array();
    char record[RECORD_BYTES];

    for (int i = 0; log >= 0 && i < RECORDS_MAX; i++) {
        ssize_t got = read(log, record, sizeof(record) - 1);
        const char *text;

        if (got < 0 && (errno == EPIPE || errno == EINTR))
            continue;
        if (got <= 0)
            break;
        record[got] = '\0';
        text = text_of(record);
        if (text != NULL && dt_kernel_line_names(text, pid))
            keep(lines, text);
    }
    return lines;
}

void dt_kernel_death_words(dt_strbuf *out, int wait_status)
{
    int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    const char *name = sigabbrev_np(number), *words = sigdescr_np(number);

    if (number != 0) {
        dt_strbuf_add_fmt(out, "killed by signal %d (%s%s, %s)", number, name != NULL ? "SIG" : "",
                          name != NULL ? name : "unknown", words != NULL ? words : "unknown");
        if (WCOREDUMP(wait_status))
            dt_strbuf_add_str(out, ", core dumped");
        return;
    }
    dt_strbuf_add_fmt(out, "exited with code %d", code);
    name = code > 128 ? sigabbrev_np(code - 128) : NULL;
    if (name != NULL)
        dt_strbuf_add_fmt(out, " (a shell reports SIG%s this way)", name);
    else if (code == 127 || code == 126)
        dt_strbuf_add_str(out, " (a shell reports this way that it cannot run a program)");
}
