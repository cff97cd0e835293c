/* wipe: finds and removes the folders of ended runs on this machine, STATE/nodes/RUN.
 *
 * A run has ended here if no agent holds the lock of one of its attempts. An agent that was killed holds none, and its
 * processes may run on: the caller knows that the run has ended.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

#define DEPTH_MAX  200
#define NAMED_MOST 5
#define RUNS_MOST  1000

typedef struct ended_run {
    char name[128];
    int64_t bytes;
} ended_run;

/* Adds what is below the folder on the disk. *locked: an agent holds a lock. */
static void look(int64_t *bytes, bool *locked, const char *folder, int depth)
{
    DIR *all = depth < DEPTH_MAX ? opendir(folder) : NULL;
    struct dirent *entry;
    struct stat info;
    dt_strbuf path;

    dt_strbuf_init(&path);
    while (all != NULL && (entry = readdir(all)) != NULL) {
        int lock = -1;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, entry->d_name);
        if (lstat(path.data, &info) != 0)
            continue;
        *bytes += (int64_t)info.st_blocks * 512;
        if (S_ISDIR(info.st_mode))
            look(bytes, locked, path.data, depth + 1);
        else if (depth == 2 && strcmp(entry->d_name, "agent.lock") == 0 &&
                 dt_file_lock(&lock, path.data, NULL) == DT_ERR_BUSY)
            *locked = true;
        if (lock >= 0)
            close(lock);
    }
    if (all != NULL)
        closedir(all);
    dt_strbuf_release(&path);
}

static int larger_first(const void *a, const void *b)
{
    const ended_run *x = a, *y = b;

    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* Sets *nodes to STATE/nodes and *run to RUN, of a path STATE/nodes/RUN or below it. */
static bool split(dt_strbuf *nodes, dt_strbuf *run, const char *path)
{
    const char *at = path[0] == '/' ? strstr(path, "/nodes/") : NULL;

    if (at == NULL || strstr(path, "/../") != NULL)
        return false;
    for (const char *next; (next = strstr(at + 1, "/nodes/")) != NULL;)
        at = next;
    dt_strbuf_add(nodes, path, (size_t)(at - path) + strlen("/nodes"));
    at += strlen("/nodes/");
    dt_strbuf_add(run, at, strcspn(at, "/"));
    return run->length > 0 && strcmp(run->data, ".") != 0 && strcmp(run->data, "..") != 0;
}

void dt_remote_helper_name_ended(dt_error *err, const char *folder)
{
    ended_run *found = calloc(RUNS_MOST, sizeof(*found));
    dt_strbuf nodes, run, text, path;
    struct dirent *entry;
    int64_t count = 0;
    DIR *all = NULL;

    dt_strbuf_init(&nodes);
    dt_strbuf_init(&run);
    dt_strbuf_init(&text);
    dt_strbuf_init(&path);
    if (split(&nodes, &run, folder))
        all = opendir(nodes.data);
    while (all != NULL && found != NULL && count < RUNS_MOST && (entry = readdir(all)) != NULL) {
        ended_run *one = &found[count];
        bool locked = false;

        if (entry->d_name[0] == '.' || strcmp(entry->d_name, run.data) == 0 ||
            strlen(entry->d_name) >= sizeof(one->name))
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", nodes.data, entry->d_name);
        one->bytes = 0;
        look(&one->bytes, &locked, path.data, 0);
        if (locked)
            continue;
        snprintf(one->name, sizeof(one->name), "%s", entry->d_name);
        count++;
    }
    if (count > 0)
        qsort(found, (size_t)count, sizeof(*found), larger_first);
    for (int64_t i = 0; i < count && i < NAMED_MOST; i++)
        dt_strbuf_add_fmt(&text, "%s%s (%.1f MB)", i > 0 ? ", " : "", found[i].name,
                          (double)found[i].bytes / 1e6);
    if (count > NAMED_MOST)
        dt_strbuf_add_fmt(&text, " and %lld more", (long long)count - NAMED_MOST);
    if (count > 0) {
        dt_status code = err->code;
        char before[sizeof(err->message)];

        snprintf(before, sizeof(before), "%s", err->message);
        dt_error_clear(err);
        DT_FAIL(err, code,
                "%.1200s; ended runs have files in '%s': %s; 'dtrun rm' removes them with the run",
                before, nodes.data, text.data);
    }
    if (all != NULL)
        closedir(all);
    free(found);
    dt_strbuf_release(&nodes);
    dt_strbuf_release(&run);
    dt_strbuf_release(&text);
    dt_strbuf_release(&path);
}

dt_status dt_remote_helper_wipe(const char *folder, dt_error *err)
{
    dt_strbuf nodes, run, path;
    bool locked = false;
    int64_t bytes = 0;
    dt_status st = DT_OK;

    dt_strbuf_init(&nodes);
    dt_strbuf_init(&run);
    dt_strbuf_init(&path);
    if (!split(&nodes, &run, folder))
        DT_THROW(err, DT_ERR_USAGE, "wipe: not a run's folder on a node");
    dt_strbuf_add_fmt(&path, "%s/%s", nodes.data, run.data);
    look(&bytes, &locked, path.data, 0);
    if (locked)
        DT_THROW(err, DT_ERR_BUSY, "an agent still serves '%s'", path.data);
    DT_TRY(dt_file_remove_tree(path.data, err));
    printf("gone %lld\n", (long long)bytes);
out:
    dt_strbuf_release(&nodes);
    dt_strbuf_release(&run);
    dt_strbuf_release(&path);
    return st;
}
