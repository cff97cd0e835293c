#include "engine/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/channel/activity.h"
#include "engine/channel/events.h"
#include "engine/program/child.h"
#include "engine/program/last_error.h"
#include "engine/program/meeting.h"
#include "engine/program/metrics_board.h"
#include "engine/program/metrics_file.h"
#include "engine/program/output_metrics.h"
#include "engine/program/saves.h"
#include "engine/program/words.h"

#define CHUNK_BYTES     65536
#define PIECE_BYTES     ((size_t)256 << 10) /* limit of output read at once */
#define LAST_BYTES      ((size_t)16 << 20)  /* limit of output read after the program's end */
#define CODE_OF_SIGNAL  128  /* exit code of a shell minus the signal that ended its program */
#define AT_ONCE_SECONDS 10.0 /* a resumed program that ends sooner may have done nothing */
#define LONGEST_POLL_MS 60000.0
#define FILE_POLL_MS    500 /* interval of reading files of metrics */

typedef struct program {
    const dt_plan *plan;
    int64_t rank;
    dt_events *events;
    dt_output_metrics *metrics; /* NULL: stdout goes to the agent directly */
    dt_saves *saves;            /* NULL: none, or not rank 0 */
    dt_metrics_file file;       /* file with the metrics, if they are not on stdout */
    dt_metrics_board *board;    /* reads event files; NULL: none */
    double started_seconds;     /* by the monotonic clock */
    int signals;                /* signalfd of SIGTERM and SIGCHLD */
    int out[2], errors[2];      /* pipes of its stdout and stderr; -1: none, or closed */
    dt_last_error last_error;
    pid_t pid;
    bool ended;
    int status; /* of waitpid, once it has ended */
    bool stopping;
    double
        limit_seconds;   /* when time_limit is over, by the monotonic clock; 0: no limit, or over */
    double kill_seconds; /* when a program at the limit is killed; 0: not yet known, or done */
    bool over;           /* time_limit was reached */
} program;

static sigset_t awaited(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    return set;
}

void dt_program_block_signals(void)
{
    sigset_t set = awaited();

    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* --- events */

static dt_status send_ready(program *p, dt_error *err)
{
    const dt_plan_rank *rank = &p->plan->ranks[p->rank];

    return dt_events_send(p->events,
                          json_pack("{s:s, s:I, s:s, s:I, s:I, s:I}", "event", "ready", "pid",
                                    (json_int_t)p->pid, "device", rank->device, "threads",
                                    (json_int_t)rank->threads, "step", (json_int_t)0, "steps",
                                    (json_int_t)0),
                          err);
}

/* warning: NULL if there is none */
static dt_status send_finished(program *p, const char *reason, const char *warning, dt_error *err)
{
    double loss;
    int64_t step = dt_output_metrics_step(p->metrics, &loss);
    int64_t steps = strcmp(reason, "steps") == 0 ? step : 0; /* one that is stopped may have more */

    return dt_events_send(p->events,
                          json_pack("{s:s, s:I, s:I, s:s, s:o, s:s*}", "event", "finished", "step",
                                    (json_int_t)step, "steps", (json_int_t)steps, "reason", reason,
                                    "loss", isfinite(loss) ? json_real(loss) : json_null(),
                                    "warning", warning),
                          err);
}

static void send_failed(dt_events *events, const dt_error *err)
{
    dt_error unsent = DT_ERROR_INIT;

    if (dt_events_send(events,
                       json_pack("{s:s, s:s, s:o}", "event", "failed", "status",
                                 dt_status_name(err->code), "message", dt_json_text(err->message)),
                       &unsent) != DT_OK)
        dt_log_error("cannot report the failure: %s", unsent.message);
}

/* --- signals and time */

static int stop_signal(const dt_recipe *recipe)
{
    static const int numbers[] = {
        [DT_STOP_TERM] = SIGTERM, [DT_STOP_INT] = SIGINT,   [DT_STOP_HUP] = SIGHUP,
        [DT_STOP_USR1] = SIGUSR1, [DT_STOP_USR2] = SIGUSR2, [DT_STOP_QUIT] = SIGQUIT};

    return numbers[recipe->stop_signal];
}

/* Asks the program to end. */
static void pass_on(const program *p)
{
    if (!p->ended)
        kill(p->plan->recipe.shell ? -p->pid : p->pid, stop_signal(&p->plan->recipe));
}

static void read_signals(program *p)
{
    struct signalfd_siginfo info;
    int status;

    while (read(p->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGTERM)
            continue;
        p->stopping = true;
        pass_on(p);
    }
    if (waitpid(p->pid, &status, WNOHANG) == p->pid) {
        p->ended = true;
        p->status = status;
    }
}

static void look_at_time(program *p)
{
    double now = dt_clock_monotonic_seconds();

    if (p->limit_seconds > 0 && now >= p->limit_seconds) {
        dt_log_info("time_limit is over: the program gets SIG%s",
                    sigabbrev_np(stop_signal(&p->plan->recipe)));
        p->limit_seconds = 0;
        p->over = true;
        p->kill_seconds = now + p->plan->recipe.grace_seconds;
        pass_on(p);
    } else if (p->kill_seconds > 0 && now >= p->kill_seconds) {
        p->kill_seconds = 0;
        if (!p->ended)
            kill(-p->pid, SIGKILL);
    }
}

/* Returns the milliseconds until a time limit has to be looked at; -1: there is none. */
static int next_look(const program *p)
{
    double at = p->limit_seconds > 0 ? p->limit_seconds : p->kill_seconds;
    double left_ms = 1000 * (at - dt_clock_monotonic_seconds());

    if ((p->file.path != NULL || p->board != NULL || dt_output_metrics_waits(p->metrics)) &&
        (at <= 0 || left_ms > FILE_POLL_MS))
        return FILE_POLL_MS;
    if (at <= 0)
        return -1;
    return left_ms < 0 ? 0 : left_ms < LONGEST_POLL_MS ? (int)left_ms + 1 : (int)LONGEST_POLL_MS;
}

/* --- output */

/* Returns whether the metrics are in the output. */
static bool on_stdout(const program *p)
{
    return p->metrics != NULL && p->plan->recipe.metrics.file[0] == '\0' &&
           p->plan->recipe.metrics.kind != DT_OUTPUT_METRICS_TENSORBOARD;
}

static void close_pipe(int *ends)
{
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0)
            close(ends[i]);
        ends[i] = -1;
    }
}

