/* task_folder: finds the task of a run that does not train, stores its parts, and merges them into the
 * requested file. */
#include "runner/supervisor/folder/task_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/tokens/text_lines.h"
#include "runner/supervisor/folder/run_folder.h"
#include "store/event.h"

/* --- the task */

const char *dt_task_of(const dt_run *run)
{
    static const char *const names[] = {"generate", "score", "evaluate", "command", NULL};
    const char *task, *found = NULL;
    json_t *json = NULL;

    /* most recipes have no task: no need to parse them */
    if (strstr(run->recipe_json, "\"task\"") == NULL ||
        dt_json_parse(&json, run->recipe_json, strlen(run->recipe_json), "stored recipe", NULL) !=
            DT_OK)
        return NULL;
    task = json_string_value(json_object_get(json, "task"));
    for (size_t i = 0; task != NULL && names[i] != NULL; i++)
        if (strcmp(task, names[i]) == 0)
            found = names[i];
    json_decref(json);
    return found;
}

bool dt_task_of_lines(const dt_run *run)
{
    const char *task = dt_task_of(run);

    return task != NULL && strcmp(task, "command") != 0;
}

dt_status dt_task_plan(dt_plan *out, const dt_run *run, dt_arena *arena, dt_error *err)
{
    const char *folder, *path;
    dt_status st = DT_OK;

    DT_TRY(dt_run_path(&folder, run->id, NULL, arena, err));
    path = dt_arena_printf(arena, "%s/attempt-%lld/plan.json", folder, (long long)run->attempt);
    DT_TRY(dt_plan_read(out, path, arena, err));
out:
    return st;
}

dt_status dt_task_refuse(const dt_run *run, const char *what, dt_arena *arena, dt_error *err)
{
    const char *task = dt_task_of(run), *article;
    dt_plan plan;

    if (task == NULL)
        return DT_OK;
    article = task[0] == 'e' ? "an" : "a";
    if (!dt_task_of_lines(run))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "run '%s' is a run of a command, whose checkpoints dtrun cannot read: it "
                       "cannot %s",
                       run->id, what);
    if (dt_task_plan(&plan, run, arena, NULL) == DT_OK)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "run '%s' is %s %s run with a checkpoint of run '%s', and cannot %s: name that run",
            run->id, article, task, plan.task.run, what);
    return DT_FAIL(err, DT_ERR_USAGE, "run '%s' is %s %s run, which trained nothing: it cannot %s",
                   run->id, article, task, what);
}

/* --- parts */

#define PARTS   "parts"
#define PARTIAL ".partial"

/* --- writing pieces */

static void add_path(dt_strbuf *out, const char *folder, int64_t part)
{
    dt_strbuf_add_fmt(out, "%s/" PARTS "/part-%08lld", folder, (long long)part);
}

