/* process: the start and the crash of a program, the identity of processes, and their end. */
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/strbuf.h"

/* --- the start of a program: signals, standard streams, the stack; and of its children before exec */

#define STACK_LEAST ((rlim_t)128 << 10)
#define STACK_USUAL ((rlim_t)8 << 20)
/* close_range, of Linux 5.9, and its flag, of 5.11; older headers lack them. */
#define CLOSE_RANGE         436
#define CLOSE_RANGE_ON_EXEC 4U
#define DESCRIPTORS_MOST    65536

static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
           now.sa_handler == SIG_IGN;
}

/* Returns true for signals that people ignore on purpose, for a program and its children. */
static bool is_kept(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT;
}

static void set_default(int number)
{
    struct sigaction usual;

    memset(&usual, 0, sizeof(usual));
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, NULL);
}

static void block_only(int number)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    if (number != 0)
        sigaddset(&blocked, number);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* Opens /dev/null for closed standard streams: open returns the lowest free number, which is
 * that of the closed stream. */
static void open_standard_streams(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0)
            return;
}

/* Raises a soft limit below 8 MiB as far as the hard limit allows, since the main thread's stack
 * grows up to the current limit. With less than STACK_LEAST the program would be killed by
 * SIGSEGV without a message. */
static void ensure_stack(void)
{
    static const char message[] =
        "dtrun: the limit on the stack ('ulimit -s') is below 128 KiB: raise it\n";
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_USUAL)
        return;
    limit.rlim_cur = limit.rlim_max < STACK_USUAL ? limit.rlim_max : STACK_USUAL;
    (void)setrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur < STACK_LEAST) {
        ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);

        (void)written;
        _exit(DT_EXIT_SYSTEM);
    }
}

/* Returns the number after the highest that a descriptor can have, for kernels without close_range. */
static int descriptors_end(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS_MOST
               ? (int)limit.rlim_cur
               : DESCRIPTORS_MOST;
}

void dt_startup_close_on_exec(void)
{
    int end;

    if (syscall(CLOSE_RANGE, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_ON_EXEC) == 0)
        return;
    end = descriptors_end();
    for (int fd = STDERR_FILENO + 1; fd < end; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void dt_startup_close_from(int first)
{
    int end;

    if (syscall(CLOSE_RANGE, first, ~0U, 0U) == 0)
        return;
    end = descriptors_end();
    for (int fd = first; fd < end; fd++)
        (void)close(fd);
}

void dt_startup(int held)
{
    open_standard_streams();
    ensure_stack();
    for (int number = 1; number < NSIG; number++)
        if (!is_kept(number) && is_ignored(number)) /* handlers of a sanitizer are kept */
            set_default(number);
    signal(SIGXFSZ, SIG_IGN);
    block_only(held);
}

void dt_startup_child(void)
{
    for (int number = 1; number < NSIG; number++)
        if (!is_kept(number) || !is_ignored(number))
            set_default(number);
    block_only(0);
}

void dt_startup_child_detached(void)
{
    for (int number = 1; number < NSIG; number++)
        set_default(number);
    block_only(0);
}

int dt_startup_wait_for_exec(int fd)
{
    int problem = 0;
    ssize_t got;

    do
        got = read(fd, &problem, sizeof(problem));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(problem) ? problem : 0;
}

/* --- the report of a crash */

static const char *crash_who = "";

static void write_text(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written; /* a failed write cannot be reported anywhere */
}

/* Signal handler: calls only async-signal-safe functions. */
static void on_crash(int number)
{
    struct sigaction usual;
    const char *name = sigabbrev_np(number);

    write_text(crash_who);
    write_text(DT_CRASH_WORDS);
    write_text(name != NULL ? name : "?");
    write_text("; if nothing above says why, a limit of memory, threads or stack may be too low "
               "('ulimit -a')\n");
    memset(&usual, 0, sizeof(usual));
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, NULL);
    raise(number);
}

void dt_crash_report(const char *who)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    static char stack[16384]; /* the normal stack may have overflowed */
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action, now;

    crash_who = who;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_crash;
    action.sa_flags = SA_NODEFER;
    if (sigaltstack(&other, NULL) == 0)
        action.sa_flags |= SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
            now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
}

/* --- this boot */

char *dt_boot_id(char *out)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, out, DT_BOOT_ID_SIZE - 1) : -1;

    if (fd >= 0)
        close(fd);
    out[length > 0 ? length : 0] = '\0';
    out[strcspn(out, " \n")] = '\0';
    return out;
}