/* Appends what a pipe holds now, about PIECE_BYTES at most, and closes it after its end. */
static void take(dt_strbuf *out, int *ends)
{
    char chunk[CHUNK_BYTES];
    ssize_t length = 1;

    while (ends[0] >= 0 && length > 0 && out->length < PIECE_BYTES) {
        length = read(ends[0], chunk, sizeof(chunk));
        if (length > 0)
            dt_strbuf_add(out, chunk, (size_t)length);
        else if (length == 0 || (errno != EINTR && errno != EAGAIN))
            close_pipe(ends);
    }
}

/* Reads the metrics in a piece of stdout. */
static dt_status read_stdout(program *p, const dt_strbuf *text, dt_error *err)
{
    dt_status st = dt_output_metrics_read(p->metrics, text->data, text->length, err);
    double loss;

    dt_saves_note_step(p->saves, dt_output_metrics_step(p->metrics, &loss));
    return st;
}

/* Passes a piece of stdout or stderr on. *got: its size, 0 if there is none now. Metrics are read before anything is
 * written, which can block: the program continues meanwhile, and its next line on stdout would be taken for
 * one before this piece of stderr. */
static dt_status pass_output(program *p, int *ends, size_t *got, dt_error *err)
{
    dt_strbuf said, errors;
    dt_status st = DT_OK;

    dt_strbuf_init(&said);
    dt_strbuf_init(&errors);
    take(ends == p->out ? &said : &errors, ends);
    *got = said.length + errors.length;
    if (errors.length > 0 && on_stdout(p))
        take(&said, p->out); /* was written before */
    if (said.length > 0)
        DT_TRY(read_stdout(p, &said, err));
    if (errors.length > 0) {
        dt_last_error_add(&p->last_error, errors.data, errors.length);
        if (on_stdout(p))
            DT_TRY(dt_output_metrics_read_errors(p->metrics, errors.data, errors.length, err));
    }
    DT_TRY(dt_file_write_all(STDOUT_FILENO, said.data, said.length, err));
    DT_TRY(dt_file_write_all(STDERR_FILENO, errors.data, errors.length, err));
out:
    dt_strbuf_release(&said);
    dt_strbuf_release(&errors);
    return st;
}

/* Passes on what the pipe still holds. Descendants may keep it open: they are not waited for. */
static dt_status pass_rest(program *p, int *ends, dt_error *err)
{
    size_t sum = 0, got = 1;
    dt_status st = DT_OK;

    while (ends[0] >= 0 && got > 0 && sum < LAST_BYTES) {
        DT_TRY(pass_output(p, ends, &got, err));
        sum += got;
    }
out:
    return st;
}

