/* describe: reads what the kernel tells about a process, from /proc, /dev/kmsg and the status of waitpid. */
#include "runner/agent/process/describe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "runner/agent/process/process.h"
#include "runner/agent/rank/output.h"

#define SMALL_FILE_BYTES ((size_t)4 << 10)
#define TREE_MOST        1000 /* processes */

/* Returns the state letter after the name; the name may contain parentheses and spaces. */
static char thread_state(pid_t pid, long thread, dt_strbuf *text)
{
    const char *close_paren;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task/%ld/stat", (int)pid, thread);
    if (dt_file_read(text, path, SMALL_FILE_BYTES, NULL) != DT_OK)
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
    if (dt_file_read(text, path, SMALL_FILE_BYTES, NULL) != DT_OK)
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

/* --- a process with its descendants */

typedef struct family {
    pid_t pid, parent;
} family;

typedef struct tree {
    dt_process_activity *sum;
    pid_t *telling;
    int64_t most_ticks; /* of *telling */
    int visited;
    family *all; /* of this machine, where the kernel does not list children; NULL: not read */
    size_t count;
} tree;

/* Combines the states of two processes: a stopped one tells most, then one that runs. */
static char join_states(char a, char b)
{
    static const char order[] = "TtRDS";

    for (const char *at = order; *at != '\0'; at++)
        if (a == *at || b == *at)
            return *at;
    return a;
}

static void read_all(tree *all)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int64_t room = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        dt_proc_stat stat;
        long pid = strtol(entry->d_name, NULL, 10);

        if (pid <= 0 || !dt_proc_stat_read(&stat, pid))
            continue;
        all->all = dt_array_room(all->all, all->count + 1, &room, sizeof(all->all[0]));
        all->all[all->count++] = (family){(pid_t)pid, (pid_t)stat.parent};
    }
    if (dir != NULL)
        closedir(dir);
}

static void visit(tree *all, pid_t pid);

/* Visits the children that one thread has started. Returns false if the kernel has no list of them. */
static bool visit_children_of(tree *all, pid_t pid, long thread)
{
    dt_strbuf list;
    char path[64];
    bool known;

    snprintf(path, sizeof(path), "/proc/%d/task/%ld/children", (int)pid, thread);
    dt_strbuf_init(&list);
    known = dt_file_read(&list, path, SMALL_FILE_BYTES, NULL) == DT_OK;
    for (char *at = list.data, *end; known; at = end) {
        long child = strtol(at, &end, 10);

        if (end == at)
            break;
        visit(all, (pid_t)child);
    }
    dt_strbuf_release(&list);
    return known || access("/proc/thread-self/children", F_OK) == 0;
}

static void visit_children(tree *all, pid_t pid)
{
    struct dirent *entry;
    bool listed = true;
    char path[64];
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir != NULL && listed && (entry = readdir(dir)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            listed = visit_children_of(all, pid, strtol(entry->d_name, NULL, 10));
    if (dir != NULL)
        closedir(dir);
    if (listed)
        return;
    if (all->all == NULL)
        read_all(all);
    for (size_t i = 0; i < all->count; i++)
        if (all->all[i].parent == pid)
            visit(all, all->all[i].pid);
}

static void visit(tree *all, pid_t pid)
{
    dt_process_activity one;
    dt_proc_stat stat;

    if (all->visited++ >= TREE_MOST || !dt_proc_stat_read(&stat, pid) ||
        !dt_process_activity_read(&one, pid) || one.state == 'Z')
        return;
    all->sum->cpu_seconds +=
        one.cpu_seconds + (double)stat.children_ticks / (double)sysconf(_SC_CLK_TCK);
    all->sum->work += one.work;
    if (one.state == 'T' && all->sum->state != 'T')
        all->most_ticks = -1;
    all->sum->state = join_states(all->sum->state, one.state);
    if (stat.cpu_ticks > all->most_ticks && (one.state == 'T' || all->sum->state != 'T')) {
        all->most_ticks = stat.cpu_ticks;
        *all->telling = pid;
    }
    visit_children(all, pid);
}

bool dt_process_activity_read_tree(dt_process_activity *out, pid_t *telling, pid_t root)
{
    tree all = {.sum = out, .telling = telling, .most_ticks = -1};

    *out = (dt_process_activity){.state = 'S'};
    *telling = 0;
    visit(&all, root);
    free(all.all);
    return *telling != 0;
}

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
    int code = dt_exit_code(wait_status), number = code < 0 ? -code : 0;
    const char *name = sigabbrev_np(number), *words = sigdescr_np(number);

    if (number != 0) {
        dt_strbuf_add_fmt(out, "killed by signal %d (%s%s, %s)", number, name != NULL ? "SIG" : "",
                          name != NULL ? name : "unknown", words != NULL ? words : "unknown");
        if (WCOREDUMP(wait_status))
            dt_strbuf_add_str(out, ", core dumped");
        return;
    }
    dt_strbuf_add_fmt(out, "exited with code %d", code);
    number = -dt_exit_code_of_shell(code);
    name = number > 0 ? sigabbrev_np(number) : NULL;
    if (name != NULL)
        dt_strbuf_add_fmt(out, " (a shell reports SIG%s this way)", name);
    else if (code == DT_EXIT_NO_PROGRAM || code == DT_EXIT_CANNOT_RUN)
        dt_strbuf_add_str(out, " (a shell reports this way that it cannot run a program)");
}

#define FILE_BYTES   ((size_t)64 << 10)
#define STACK_FRAMES 24

/* Returns "stopped by a signal" for 'T'. */
static const char *process_state_words(char state)
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
    json_object_set_new(out, "state_words", json_string(process_state_words(process.state)));
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
