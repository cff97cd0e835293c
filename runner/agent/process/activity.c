#include "runner/agent/process/activity.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "runner/agent/process/process.h"

#define FILE_BYTES ((size_t)4 << 10)
#define TREE_MOST  1000 /* processes */

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
    size_t room = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        dt_proc_stat stat;
        long pid = strtol(entry->d_name, NULL, 10);

        if (pid <= 0 || !dt_proc_stat_read(&stat, pid))
            continue;
        if (all->count == room) {
            room = room == 0 ? 256 : 2 * room;
            all->all = dt_realloc(all->all, room, sizeof(all->all[0]));
        }
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
    known = dt_file_read(&list, path, FILE_BYTES, NULL) == DT_OK;
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
