/* spawn: the environment of a rank, and its start by fork and exec. */
#include "runner/agent/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"

static void append(dt_environment *environment, char *item)
{
    environment->items = dt_array_room(environment->items, environment->count + 2,
                                       &environment->capacity, sizeof(environment->items[0]));
    DT_ASSERT(item != NULL);
    environment->items[environment->count++] = item;
    environment->items[environment->count] = NULL;
}

void dt_environment_init(dt_environment *environment)
{
    memset(environment, 0, sizeof(*environment));
    for (char **item = environ; *item != NULL; item++)
        append(environment, dt_strdup(*item));
}

void dt_environment_copy(dt_environment *out, const dt_environment *from)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < from->count; i++)
        append(out, dt_strdup(from->items[i]));
}

void dt_environment_release(dt_environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->items[i]);
    free(environment->items);
    memset(environment, 0, sizeof(*environment));
}

void dt_environment_set(dt_environment *environment, const char *name, const char *value)
{
    size_t length = strlen(name);
    char *item = NULL;

    if (asprintf(&item, "%s=%s", name, value) < 0)
        item = NULL;
    DT_ASSERT(item != NULL);
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], item, length + 1) == 0) {
            free(environment->items[i]);
            environment->items[i] = item;
            return;
        }
    append(environment, item);
}

void dt_environment_set_int(dt_environment *environment, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    dt_environment_set(environment, name, text);
}

void dt_environment_unset(dt_environment *environment, const char *start)
{
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], start, strlen(start)) == 0) {
            free(environment->items[i]);
            environment->items[i--] = environment->items[--environment->count];
            environment->items[environment->count] = NULL;
        }
}

const char *dt_environment_get(const dt_environment *environment, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], name, length) == 0 &&
            environment->items[i][length] == '=')
            return environment->items[i] + length + 1;
    return NULL;
}

/* Both ends of all pipes, so that one function closes what is still open. */
typedef struct plumbing {
    int channel[2], out[2], err[2], problem[2];
} plumbing;

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void plumbing_close(plumbing *pipes)
{
    int *const all[] = {pipes->channel, pipes->out, pipes->err, pipes->problem};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        close_one(&all[i][0]);
        close_one(&all[i][1]);
    }
}

static dt_status plumbing_make(plumbing *pipes, dt_error *err)
{
    memset(pipes, 0xff, sizeof(*pipes)); /* -1 in every descriptor */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes->channel) != 0 ||
        pipe2(pipes->out, O_CLOEXEC) != 0 || pipe2(pipes->err, O_CLOEXEC) != 0 ||
        pipe2(pipes->problem, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot create the pipes of a rank: %s", strerror(errno));
    return DT_OK;
}

/* --- in the child: only calls that are safe between fork and exec */

/* Makes the child a rank, with its standard streams. Returns false on failure. */
static bool become_rank(const plumbing *pipes, const dt_spawn_place *place, pid_t agent)
{
    int nothing;

    dt_startup_child_detached();
    setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return false;
    if (getppid() != agent)
        _exit(DT_EXIT_NO_PROGRAM); /* the agent died between fork and prctl */
    umask(place->mask);
    for (size_t i = 0; i < place->kept_count; i++)
        if (fcntl(place->kept[i], F_SETFD, 0) != 0)
            return false;
    /* The child moves itself to the cgroup before it can start anything; if that is refused it
     * runs outside, and is found by other means. */
    if (place->cgroup_procs >= 0 && write(place->cgroup_procs, "0", 1) != 1)
        errno = 0;
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(pipes->out[1], 1) >= 0 &&
           dup2(pipes->err[1], 2) >= 0;
}

/* Returns on failure. */
static void become_engine(const plumbing *pipes, char *const *argv, char *const *environment,
                          const dt_spawn_place *place, pid_t agent)
{
    /* Move the channel above all fixed numbers first: dup2 onto 3 must not hit a pipe that is
     * still needed. */
    int channel = fcntl(pipes->channel[1], F_DUPFD_CLOEXEC, 10);

    if (channel >= 0 && become_rank(pipes, place, agent) && dup2(channel, DT_SPAWN_CHANNEL_FD) >= 0)
        execve(argv[0], argv, environment);
}

static size_t put_number(char *line, size_t at, int64_t number)
{
    char digits[20];
    size_t count = 0;

    line[at++] = ' ';
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        line[at++] = digits[--count];
    return at;
}

static void report(const plumbing *pipes, char what, int problem, int index, bool exists)
{
    char line[80] = {what};
    size_t at = put_number(line, 1, problem);

    at = put_number(line, at, index);
    at = put_number(line, at, exists);
    line[at++] = '\n';
    if (write(pipes->problem[1], line, at) < 0)
        _exit(DT_EXIT_CANNOT_RUN);
}

