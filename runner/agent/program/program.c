#include "runner/agent/program/program.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "runner/agent/program/program_int.h"

#define CODE_REFUSED    1    /* of a rank whose program cannot be executed */
#define AT_ONCE_SECONDS 10.0 /* a resumed program that ends sooner may have done nothing */
#define LONGEST_TICK_MS 60000.0
#define LOOK_MS \
    500 /* interval of reading files of metrics, and of looking at values without a step */
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

/* What rank 0 reads in files. A look has it alone. */
typedef struct files {
    bool any, opened;
    dt_arena arena;
    dt_output_metrics *metrics; /* NULL: metrics are in the output, or there are none */
    dt_metrics_file file;
    dt_metrics_board *board; /* reads event files; NULL: none */
    dt_saves *saves;
    bool ended, ended_well;    /* set before the last look */
    json_t *events, *warnings; /* that a look has found, and that were not sent yet */
    dt_reports reports;        /* which adds to them */
} files;

struct dt_program {
    const dt_program_plan *shared;
    const dt_plan *plan;
    int64_t rank;
    dt_reports reports;
    dt_arena arena;
    dt_environment variables;
    const char **candidates;    /* files that are tried; see dt_program_command */
    dt_output_metrics *metrics; /* in its output; NULL: none, or in files */
    atomic_int_fast64_t step;   /* of the metrics */
    files files;
    dt_last_error last_error;
    pid_t pid;              /* 0: not started */
    bool refused;           /* it could not be executed */
    double started_seconds; /* by the monotonic clock; 0: not executed yet */
    bool ended;
    int status;          /* of waitpid, once it has ended */
    bool stopping, over; /* it was asked to end; time_limit was reached */
    double
        limit_seconds;   /* when time_limit is over, by the monotonic clock; 0: no limit, or over */
    double kill_seconds; /* when a program at the limit is killed; 0: not yet known, or done */
};

/* --- events */

static void send_failed(const dt_program *p, const dt_error *why)
{
    dt_reports_send(&p->reports,
                    json_pack("{s:s, s:s, s:o}", "event", "failed", "status",
                              dt_status_name(why->code), "message", dt_json_text(why->message)));
}

static void send_ready(const dt_program *p)
{
    const dt_plan_rank *rank = &p->plan->ranks[p->rank];

    dt_reports_send(&p->reports, json_pack("{s:s, s:I, s:s, s:I, s:I, s:I}", "event", "ready",
                                           "pid", (json_int_t)p->pid, "device", rank->device,
                                           "threads", (json_int_t)rank->threads, "step",
                                           (json_int_t)0, "steps", (json_int_t)0));
}

/* --- files, in the thread of a look */

static void keep_event(void *context, json_t *event)
{
    files *found = context;

    json_array_append_new(found->events, event);
}

static void keep_warning(void *context, const char *text)
{
    files *found = context;

    json_array_append_new(found->warnings, dt_json_text(text));
}

/* Returns whether the metrics are not in the output. */
static bool in_files(const dt_recipe *recipe)
{
    return recipe->metrics.file[0] != '\0' || recipe->metrics.kind == DT_OUTPUT_METRICS_TENSORBOARD;
}

/* Notes what there is before the program starts. */
static void open_files(dt_program *p)
{
    const char *path = p->plan->recipe.metrics.file;
    bool pattern = strpbrk(path, "*?[") != NULL;
    files *all = &p->files;

    if (all->metrics != NULL && p->plan->recipe.metrics.kind == DT_OUTPUT_METRICS_TENSORBOARD)
        dt_metrics_board_open(&all->board, dt_program_path(p->plan, path, false, &all->arena));
    else if (all->metrics != NULL)
        dt_metrics_file_open(&all->file, dt_program_path(p->plan, path, pattern, &all->arena),
                             pattern);
    dt_saves_open(&all->saves, p->plan, &p->step, &all->reports, &all->arena);
    all->opened = true;
}

static void read_files(dt_program *p)
{
    files *all = &p->files;
    double loss;

    if (all->board != NULL)
        dt_metrics_board_read(all->board, all->metrics, all->ended);
    if (all->file.path != NULL)
        dt_metrics_file_read(&all->file, all->metrics);
    dt_output_metrics_settle(all->metrics, all->ended);
    if (all->metrics != NULL)
        p->step = dt_output_metrics_step(all->metrics, &loss);
    if (all->ended)
        dt_saves_end(all->saves, all->ended_well);
    else
        dt_saves_look(all->saves, p->pid);
}

void dt_program_look(dt_program *program)
{
    if (program->files.opened)
        read_files(program);
    else
        open_files(program);
}

