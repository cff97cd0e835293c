/* fake_engine: a tiny program that speaks the engine's channel, for the tests of agents and
 * supervisors.
 *
 * Called as the engine is: `fake_engine train --plan FILE`. The environment sets what it does:
 *   FAKE_STEPS, FAKE_STEP_MS   how long it trains
 *   FAKE_UNTIL                 a file: no rank makes its last step before it exists
 *   FAKE_MODE                  ok | crash (exit 1 with `failed`) | abort | fault | stubborn
 *                              (ignores SIGTERM) | grandchild (stubborn, and starts one that calls
 *                              setsid) | hang | spin (a loop without an end) | slow (a step of
 *                              FAKE_PIECES tenths of a second) | flood | garbage | silent (exits 0
 *                              without `finished`)
 *   FAKE_ESCAPE                the grandchild takes the agent's mark out of its environment;
 *                              all: it empties it
 *   FAKE_RANK, FAKE_STEP       the rank and the step of crash, abort, hang, spin and slow
 *   FAKE_ATTEMPTS              number of attempts in which they happen; default: all
 *   FAKE_STATUS                what crash says of itself (io)
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t told_to_stop;

static void on_term(int number)
{
    told_to_stop = 1;
}

static long variable(const char *name, long fallback)
{
    const char *text = getenv(name);

    return text != NULL ? strtol(text, NULL, 10) : fallback;
}

static int is_mode(const char *mode)
{
    const char *text = getenv("FAKE_MODE");

    return strcmp(text != NULL ? text : "ok", mode) == 0;
}

static int is_escape(const char *kind)
{
    const char *text = getenv("FAKE_ESCAPE");

    return text != NULL && strcmp(text, kind) == 0;
}

static int channel(void)
{
    return (int)variable("DTRUN_CHANNEL", 1);
}

static void say(const char *text)
{
    size_t length = strlen(text);

    while (length > 0) {
        ssize_t put = write(channel(), text, length);
        if (put < 0 && errno != EINTR)
            _exit(1); /* no agent supervises this rank */
        if (put > 0) {
            text += put;
            length -= (size_t)put;
        }
    }
}

