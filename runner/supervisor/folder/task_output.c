/* task_output: merges the parts of a task, in order, into the requested file. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/tokens/text_lines.h"
#include "runner/supervisor/folder/task_folder.h"

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
    dt_text_lines all = {text->data, text->data + text->length};
    const char *line;
    size_t length;

    while (dt_text_lines_next(&line, &length, &all)) {
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