/* Returns the candidate to execute; -1: there is none. One that cannot be executed is taken if there is no
 * other, for a better message than 'not found'. */
static int choose_candidate(const dt_spawn_program *program)
{
    struct stat info;
    int weak = -1;

    if (!program->search)
        return 0;
    for (int i = 0; program->candidates[i] != NULL; i++) {
        if (stat(program->candidates[i], &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (access(program->candidates[i], X_OK) == 0)
            return i;
        weak = i;
    }
    return weak;
}

/* Returns on failure, which it has reported. */
static void become_program(const plumbing *pipes, const dt_spawn_program *program,
                           const dt_spawn_place *place, pid_t agent)
{
    int index, problem;

    if (!become_rank(pipes, place, agent)) {
        report(pipes, DT_SPAWN_NOT_EXECUTED, errno, 0, true);
        return;
    }
    if (program->folder[0] != '\0' && chdir(program->folder) != 0) {
        report(pipes, DT_SPAWN_NO_FOLDER, errno, 0, false);
        return;
    }
    if (program->checkpoint[0] != '\0' && access(program->checkpoint, F_OK) != 0) {
        report(pipes, DT_SPAWN_NO_CHECKPOINT, errno, 0, false);
        if (program->needs_checkpoint)
            return;
    }
    index = choose_candidate(program);
    if (index < 0) {
        report(pipes, DT_SPAWN_NOT_FOUND, 0, 0, false);
        return;
    }
    execve(program->candidates[index], program->words, program->environment);
    problem = errno;
    report(pipes, DT_SPAWN_NOT_EXECUTED, problem, index,
           access(program->candidates[index], F_OK) == 0);
}

/* --- in the agent */

/* Makes the pipes, and moves the one of problems out of the way of the child's fixed numbers 0 to 3. */
static dt_status prepare(dt_spawned *spawned, plumbing *pipes, dt_error *err)
{
    dt_status st = DT_OK;
    int high;

    memset(spawned, 0, sizeof(*spawned));
    spawned->channel = spawned->out = spawned->err = -1;
    DT_TRY(plumbing_make(pipes, err));
    high = fcntl(pipes->problem[1], F_DUPFD_CLOEXEC, 10);
    if (high < 0)
        DT_THROW(err, DT_ERR_IO, "cannot create the pipes of a rank: %s", strerror(errno));
    close(pipes->problem[1]);
    pipes->problem[1] = high;
out:
    return st;
}

dt_status dt_spawn_program_rank(dt_spawned *spawned, const dt_spawn_program *program,
                                const dt_spawn_place *place, dt_error *err)
{
    pid_t agent = getpid();
    plumbing pipes;
    dt_status st;

    DT_TRY(prepare(spawned, &pipes, err));
    spawned->pid = fork();
    if (spawned->pid < 0)
        DT_THROW(err, DT_ERR_IO, "cannot start a process: %s", strerror(errno));
    if (spawned->pid == 0) {
        become_program(&pipes, program, place, agent);
        _exit(DT_EXIT_NO_PROGRAM);
    }
    spawned->channel = pipes.problem[0];
    spawned->out = pipes.out[0];
    spawned->err = pipes.err[0];
    pipes.problem[0] = pipes.out[0] = pipes.err[0] = -1;
out:
    plumbing_close(&pipes);
    return st;
}

dt_status dt_spawn(dt_spawned *spawned, char *const *argv, char *const *environment,
                   const dt_spawn_place *place, dt_error *err)
{
    pid_t agent = getpid();
    plumbing pipes;
    dt_status st;
    int problem;

    DT_TRY(prepare(spawned, &pipes, err));
    spawned->pid = fork();
    if (spawned->pid < 0)
        DT_THROW(err, DT_ERR_IO, "cannot start a process: %s", strerror(errno));
    if (spawned->pid == 0) {
        become_engine(&pipes, argv, environment, place, agent);
        problem = errno;
        if (write(pipes.problem[1], &problem, sizeof(problem)) < 0)
            _exit(DT_EXIT_CANNOT_RUN);
        _exit(DT_EXIT_NO_PROGRAM);
    }
    close_one(&pipes.problem[1]);
    problem = dt_startup_wait_for_exec(pipes.problem[0]);
    if (problem != 0) {
        waitpid(spawned->pid, NULL, 0);
        DT_THROW(err, DT_ERR_IO, "cannot run '%s': %s", argv[0], strerror(problem));
    }
    spawned->channel = pipes.channel[0];
    spawned->out = pipes.out[0];
    spawned->err = pipes.err[0];
    pipes.channel[0] = pipes.out[0] = pipes.err[0] = -1;
out:
    plumbing_close(&pipes);
    return st;
}