/* --- files, in the thread of the program */

static dt_status prepare_files(dt_program *p, dt_error *err)
{
    const dt_recipe *recipe = &p->plan->recipe;
    files *all = &p->files;

    all->events = json_array();
    all->warnings = json_array();
    all->reports = (dt_reports){keep_event, keep_warning, all};
    all->any = in_files(recipe) || recipe->checkpoints.path[0] != '\0';
    return in_files(recipe) ? dt_output_metrics_open(&all->metrics, recipe, p->plan->program_step,
                                                     &all->reports, err)
                            : DT_OK;
}

int64_t dt_program_look_ms(const dt_program *program)
{
    const dt_recipe *recipe = &program->plan->recipe;
    double settle_ms = dt_saves_interval_seconds(recipe) * 1e3;

    if (!program->files.any)
        return 0;
    if (recipe->checkpoints.path[0] == '\0' ||
        (program->files.metrics != NULL && settle_ms > LOOK_MS))
        return LOOK_MS;
    return settle_ms > 1 ? (int64_t)settle_ms : 1;
}

void dt_program_looked(dt_program *program)
{
    files *all = &program->files;
    json_t *item;
    size_t i;

    json_array_foreach(all->events, i, item)
        dt_reports_send(&program->reports, json_incref(item));
    json_array_foreach(all->warnings, i, item)
        program->reports.warn(program->reports.context, json_string_value(item));
    json_array_clear(all->events);
    json_array_clear(all->warnings);
}

static void release_files(files *all)
{
    dt_metrics_file_close(&all->file);
    dt_metrics_board_close(all->board);
    dt_saves_close(all->saves);
    dt_output_metrics_close(all->metrics);
    json_decref(all->events);
    json_decref(all->warnings);
    dt_arena_release(&all->arena);
}

/* --- start */

dt_status dt_program_open(dt_program **out, const dt_program_plan *shared, int64_t rank,
                          const dt_reports *reports, dt_error *err)
{
    dt_program *p = dt_calloc(1, sizeof(*p));
    dt_status st = DT_OK;

    *out = p;
    p->shared = shared;
    p->plan = &shared->plan;
    p->rank = rank;
    p->reports = *reports;
    p->files.file.fd = -1;
    dt_arena_init(&p->arena, 0);
    dt_arena_init(&p->files.arena, 0);
    dt_last_error_init(&p->last_error);
    if (rank != 0)
        return DT_OK;
    DT_TRY(prepare_files(p, err));
    if (!in_files(&p->plan->recipe))
        DT_TRY(dt_output_metrics_open(&p->metrics, &p->plan->recipe, p->plan->program_step,
                                      &p->reports, err));
out:
    return st;
}

void dt_program_close(dt_program *program)
{
    if (program == NULL)
        return;
    release_files(&program->files);
    dt_output_metrics_close(program->metrics);
    dt_last_error_release(&program->last_error);
    dt_environment_release(&program->variables);
    dt_arena_release(&program->arena);
    free(program);
}

/* Lists the files that may be the program: those of its name in the PATH that it will have. A name with a
 * slash is relative to its folder. */
static const char **list_candidates(const char *name, const dt_environment *variables,
                                    dt_arena *arena)
{
    const char *path = dt_environment_get(variables, "PATH"), **out;
    size_t count = 0;

    path = path != NULL ? path : PATH_DEFAULT;
    out = dt_arena_alloc_array(arena, strlen(path) + 2, sizeof(*out));
    if (strchr(name, '/') != NULL)
        out[count++] = name;
    for (const char *at = path; *at != '\0' && strchr(name, '/') == NULL;) {
        size_t length = strcspn(at, ":");

        if (length > 0)
            out[count++] = dt_arena_printf(arena, "%.*s/%s", (int)length, at, name);
        at += length + (at[length] == ':');
    }
    out[count] = NULL;
    return out;
}

static int64_t count_local(const dt_plan *plan, int64_t node)
{
    int64_t count = 0;

    for (int64_t r = 0; r < plan->world_size; r++)
        count += plan->ranks[r].node == node;
    return count;
}