/* --- a run */

static dt_status prepare(program *p, dt_error *err)
{
    sigset_t set = awaited();
    dt_status st = DT_OK;

    p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (p->signals < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read signals: %s", strerror(errno));
    if (p->rank == 0)
        DT_TRY(dt_output_metrics_open(&p->metrics, &p->plan->recipe, p->plan->program_step,
                                      p->events, err));
    if ((on_stdout(p) && pipe2(p->out, O_CLOEXEC) != 0) || pipe2(p->errors, O_CLOEXEC) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    if (on_stdout(p))
        fcntl(p->out[0], F_SETFL, O_NONBLOCK);
    fcntl(p->errors[0], F_SETFL, O_NONBLOCK);
    dt_last_error_init(&p->last_error);
out:
    return st;
}

/* Rank 0 saved the checkpoint on this node; programs of other nodes may need it too, or not. */
static dt_status check_checkpoint(const program *p, dt_error *err)
{
    const char *path = p->plan->program_checkpoint;

    if (path[0] == '\0' || access(path, F_OK) == 0)
        return DT_OK;
    if (p->rank == 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "cannot continue from the checkpoint '%s': %s (put it back on this node, or "
                       "resume from an earlier one with --from)",
                       path, strerror(errno));
    dt_log_warn("the checkpoint '%s' is not on this node: %s", path, strerror(errno));
    return DT_OK;
}

static dt_status start(program *p, dt_arena *arena, dt_error *err)
{
    double limit = p->plan->recipe.time_limit_seconds;
    const char *file;
    dt_status st = DT_OK;
    dt_meeting meeting;

    DT_TRY(
        dt_meeting_open(&meeting, p->rank, p->plan->world_size, p->plan->attempt, p->events, err));
    dt_meeting_close(&meeting);
    DT_TRY(dt_child_enter(&p->plan->recipe, err));
    DT_TRY(check_checkpoint(p, err));
    if (p->rank == 0)
        DT_TRY(dt_saves_open(&p->saves, p->plan, p->events, arena, err));
    file = dt_program_replace_run(p->plan, p->plan->recipe.metrics.file, arena);
    if (p->metrics != NULL && p->plan->recipe.metrics.kind == DT_OUTPUT_METRICS_TENSORBOARD)
        dt_metrics_board_open(&p->board, file);
    else if (p->metrics != NULL && !on_stdout(p))
        dt_metrics_file_open(&p->file, file);
    DT_TRY(dt_child_start(&p->pid, p->plan, p->rank, meeting.port, p->out[1], p->errors[1], arena,
                          err));
    if (p->out[1] >= 0)
        close(p->out[1]);
    close(p->errors[1]);
    p->out[1] = p->errors[1] = -1;
    p->started_seconds = dt_clock_monotonic_seconds();
    if (limit > 0)
        p->limit_seconds = p->started_seconds + limit;
    DT_TRY(dt_saves_start(p->saves, err));
    dt_activity_phase("train");
    DT_TRY(send_ready(p, err));
out:
    return st;
}

static dt_status read_files(program *p, dt_error *err)
{
    dt_status st = DT_OK;
    double loss;

    DT_TRY(dt_output_metrics_settle(p->metrics, p->ended, err));
    if (p->board != NULL)
        DT_TRY(dt_metrics_board_read(p->board, p->metrics, p->ended, err));
    if (p->file.path != NULL)
        DT_TRY(dt_metrics_file_read(&p->file, p->metrics, err));
    dt_saves_note_step(p->saves, dt_output_metrics_step(p->metrics, &loss));
out:
    return st;
}

static dt_status follow(program *p, dt_error *err)
{
    dt_status st = DT_OK;

    while (!p->ended) {
        /* a negative descriptor is skipped */
        struct pollfd wait[] = {
            {p->signals, POLLIN, 0}, {p->out[0], POLLIN, 0}, {p->errors[0], POLLIN, 0}};
        size_t got;

        if (poll(wait, sizeof(wait) / sizeof(wait[0]), next_look(p)) < 0 && errno != EINTR)
            DT_THROW(err, DT_ERR_IO, "cannot wait for the program: %s", strerror(errno));
        read_signals(p);
        look_at_time(p);
        if (p->out[0] >= 0 && wait[1].revents != 0)
            DT_TRY(pass_output(p, p->out, &got, err));
        if (p->errors[0] >= 0 && wait[2].revents != 0)
            DT_TRY(pass_output(p, p->errors, &got, err));
        DT_TRY(read_files(p, err));
    }
    DT_TRY(pass_rest(p, p->out, err));
    DT_TRY(pass_rest(p, p->errors, err));
    DT_TRY(read_files(p, err));
out:
    return st;
}

/* Reports the error of a program that failed: what it wrote last. */
static void report_error(const program *p, const dt_program_end *end, dt_arena *arena)
{
    dt_error found = DT_ERROR_INIT;
    const char *text;
    bool secondary;

    if (end->signal == 0 && end->code == 0)
        return;
    text = dt_last_error_find(&secondary, &p->last_error, arena);
    if (text == NULL ||
        (end->signal != 0 && end->signal != SIGABRT && !dt_last_error_is_fatal(text)))
        return; /* a program that is killed does not say why */
    DT_FAIL(&found, secondary ? DT_ERR_PEER : DT_ERR_IO, "%s", text);
    send_failed(p->events, &found);
}

/* Returns how this process has to end. A program that was asked to end and did so has ended well. */
static dt_program_end end_of(const program *p)
{
    dt_program_end end = {0, 0};
    int asked = stop_signal(&p->plan->recipe);

    if (WIFSIGNALED(p->status))
        end.signal = WTERMSIG(p->status);
    else
        end.code = WEXITSTATUS(p->status);
    if (p->over || (p->stopping && (end.signal == asked || end.code == CODE_OF_SIGNAL + asked)))
        end = (dt_program_end){0, 0};
    return end;
}

static void release(program *p)
{
    if (!p->ended && p->pid > 0)
        kill(-p->pid, SIGKILL);
    close_pipe(p->out);
    close_pipe(p->errors);
    dt_last_error_release(&p->last_error);
    dt_metrics_file_close(&p->file);
    dt_metrics_board_close(p->board);
    if (p->signals >= 0)
        close(p->signals);
    dt_saves_close(p->saves);
    dt_output_metrics_close(p->metrics);
}

/* Returns a warning about a program that continued and then ended well, but did nothing; NULL: none. */
static const char *find_warning(const program *p, dt_arena *arena)
{
    double loss, seconds = dt_clock_monotonic_seconds() - p->started_seconds;
    int64_t step = dt_output_metrics_step(p->metrics, &loss);

    if (p->plan->attempt == 1 || p->stopping || p->over || seconds > AT_ONCE_SECONDS ||
        step > p->plan->program_step)
        return NULL;
    return dt_arena_printf(arena,
                           "the program ended %.1f s after it was resumed, without a new step: "
                           "check that it had nothing left to do",
                           seconds);
}

dt_status dt_program_run(dt_program_end *out, const dt_plan *plan, int64_t rank, dt_events *events,
                         dt_error *err)
{
    program p = {.plan = plan,
                 .rank = rank,
                 .events = events,
                 .signals = -1,
                 .out = {-1, -1},
                 .errors = {-1, -1},
                 .file = {.fd = -1},
                 .pid = -1};
    dt_status st = DT_OK;
    dt_arena arena;

    *out = (dt_program_end){0, 0};
    dt_arena_init(&arena, 0);
    DT_TRY(prepare(&p, err));
    st = start(&p, &arena, err);
    if (st == DT_ERR_TIMEOUT && dt_stop_asked()) { /* before the program was started */
        dt_error_clear(err);
        DT_TRY(send_finished(&p, "stopped", NULL, err));
        goto out;
    }
    DT_TRY(st);
    DT_TRY(follow(&p, err));
    *out = end_of(&p);
    /* one that a signal ended, as asked or not, may have been writing */
    dt_saves_end(p.saves, WIFEXITED(p.status) && WEXITSTATUS(p.status) == 0);
    report_error(&p, out, &arena);
    if (rank == 0 && out->signal == 0 && out->code == 0)
        DT_TRY(send_finished(&p,
                             p.over       ? "time_limit"
                             : p.stopping ? "stopped"
                                          : "steps",
                             find_warning(&p, &arena), err));
out:
    if (st != DT_OK)
        send_failed(events, err);
    release(&p);
    dt_arena_release(&arena);
    return st;
}

void dt_program_leave(const dt_program_end *end)
{
    const struct rlimit none = {0, 0};
    sigset_t set;

    if (end->signal != 0) {
        setrlimit(RLIMIT_CORE, &none); /* the program's core is the one of interest */
        prctl(PR_SET_DUMPABLE, 0);
        signal(end->signal, SIG_DFL);
        sigemptyset(&set);
        sigaddset(&set, end->signal);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        raise(end->signal);
    }
    exit(end->signal != 0 ? 128 + end->signal : end->code);
}