static dt_status put(int fd, int64_t offset, const char *bytes, size_t length, const char *path,
                     dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    struct stat info;

    if (fstat(fd, &info) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot look at '%s': %s", path, strerror(errno));
    if (info.st_size < offset)
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s' has %lld bytes, but byte %lld comes next", path,
                       (long long)info.st_size, (long long)offset);
    if (ftruncate(fd, offset) != 0 || lseek(fd, offset, SEEK_SET) < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (dt_file_write_all(fd, bytes, length, &problem) != DT_OK)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, problem.message);
    if (fsync(fd) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    return DT_OK;
}

dt_status dt_task_folder_write(const char *folder, int64_t part, int64_t offset, bool last,
                               const char *bytes, size_t length, dt_error *err)
{
    dt_strbuf parts, whole, partial;
    dt_status st = DT_OK;
    int fd = -1;

    dt_strbuf_init(&parts);
    dt_strbuf_init(&whole);
    dt_strbuf_init(&partial);
    add_path(&whole, folder, part);
    if (dt_file_exists(whole.data))
        goto out;
    dt_strbuf_add_fmt(&parts, "%s/" PARTS, folder);
    dt_strbuf_add_fmt(&partial, "%s" PARTIAL, whole.data);
    fd = open(partial.data, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == ENOENT) {
        DT_TRY(dt_file_make_dirs(parts.data, 0700, err));
        fd = open(partial.data, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", partial.data, strerror(errno));
    st = put(fd, offset, bytes, length, partial.data, err);
    /* the file was removed: the part is missing, and will be made again */
    if (st == DT_ERR_CORRUPT) {
        dt_log_warn("cannot store part %lld: its beginning is missing", (long long)part);
        dt_error_clear(err);
        st = DT_OK;
        goto out;
    }
    DT_TRY(st);
    /* The folder is not synced: after a power failure a part without its name is missing, and is made again. */
    if (last && rename(partial.data, whole.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", partial.data, strerror(errno));
out:
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&parts);
    dt_strbuf_release(&whole);
    dt_strbuf_release(&partial);
    return st;
}

/* --- reading parts */

/* Returns the number in "part-00000012"; -1 for any other name. */
static int64_t part_of(const char *name, int64_t parts)
{
    static const char begin[] = "part-";
    const char *digits = name + sizeof(begin) - 1;
    long long part;
    char *end;

    if (strncmp(name, begin, sizeof(begin) - 1) != 0 || *digits < '0' || *digits > '9')
        return -1;
    part = strtoll(digits, &end, 10);
    return *end == '\0' && part < parts ? part : -1;
}

static dt_status mark_parts(bool *there, const char *folder, int64_t parts, dt_error *err)
{
    struct dirent *entry;
    dt_status st = DT_OK;
    dt_strbuf path;
    DIR *dir;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" PARTS, folder);
    dir = opendir(path.data);
    if (dir == NULL && errno != ENOENT)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path.data, strerror(errno));
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int64_t part = part_of(entry->d_name, parts);

        if (part >= 0)
            there[part] = true;
    }
out:
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_task_folder_look(dt_plan_task *task, const char *folder, dt_arena *arena,
                              dt_error *err)
{
    int64_t parts = task->part_count, ranges = 0;
    bool *there = dt_calloc((size_t)parts, sizeof(*there));
    dt_status st = DT_OK;

    DT_TRY(mark_parts(there, folder, parts, err));
    for (int64_t i = 0; i < parts; i++)
        ranges += there[i] && (i == 0 || !there[i - 1]);
    task->done = dt_arena_alloc_array(arena, 2 * (size_t)ranges + 1, sizeof(*task->done));
    task->done_count = 0;
    for (int64_t i = 0; i < parts; i++) {
        int64_t *range = &task->done[2 * task->done_count];

        if (!there[i])
            continue;
        range[0] = i;
        while (i < parts && there[i])
            i++;
        range[1] = i;
        task->done_count++;
    }
out:
    free(there);
    return st;
}

int64_t dt_task_lines_done(const dt_plan_task *task)
{
    int64_t lines = 0;

    for (int64_t i = 0; i < task->done_count; i++)
        for (int64_t part = task->done[2 * i]; part < task->done[2 * i + 1]; part++)
            lines += task->parts[part].lines;
    return lines;
}

/* --- after the end */

void dt_task_folder_clear(const dt_plan *plan, const char *folder)
{
    static const char *const below[] = {PARTS, DT_TASK_INPUT, DT_TASK_TARGET, NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf path;

    dt_strbuf_init(&path);
    for (size_t i = 0; below[i] != NULL; i++) {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, below[i]);
        (void)dt_file_remove_tree(path.data, &problem);
    }
    (void)dt_file_remove_tree(plan->directory, &problem);
    if (problem.code != DT_OK)
        dt_log_warn("%s", problem.message); /* only wastes space */
    dt_strbuf_release(&path);
}

/* --- the merged output */

#define PART_MOST  ((size_t)4 << 30)
#define PASS_BYTES ((size_t)256 << 10)

typedef struct merge {
    const dt_plan *plan;
    int fd;
    dt_strbuf temporary;
    dt_strbuf out;         /* bytes that are not written yet */
    double log_likelihood; /* log-likelihood so far */
    int64_t tokens;
} merge;

static dt_status fail(const merge *m, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", m->plan->task.output, strerror(errno));
}

static dt_status open_merge(merge *m, dt_error *err)
{
    mode_t mask = umask(0);

    umask(mask);
    dt_strbuf_add_fmt(&m->temporary, "%s.XXXXXX", m->plan->task.output);
    m->fd = mkostemp(m->temporary.data, O_CLOEXEC);
    if (m->fd < 0)
        return fail(m, err);
    (void)fchmod(m->fd, 0666 & ~mask); /* otherwise only the owner can read it */
    return DT_OK;
}

static dt_status pass(merge *m, size_t most, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;

    if (m->out.length < most || m->out.length == 0)
        return DT_OK;
    if (dt_file_write_all(m->fd, m->out.data, m->out.length, &problem) != DT_OK)
        return fail(m, err);
    dt_strbuf_reset(&m->out);
    return DT_OK;
}

/* --- scores: copied with every digit, and added in line order */

static dt_status add_scores(merge *m, const dt_strbuf *text, dt_error *err)
{
    dt_text_lines lines = {text->data, text->data + text->length};
    const char *line;
    size_t length;

    while (dt_text_lines_next(&line, &length, &lines)) {
        char *tab, *end;
        double log_likelihood = strtod(line, &tab);
        long long tokens = *tab == '\t' ? strtoll(tab + 1, &end, 10) : -1;

        if (tokens < 0 || end != line + length)
            return DT_FAIL(err, DT_ERR_CORRUPT, "a part has no scores: '%.*s'",
                           (int)(length < 60 ? length : 60), line);
        m->log_likelihood += log_likelihood;
        m->tokens += tokens;
        dt_strbuf_add_fmt(&m->out, "%.6f\t%lld\n", log_likelihood, tokens);
    }
    return DT_OK;
}

static void add_total(merge *m)
{
    double loss = -m->log_likelihood / (double)m->tokens;

    if (m->tokens > 0)
        dt_strbuf_add_fmt(&m->out, "%.6f\t%lld\tall: loss %.6f, perplexity %.6g\n",
                          m->log_likelihood, (long long)m->tokens, loss, exp(loss));
    else
        dt_strbuf_add_str(&m->out, "0.000000\t0\tall: no token was scored\n");
}

/* --- merging */

static dt_status add_part(merge *m, const char *folder, int64_t part, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf path, text;
    dt_status st = DT_OK;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/parts/part-%08lld", folder, (long long)part);
    st = dt_file_read(&text, path.data, PART_MOST, &problem);
    if (st != DT_OK)
        DT_THROW(err, st, "part %lld of %lld is missing: %s", (long long)part,
                 (long long)m->plan->task.part_count, problem.message);
    if (m->plan->recipe.task == DT_TASK_SCORE)
        DT_TRY(add_scores(m, &text, err));
    else
        dt_strbuf_add(&m->out, text.data, text.length);
    DT_TRY(pass(m, PASS_BYTES, err));
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* True if the files are equal: an earlier supervisor may have written the output and died. */
static bool is_same(const char *a, const char *b)
{
    char one[4096], other[4096];
    FILE *first = fopen(a, "re"), *second = fopen(b, "re");
    bool same = first != NULL && second != NULL;

    while (same) {
        size_t got = fread(one, 1, sizeof(one), first);

        same = fread(other, 1, sizeof(other), second) == got && memcmp(one, other, got) == 0;
        if (got < sizeof(one))
            break;
    }
    if (first != NULL)
        fclose(first);
    if (second != NULL)
        fclose(second);
    return same;
}

static dt_status name_output(merge *m, dt_error *err)
{
    const char *path = m->plan->task.output;
    dt_status st;
    int fd = m->fd;

    if (fsync(fd) != 0)
        return fail(m, err);
    m->fd = -1;
    if (close(fd) != 0)
        return fail(m, err);
    if (!m->plan->task.replace && dt_file_exists(path) && !is_same(m->temporary.data, path))
        return DT_FAIL(err, DT_ERR_IO,
                       "'%s' was created after the run began: move it, then 'dtrun resume %s' "
                       "writes the result",
                       path, m->plan->run);
    st = dt_file_name(m->temporary.data, path, true, err);
    if (st != DT_OK)
        return st;
    dt_strbuf_reset(&m->temporary);
    return DT_OK;
}

dt_status dt_task_folder_finish(double *loss, const dt_plan *plan, const char *folder,
                                dt_error *err)
{
    merge m = {.plan = plan, .fd = -1};
    dt_status st = DT_OK;

    *loss = NAN;
    dt_strbuf_init(&m.temporary);
    dt_strbuf_init(&m.out);
    DT_TRY(open_merge(&m, err));
    for (int64_t part = 0; part < plan->task.part_count; part++)
        DT_TRY(add_part(&m, folder, part, err));
    if (plan->recipe.task == DT_TASK_SCORE)
        add_total(&m);
    DT_TRY(pass(&m, 0, err));
    DT_TRY(name_output(&m, err));
    if (m.tokens > 0)
        *loss = -m.log_likelihood / (double)m.tokens;
out:
    if (m.fd >= 0)
        close(m.fd);
    if (m.temporary.length > 0)
        (void)unlink(m.temporary.data);
    dt_strbuf_release(&m.temporary);
    dt_strbuf_release(&m.out);
    return st;
}

/* --- results of evaluation tasks */

dt_status dt_task_results_store(dt_store *store, const dt_run *run, int64_t step,
                                const dt_evaluation_results *results, dt_error *err)
{
    json_t *tasks = dt_evaluation_to_json(results);
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, tasks);
    st = dt_store_evaluation_add(store, run->id, run->attempt, step, text.data, err);
    dt_strbuf_release(&text);
    json_decref(tasks);
    return st;
}