dt_status dt_program_command(dt_spawn_program *out, dt_program *program,
                             const dt_environment *of_rank, dt_error *err)
{
    const dt_plan *plan = program->plan;
    const char *address = dt_environment_get(of_rank, "MASTER_ADDR");
    const dt_words_facts facts = {.rank = program->rank,
                                  .local_ranks = count_local(plan, plan->ranks[program->rank].node),
                                  .master_address =
                                      address != NULL && address[0] != '\0' ? address : "127.0.0.1",
                                  .master_port = program->shared->port};
    const char **words = dt_program_words(plan, &facts, &program->arena);
    dt_status st = DT_OK;

    DT_TRY(dt_program_variables(&program->variables, of_rank, plan, &facts, err));
    program->candidates = list_candidates(words[0], &program->variables, &program->arena);
    *out = (dt_spawn_program){.folder = plan->recipe.workdir.folder,
                              .checkpoint = plan->program_checkpoint,
                              .needs_checkpoint = program->rank == 0,
                              .candidates = program->candidates,
                              .search = strchr(words[0], '/') == NULL,
                              .words = (char *const *)words,
                              .environment = program->variables.items};
out:
    return st;
}

void dt_program_started(dt_program *program, pid_t pid)
{
    program->pid = pid;
}

void dt_program_refused(dt_program *program, const dt_error *why)
{
    program->refused = true;
    send_failed(program, why);
}

/* Says why a program could not be executed. */
static void refuse(dt_error *err, const char *file, int problem, bool exists)
{
    if (problem == ENOENT && exists)
        DT_FAIL(err, DT_ERR_RECIPE,
                "cannot run '%s': the interpreter that its first line names does not exist on "
                "this node",
                file);
    else if (problem == ENOEXEC)
        DT_FAIL(err, DT_ERR_RECIPE,
                "cannot run '%s': it is neither a program nor a script that begins with '#!'",
                file);
    else
        DT_FAIL(err, DT_ERR_RECIPE, "cannot run '%s' on this node: %s", file, strerror(problem));
}

/* Rank 0 saved the checkpoint on this node; programs of other nodes may need it too, or not. */
static void refuse_checkpoint(const dt_program *p, dt_error *err, int problem)
{
    const char *path = p->plan->program_checkpoint;

    if (p->rank == 0)
        DT_FAIL(err, DT_ERR_RECIPE,
                "cannot continue from the checkpoint '%s': %s (put it back on this node, or "
                "resume from an earlier one with --from)",
                path, strerror(problem));
    else
        dt_reports_warn(&p->reports, "the checkpoint '%s' is not on this node: %s", path,
                        strerror(problem));
}

static void refuse_name(const dt_program *p, dt_error *err)
{
    const char *path = dt_environment_get(&p->variables, "PATH");
    const char *first = p->candidates[0];

    DT_FAIL(err, DT_ERR_RECIPE,
            "'%s' was not found on this node (PATH is %s): install it, or write its path",
            first != NULL ? strrchr(first, '/') + 1 : "the program",
            path != NULL ? path : PATH_DEFAULT);
}

void dt_program_take_line(dt_program *program, const char *line)
{
    const dt_recipe *recipe = &program->plan->recipe;
    dt_error why = DT_ERROR_INIT;
    int problem = 0, index = 0, exists = 0;
    char what = '\0';

    if (sscanf(line, "%c %d %d %d", &what, &problem, &index, &exists) != 4)
        return;
    if (what == DT_SPAWN_NO_FOLDER)
        DT_FAIL(&why, DT_ERR_RECIPE, "cannot run in the folder '%s' of this node: %s%s",
                recipe->workdir.folder, strerror(problem),
                recipe->workdir.ship == DT_SHIP_NEVER
                    ? " (workdir.ship is never: put it there, or set workdir.ship: auto)"
                    : "");
    else if (what == DT_SPAWN_NO_CHECKPOINT)
        refuse_checkpoint(program, &why, problem);
    else if (what == DT_SPAWN_NOT_FOUND)
        refuse_name(program, &why);
    else
        refuse(&why, program->candidates[index], problem, exists != 0);
    if (why.code != DT_OK)
        dt_program_refused(program, &why);
}

void dt_program_executed(dt_program *program)
{
    double limit = program->plan->recipe.time_limit_seconds;

    if (program->refused || program->started_seconds > 0)
        return;
    program->started_seconds = dt_clock_monotonic_seconds();
    if (limit > 0)
        program->limit_seconds = program->started_seconds + limit;
    send_ready(program);
}

/* --- output */

void dt_program_read(dt_program *program, const char *bytes, size_t length)
{
    double loss;

    if (program->metrics == NULL)
        return;
    dt_output_metrics_read(program->metrics, bytes, length);
    program->step = dt_output_metrics_step(program->metrics, &loss);
}

