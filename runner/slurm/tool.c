#include "runner/slurm/tool.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/file.h"
#include "base/startup.h"

#define LOOK_SECONDS     0.005
#define ANSWER_MAX_BYTES (1 << 20)

extern char **environ;

/* Descriptors of the program: files in memory, which it can fill while nothing reads them. */
typedef struct ends {
    int in, out, errors;
} ends;

static dt_status open_ends(ends *files, const char *input, dt_error *err)
{
    files->in = memfd_create("in", MFD_CLOEXEC);
    files->out = memfd_create("out", MFD_CLOEXEC);
    files->errors = memfd_create("errors", MFD_CLOEXEC);
    if (files->in < 0 || files->out < 0 || files->errors < 0 ||
        (input != NULL && dt_file_write_all(files->in, input, strlen(input), NULL) != DT_OK) ||
        lseek(files->in, 0, SEEK_SET) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot create temporary files: %s", strerror(errno));
    return DT_OK;
}

static dt_status start(pid_t *pid, const ends *files, const char *const *argv, dt_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int problem;

    problem = dt_startup_spawn_attributes(&attributes, 0);
    if (problem != 0)
        return DT_FAIL(err, DT_ERR_NOMEM, "cannot start a process: %s", strerror(problem));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, files->in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, files->out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, files->errors, STDERR_FILENO);
    problem = posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (problem == ENOENT)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "cannot find '%s': 'nodes: slurm' needs Slurm's programs in PATH "
                       "(Debian: slurm-client; elsewhere often 'module load slurm')",
                       argv[0]);
    return problem == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_IO, "cannot run '%s': %s", argv[0], strerror(problem));
}

static dt_status await_end(pid_t pid, int *status, const char *name, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + DT_SLURM_TOOL_SECONDS;
    pid_t got;

    while ((got = waitpid(pid, status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        if (dt_clock_monotonic_seconds() > deadline) {
            kill(pid, SIGKILL);
            while (waitpid(pid, status, 0) < 0 && errno == EINTR)
                ;
            return DT_FAIL(err, DT_ERR_TIMEOUT,
                           "'%s' did not end within %.0f s: is Slurm's controller up ('scontrol "
                           "ping')?",
                           name, DT_SLURM_TOOL_SECONDS);
        }
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    return got > 0 ? DT_OK
                   : DT_FAIL(err, DT_ERR_IO, "cannot wait for '%s': %s", name, strerror(errno));
}

static void read_all(dt_strbuf *out, int fd)
{
    char bytes[4096];
    off_t at = 0;
    ssize_t got;

    while (at < ANSWER_MAX_BYTES && (got = pread(fd, bytes, sizeof(bytes), at)) > 0) {
        dt_strbuf_add(out, bytes, (size_t)got);
        at += got;
    }
}

/* Removes the program's prefix from "sbatch: error: Batch job submission failed: Invalid partition". */
static const char *last_words(char *text)
{
    size_t length = strlen(text);
    char *line, *said;

    while (length > 0 && (unsigned char)text[length - 1] <= ' ')
        text[--length] = '\0';
    line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    said = strstr(line, "error: ");
    for (char *p = line; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return said != NULL ? said + strlen("error: ") : line;
}

dt_status dt_slurm_tool(dt_strbuf *answer, const char *const *argv, const char *input,
                        dt_error *err)
{
    ends files = {-1, -1, -1};
    dt_status st = DT_OK;
    dt_strbuf problems;
    char end[DT_EXIT_WORDS_BYTES];
    const char *words;
    pid_t pid = 0;
    int status;

    dt_strbuf_init(&problems);
    if (answer != NULL)
        dt_strbuf_reset(answer);
    DT_TRY(open_ends(&files, input, err));
    DT_TRY(start(&pid, &files, argv, err));
    DT_TRY(await_end(pid, &status, argv[0], err));
    if (answer != NULL)
        read_all(answer, files.out);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        read_all(&problems, files.errors);
        words = last_words(problems.data);
        dt_exit_words(end, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
        DT_THROW(err, DT_ERR_IO, "%s%s%.600s", argv[0], words[0] != '\0' ? ": " : " ",
                 words[0] != '\0' ? words : end);
    }
out:
    dt_strbuf_release(&problems);
    for (int i = 0; i < 3; i++) {
        int fd = i == 0 ? files.in : i == 1 ? files.out : files.errors;

        if (fd >= 0)
            close(fd);
    }
    return st;
}
