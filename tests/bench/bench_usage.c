/* bench_usage: measures what one `system` event of an agent costs (runner/agent/system.c): reading what a node is used
 * for, and the text of the event.
 *
 *     bench_usage [PROCESSES [THREADS [CGROUP]]]     of the run, 1 with 1 thread by default; the folder of its control group
 *
 * Prints microseconds of processor time for each event, and the share of a core with an event each ten seconds; asserts
 * nothing.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner/agent/process/usage.h"

#define EVENTS         500
#define EVENT_SECONDS  10.0
#define PROCESSES_MOST 1000

static double processor_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *sleep_for_ever(void *unused)
{
    for (;;)
        pause();
    return NULL;
}

static void start_process(int threads)
{
    pid_t child = fork();

    if (child < 0)
        exit(1);
    if (child > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < threads; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
            _exit(1);
    }
    sleep_for_ever(NULL);
}

int main(int argc, char **argv)
{
    int processes = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1,
        threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    const dt_usage_question question = {
        .root = "", .agent = getpid(), .cgroup = argc > 3 ? argv[3] : NULL, .folder = "."};
    dt_usage before, now;
    double begun, each;

    if (processes < 1 || processes > PROCESSES_MOST || threads < 1)
        return 2;
    for (int i = 0; i < processes; i++)
        start_process(threads);
    sleep(1);
    dt_usage_read(&before, &question);
    begun = processor_seconds();
    for (int i = 0; i < EVENTS; i++) {
        json_t *values;
        char *text;

        dt_usage_read(&now, &question);
        values = dt_usage_values(&before, &now);
        text = json_dumps(values, JSON_COMPACT);
        free(text);
        json_decref(values);
        before = now;
    }
    each = (processor_seconds() - begun) / EVENTS;
    printf("%d processes of %d threads: %.0f us an event, %.4f %% of a core\n", processes, threads,
           each * 1e6, each / EVENT_SECONDS * 100);
    return 0;
}