void dt_program_read_errors(dt_program *program, const char *bytes, size_t length)
{
    dt_last_error_add(&program->last_error, bytes, length);
    dt_output_metrics_read_errors(program->metrics, bytes, length);
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
static void ask_to_end(const dt_program *p)
{
    if (!p->ended && p->pid > 0)
        kill(p->plan->recipe.shell ? -p->pid : p->pid, stop_signal(&p->plan->recipe));
}

void dt_program_stop(dt_program *program)
{
    program->stopping = true;
    ask_to_end(program);
}

int64_t dt_program_tick_ms(const dt_program *program)
{
    double at = program->limit_seconds > 0 ? program->limit_seconds : program->kill_seconds;
    double left_ms = 1000 * (at - dt_clock_monotonic_seconds());

    if (program->ended)
        return -1;
    if (dt_output_metrics_waits(program->metrics) && (at <= 0 || left_ms > LOOK_MS))
        return LOOK_MS;
    if (at <= 0)
        return -1;
    return left_ms < 0                 ? 0
           : left_ms < LONGEST_TICK_MS ? (int64_t)left_ms + 1
                                       : (int64_t)LONGEST_TICK_MS;
}

void dt_program_tick(dt_program *program)
{
    const dt_recipe *recipe = &program->plan->recipe;
    double now = dt_clock_monotonic_seconds();

    dt_output_metrics_settle(program->metrics, false);
    if (program->limit_seconds > 0 && now >= program->limit_seconds) {
        dt_reports_warn(&program->reports, "time_limit is over: the program gets SIG%s",
                        sigabbrev_np(stop_signal(recipe)));
        program->limit_seconds = 0;
        program->over = true;
        program->kill_seconds = now + recipe->grace_seconds;
        ask_to_end(program);
    } else if (program->kill_seconds > 0 && now >= program->kill_seconds) {
        program->kill_seconds = 0;
        if (!program->ended)
            kill(-program->pid, SIGKILL);
    }
}

/* --- end */

void dt_program_ended(dt_program *program, int wait_status)
{
    program->ended = true;
    program->status = wait_status;
    dt_output_metrics_settle(program->metrics, true);
}

void dt_program_last_look(dt_program *program)
{
    program->files.ended = true;
    /* one that a signal ended, as asked or not, may have been writing */
    program->files.ended_well = dt_exit_code(program->status) == 0;
}

/* Returns the status that the rank has. A program that was asked to end and did so has ended well. */
static int status_of(const dt_program *p)
{
    int asked = stop_signal(&p->plan->recipe);
    bool as_asked = dt_exit_code_of_shell(dt_exit_code(p->status)) == -asked;

    if (p->refused)
        return W_EXITCODE(CODE_REFUSED, 0);
    return p->over || (p->stopping && as_asked) ? 0 : p->status;
}

/* Reports the error of a program that failed: what it wrote last. */
static void report_error(dt_program *p, int status)
{
    dt_error found = DT_ERROR_INIT;
    int code = dt_exit_code(status);
    bool secondary;
    const char *text = dt_last_error_find(&secondary, &p->last_error, &p->arena);

    if (text == NULL || (code < 0 && code != -SIGABRT && !dt_last_error_is_fatal(text)))
        return; /* a program that is killed does not say why */
    DT_FAIL(&found, secondary ? DT_ERR_PEER : DT_ERR_IO, "%s", text);
    send_failed(p, &found);
}

/* Returns a warning about a program that continued and then ended well, but did nothing; NULL: none. */
static const char *find_warning(dt_program *p, int64_t step)
{
    double seconds = dt_clock_monotonic_seconds() - p->started_seconds;

    if (p->plan->attempt == 1 || p->stopping || p->over || seconds > AT_ONCE_SECONDS ||
        step > p->plan->program_step)
        return NULL;
    return dt_arena_printf(&p->arena,
                           "the program ended %.1f s after it was resumed, without a new step: "
                           "check that it had nothing left to do",
                           seconds);
}

static void send_finished(dt_program *p, bool look_given_up)
{
    const char *reason = p->over ? "time_limit" : p->stopping ? "stopped" : "steps";
    double loss;
    int64_t step = dt_output_metrics_step(
        p->metrics != NULL || look_given_up ? p->metrics : p->files.metrics, &loss);
    int64_t steps = strcmp(reason, "steps") == 0 ? step : 0; /* one that is stopped may have more */

    dt_reports_send(&p->reports,
                    json_pack("{s:s, s:I, s:I, s:s, s:o, s:s*}", "event", "finished", "step",
                              (json_int_t)step, "steps", (json_int_t)steps, "reason", reason,
                              "loss", isfinite(loss) ? json_real(loss) : json_null(), "warning",
                              find_warning(p, step)));
}

int dt_program_finish(dt_program *program, bool look_given_up)
{
    int status = status_of(program);

    if (status != 0 && !program->refused)
        report_error(program, status);
    if (status == 0 && program->rank == 0)
        send_finished(program, look_given_up);
    return status;
}