/* Reads one line of the channel. Returns false at its end. */
static int hear(char *out, size_t size)
{
    size_t length = 0;

    while (length + 1 < size) {
        ssize_t got = read(channel(), out + length, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        if (out[length] == '\n')
            break;
        length++;
    }
    out[length] = '\0';
    return 1;
}

static long progress; /* status that the engine reports */

static void answer(long step)
{
    static char line[1 << 12];

    if (!hear(line, sizeof(line)))
        _exit(1);
    if (strstr(line, "\"where\"") == NULL)
        return;
    snprintf(line, sizeof(line),
             "{\"event\":\"where\",\"step\":%ld,\"phase\":\"train\",\"progress\":%ld,"
             "\"collective\":null,\"seconds\":null}\n",
             step, progress);
    say(line);
}

static void wait_ms(long step, long ms)
{
    struct pollfd waiting = {channel(), POLLIN, 0};
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
    progress++;
    while (!is_mode("hang") && poll(&waiting, 1, 0) == 1)
        answer(step);
}

/* Answers as the engine's event thread does, also for a rank that hangs. */
static void hang(long step)
{
    static char line[1 << 12];

    for (;;) {
        if (!hear(line, sizeof(line)))
            _exit(1);
        if (strstr(line, "\"where\"") == NULL)
            continue;
        snprintf(line, sizeof(line),
                 "{\"event\":\"where\",\"step\":%ld,\"phase\":\"train\",\"progress\":%ld,"
                 "\"collective\":\"all_reduce comm/ddp #%ld, 25.0 MB\",\"seconds\":12.5}\n",
                 step, progress, step);
        say(line);
    }
}

static void grandchild(void)
{
    signal(SIGTERM, SIG_IGN);
    if (fork() != 0)
        return;
    setsid();
    if (fork() != 0)
        _exit(0);
    if (getenv("FAKE_ESCAPE") != NULL)
        unsetenv("DTRUN_NODE_DIR"); /* found only as a descendant */
    if (is_escape("all"))
        clearenv(); /* and after its agent is gone not even as that */
    execl("/bin/sleep", "sleep", "600", (char *)NULL);
    _exit(1);
}

static void misbehave(long rank, long step)
{
    int here = rank == variable("FAKE_RANK", 0) && step == variable("FAKE_STEP", 3) &&
               variable("DTRUN_ATTEMPT", 1) <= variable("FAKE_ATTEMPTS", 1000);
    const char *status = getenv("FAKE_STATUS");
    char text[200];

    if (is_mode("crash") && here) {
        fprintf(stderr, "the last words of rank %ld\n", rank);
        snprintf(text, sizeof(text),
                 "{\"event\":\"failed\",\"status\":\"%s\",\"message\":\"no such corpus\"}\n",
                 status != NULL ? status : "io");
        say(text);
        exit(1);
    }
    if (is_mode("abort") && here) {
        fprintf(stderr, "the last words of rank %ld\n", rank);
        abort();
    }
    if (is_mode("fault") && here)
        *(volatile char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
    if (is_mode("flood"))
        for (int i = 0; i < 2000; i++)
            printf("step %ld line %d of a very talkative program\n", step, i);
    if (is_mode("garbage"))
        say("not "
            "json\n{\"event\":\"nonsense\"}\n{\"event\":\"metrics\",\"step\":\"x\"}\n\xff\xfe\n");
    if (is_mode("hang") && here)
        hang(step);
    if (is_mode("slow") && here)
        for (long pieces = variable("FAKE_PIECES", 10); pieces > 0; pieces--)
            wait_ms(step, 100);
    while (is_mode("spin") && here)
        progress += 0;
}

int main(int argc, char **argv)
{
    long rank = variable("RANK", 0), world = variable("WORLD_SIZE", 1);
    long steps = variable("FAKE_STEPS", 10), step_ms = variable("FAKE_STEP_MS", 10), step;
    const char *until = getenv("FAKE_UNTIL");
    static char line[1 << 16];

    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTERM, is_mode("stubborn") ? SIG_IGN : on_term);
    if (is_mode("grandchild"))
        grandchild();
    snprintf(line, sizeof(line),
             "{\"event\":\"ready\",\"pid\":%ld,\"device\":\"cpu\",\"threads\":1}\n",
             (long)getpid());
    say(line);
    snprintf(line, sizeof(line),
             "{\"event\":\"rendezvous\",\"name\":\"gloo\",\"value\":\"%02lx\"}\n", rank);
    say(line);
    do /* may be asked for its position before all ranks have met */
        if (!hear(line, sizeof(line)))
            return 1;
    while (strstr(line, "\"rendezvous\"") == NULL);
    printf("rank %ld of %ld: %s\n", rank, world, line);
    for (step = 1; step <= steps && !told_to_stop; step++) {
        misbehave(rank, step);
        do
            wait_ms(step, step_ms);
        while (step == steps && until != NULL && access(until, F_OK) != 0 && !told_to_stop);
        if (rank == 0) {
            snprintf(line, sizeof(line),
                     "{\"event\":\"metrics\",\"step\":%ld,\"values\":{\"loss\":%.6f,"
                     "\"tokens_per_second\":1000}}\n",
                     step, 5.0 / (double)step);
            say(line);
        }
        printf("step %ld\n", step);
    }
    if (is_mode("silent"))
        return 0;
    if (rank == 0) {
        snprintf(line, sizeof(line),
                 "{\"event\":\"checkpoint\",\"step\":%ld,\"directory\":\"step-%08ld\",\"bytes\":10,"
                 "\"digest\":\"00\",\"valid_loss\":null,\"seconds\":0.1}\n",
                 step - 1, step - 1);
        say(line);
        snprintf(line, sizeof(line),
                 "{\"event\":\"finished\",\"step\":%ld,\"reason\":\"%s\",\"loss\":1.5,"
                 "\"valid_loss\":1.6}\n",
                 step - 1, told_to_stop ? "stopped" : "steps");
        say(line);
    }
    return 0;
}
