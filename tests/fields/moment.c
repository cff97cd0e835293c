/* moment: preloaded into the engine, acts at a known moment: when rank 0 has reported its first
 * checkpoint, in the first attempt of a run.
 *
 *   MOMENT=kill   the rank kills itself
 *   MOMENT=stop   the rank makes the file MOMENT_FILE, and continues once it is asked to stop
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int stop_is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}

static void wait_for_stop(void)
{
    const struct timespec pause = {0, 5000000};
    const char *file = getenv("MOMENT_FILE");
    int fd = file != NULL ? open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;

    if (fd >= 0)
        close(fd);
    while (!stop_is_pending())
        nanosleep(&pause, NULL);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    static int over;
    static const char words[] = "\"event\":\"checkpoint\",";
    ssize_t (*next)(int, const void *, size_t, int) = NULL;
    const char *what = getenv("MOMENT"), *attempt = getenv("DTRUN_ATTEMPT");
    void *symbol = dlsym(RTLD_NEXT, "send");
    ssize_t put;

    memcpy(&next, &symbol, sizeof(next));
    put = next(fd, bytes, count, flags);
    if (over || what == NULL || put != (ssize_t)count || attempt == NULL ||
        strcmp(attempt, "1") != 0 || memmem(bytes, count, words, sizeof(words) - 1) == NULL)
        return put;
    over = 1;
    if (strcmp(what, "kill") == 0)
        raise(SIGKILL);
    else
        wait_for_stop();
    return put;
}