int64_t dt_boot_ms(void)
{
    struct timespec now;

    DT_ASSERT(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool dt_boot_differs(const char *before, const char *now)
{
    return before != NULL && now != NULL && before[0] != '\0' && now[0] != '\0' &&
           strcmp(before, now) != 0;
}

/* --- /proc/PID/stat */

bool dt_proc_stat_read(dt_proc_stat *out, int64_t pid)
{
    char path[64], text[1024];
    const char *open_paren, *close_paren;
    int64_t user, system, children_user, children_system;
    size_t length;
    ssize_t got;
    int fd;

    memset(out, 0, sizeof(*out));
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    open_paren = strchr(text, '(');
    close_paren = strrchr(text, ')'); /* the name may contain parentheses and spaces */
    if (open_paren == NULL || close_paren == NULL ||
        sscanf(close_paren + 1,
               " %c %" SCNd64 " %*d %*d %*d %*d %*u %*u %*u %" SCNd64 " %*u %" SCNd64 " %" SCNd64
               " %" SCNd64 " %" SCNd64 " %*d %*d %*d %*d %" SCNu64,
               &out->state, &out->parent, &out->major_faults, &user, &system, &children_user,
               &children_system, &out->start_ticks) != 8)
        return false;
    out->cpu_ticks = user + system;
    out->children_ticks = children_user + children_system;
    length = (size_t)(close_paren - open_paren - 1);
    memcpy(out->command, open_paren + 1,
           length < sizeof(out->command) ? length : sizeof(out->command) - 1);
    return true;
}

/* --- finding and ending processes by their files in /proc */

#define WORDS_BYTES  ((size_t)4 << 20)
#define LOOK_SECONDS 0.02

/* Returns true if the process matches. The start time is compared before and after the read, so
 * that the words belong to the process that will be killed. */
static bool is_match(int64_t pid, const char *file, dt_proc_match_fn *matches, const void *context,
                     dt_strbuf *words)
{
    dt_proc_stat before, after;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, file);
    return dt_proc_stat_read(&before, pid) && before.state != 'Z' && before.state != 'X' &&
           dt_file_read(words, path, WORDS_BYTES, NULL) == DT_OK &&
           matches(context, before.state, words->data, words->length) &&
           dt_proc_stat_read(&after, pid) && after.start_ticks == before.start_ticks;
}

/* Kills all matching processes and returns their number; with `find`, returns the pid of the first and kills none. */
static int64_t scan(const char *file, dt_proc_match_fn *matches, const void *context,
                    dt_strbuf *words, bool find)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int64_t found = 0;

    while (dir != NULL && !(find && found != 0) && (entry = readdir(dir)) != NULL) {
        char *end;
        int64_t pid = strtoll(entry->d_name, &end, 10);

        if (pid <= 0 || *end != '\0' || pid == getpid() ||
            !is_match(pid, file, matches, context, words))
            continue;
        if (find)
            found = pid;
        else
            found += kill((pid_t)pid, SIGKILL) == 0;
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

int64_t dt_proc_end_all(const char *file, dt_proc_match_fn *matches, const void *context,
                        double seconds)
{
    double until = dt_clock_monotonic_seconds() + seconds;
    dt_strbuf words;
    int64_t left;

    dt_strbuf_init(&words);
    while ((left = scan(file, matches, context, &words, false)) > 0 &&
           dt_clock_monotonic_seconds() < until)
        dt_clock_sleep_seconds(LOOK_SECONDS);
    dt_strbuf_release(&words);
    return left;
}

int64_t dt_proc_find(const char *file, dt_proc_match_fn *matches, const void *context)
{
    dt_strbuf words;
    int64_t found;

    dt_strbuf_init(&words);
    found = scan(file, matches, context, &words, true);
    dt_strbuf_release(&words);
    return found;
}

/* --- the end of a process */

#define OF_SIGNAL     128
#define SIGNALS_COUNT 64

int dt_exit_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? -WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int dt_exit_code_for_shell(int code)
{
    return code < 0 ? OF_SIGNAL - code : code;
}

int dt_exit_code_of_shell(int code)
{
    return code > OF_SIGNAL && code <= OF_SIGNAL + SIGNALS_COUNT ? OF_SIGNAL - code : code;
}

const char *dt_exit_words(char out[DT_EXIT_WORDS_BYTES], int code)
{
    const char *name = code < 0 ? sigabbrev_np(-code) : NULL;

    if (code >= 0)
        snprintf(out, DT_EXIT_WORDS_BYTES, "ended with exit code %d", code);
    else if (name != NULL)
        snprintf(out, DT_EXIT_WORDS_BYTES, "was ended by SIG%s (%s)", name, sigdescr_np(-code));
    else
        snprintf(out, DT_EXIT_WORDS_BYTES, "was ended by signal %d", -code);
    return out;
}

const char *dt_exit_words_of_shell(char out[DT_EXIT_WORDS_BYTES], int code)
{
    return dt_exit_words(out, dt_exit_code_of_shell(code));
}
