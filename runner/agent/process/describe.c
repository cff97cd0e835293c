#include "runner/agent/process/describe.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/agent/rank/text.h"

#define FILE_BYTES   ((size_t)64 << 10)
#define STACK_FRAMES 24

const char *dt_process_state_words(char state)
{
    static const struct {
        char letter;
        const char *words;
    } states[] = {
        {'R', "running"},
        {'S', "waiting"},
        {'D', "in an uninterruptible kernel wait (a disk, a driver, a network file system)"},
        {'T', "stopped by a signal"},
        {'t', "held by a debugger"},
        {'Z', "dead, but not reaped yet"},
        {'I', "idle"},
    };

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (states[i].letter == state)
            return states[i].words;
    return "in an unknown state";
}

/* Reads a file of a thread as clean text without its newline; false if not readable. */
static bool read_of(dt_strbuf *out, dt_strbuf *raw, pid_t pid, long thread, const char *name)
{
    char path[96];
    size_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%ld/%s", (int)pid, thread, name);
    dt_strbuf_reset(out);
    if (dt_file_read(raw, path, FILE_BYTES, NULL) != DT_OK)
        return false;
    length = raw->length;
    while (length > 0 && raw->data[length - 1] == '\n')
        length--;
    dt_text_clean(out, raw->data, length, false);
    return true;
}

/* Returns the wait channel; "0" means none. */
static json_t *wchan_of(pid_t pid, long thread, dt_strbuf *text, dt_strbuf *raw)
{
    bool known = read_of(text, raw, pid, thread, "wchan") && strcmp(text->data, "0") != 0;

    return json_string(known ? text->data : "");
}

static char state_of(pid_t pid, long thread, dt_strbuf *text, dt_strbuf *raw)
{
    const char *close_paren;

    if (!read_of(text, raw, pid, thread, "stat"))
        return '?';
    close_paren = strrchr(text->data, ')');
    return close_paren != NULL && close_paren[1] == ' ' ? close_paren[2] : '?';
}

/* Parses "[<0>] futex_wait+0x5a/0x90" lines, without the part before the name. */
static json_t *stack_of(pid_t pid, long thread, dt_strbuf *text, dt_strbuf *raw)
{
    json_t *frames = json_array();
    char *line, *rest = NULL;

    if (!read_of(text, raw, pid, thread, "stack"))
        return frames;
    for (line = strtok_r(text->data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *name = strstr(line, "] ");

        if (json_array_size(frames) < STACK_FRAMES)
            json_array_append_new(frames, json_string(name != NULL ? name + 2 : line));
    }
    return frames;
}

static json_t *thread_of(pid_t pid, long thread, dt_strbuf *text, dt_strbuf *raw)
{
    char state[2] = {state_of(pid, thread, text, raw), '\0'};
    json_t *out = json_object();

    json_object_set_new(out, "tid", json_integer(thread));
    read_of(text, raw, pid, thread, "comm");
    json_object_set_new(out, "name", json_string(text->data));
    json_object_set_new(out, "state", json_string(state));
    json_object_set_new(out, "wchan", wchan_of(pid, thread, text, raw));
    read_of(text, raw, pid, thread, "syscall");
    json_object_set_new(out, "syscall", json_string(text->data));
    json_object_set_new(out, "kernel_stack", stack_of(pid, thread, text, raw));
    return out;
}

json_t *dt_process_describe(pid_t pid)
{
    json_t *out = json_object(), *threads = json_array();
    dt_process process = {.state = 'Z'};
    struct dirent *entry;
    int64_t count = 0;
    dt_strbuf text, raw;
    char path[64], state[2];
    DIR *dir;

    dt_strbuf_init(&text);
    dt_strbuf_init(&raw);
    (void)dt_process_read(&process, pid);
    state[0] = process.state;
    state[1] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (count++ < DT_DESCRIBE_THREADS)
            json_array_append_new(threads,
                                  thread_of(pid, strtol(entry->d_name, NULL, 10), &text, &raw));
    }
    if (dir != NULL)
        closedir(dir);
    json_object_set_new(out, "pid", json_integer(pid));
    json_object_set_new(out, "state", json_string(state));
    json_object_set_new(out, "state_words", json_string(dt_process_state_words(process.state)));
    json_object_set_new(out, "wchan", wchan_of(pid, pid, &text, &raw));
    json_object_set_new(out, "cpu_seconds",
                        json_real((double)process.cpu_ticks / (double)sysconf(_SC_CLK_TCK)));
    json_object_set_new(out, "thread_count", json_integer(count));
    json_object_set_new(out, "threads", threads);
    dt_strbuf_release(&text);
    dt_strbuf_release(&raw);
    return out;
}

/* --- a process that is about to be ended */

/* True for a thread inside sleep(): the wait channel is not readable everywhere. */
static bool is_sleeping(const char *wchan, const char *call)
{
    long number = strtol(call, NULL, 10);
    bool known = call[0] >= '0' && call[0] <= '9';

#ifdef SYS_nanosleep
    if (known && number == SYS_nanosleep)
        return true;
#endif
    return strstr(wchan, "nanosleep") != NULL || (known && number == SYS_clock_nanosleep);
}

json_t *dt_process_describe_briefly(pid_t pid)
{
    dt_strbuf wchan, call, raw;
    const char *words = "waited";
    char state[2] = "";
    int suspicion = 0;
    json_t *out;

    dt_strbuf_init(&wchan);
    dt_strbuf_init(&call);
    dt_strbuf_init(&raw);
    state[0] = state_of(pid, pid, &wchan, &raw);
    read_of(&call, &raw, pid, pid, "syscall");
    if (!read_of(&wchan, &raw, pid, pid, "wchan") || strcmp(wchan.data, "0") == 0)
        dt_strbuf_reset(&wchan);
    if (state[0] == 'T' || state[0] == 't') {
        dt_strbuf_reset(&wchan); /* it tells nothing more */
        suspicion = 4;
        words = state[0] == 'T' ? "was stopped by a signal" : "was held by a debugger";
    } else if (state[0] == 'D') {
        suspicion = 3;
        words = "was blocked in the kernel";
    } else if (is_sleeping(wchan.data, call.data)) {
        suspicion = 2;
        words = "slept";
    } else if (state[0] == 'R') {
        suspicion = 1;
        words = "computed";
    }
    out = json_pack("{s:s, s:s, s:i, s:s}", "state", state, "words", words, "suspicion", suspicion,
                    "wchan", wchan.data);
    dt_strbuf_release(&wchan);
    dt_strbuf_release(&call);
    dt_strbuf_release(&raw);
    return out;
}

bool dt_process_handles(pid_t pid, int number)
{
    unsigned long long caught = 0;
    const char *line;
    dt_strbuf text;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    dt_strbuf_init(&text);
    if (dt_file_read(&text, path, FILE_BYTES, NULL) == DT_OK &&
        (line = strstr(text.data, "\nSigCgt:")) != NULL)
        caught = strtoull(line + strlen("\nSigCgt:"), NULL, 16);
    dt_strbuf_release(&text);
    return (caught >> (number - 1) & 1) != 0;
}
