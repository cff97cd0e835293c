/* peer: read from /proc/PID/stat (proc(5)): the command's name in parentheses, which may hold
 * anything; then the state (field 3) and, as field 22, the start. */
#define _GNU_SOURCE
#include "engine/comm/peer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

/* *state is one letter of ps(1). False where there is no such process. */
static bool look(int64_t pid, char *state, uint64_t *start_ticks)
{
    char path[64], text[1024], *at;
    ssize_t got;
    int fd;

    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    at = strrchr(text, ')');
    return at != NULL && sscanf(at + 1,
                                " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                                "%*d %*d %*d %" SCNu64,
                                state, start_ticks) == 2;
}

dt_status dt_peer_self(dt_peer *out, dt_error *err)
{
    char state;

    out->pid = getpid();
    if (!look(out->pid, &state, &out->start_ticks))
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc/self/stat: mount /proc");
    return DT_OK;
}

bool dt_peer_alive(const dt_peer *peer)
{
    uint64_t start_ticks;
    char state;

    return look(peer->pid, &state, &start_ticks) && start_ticks == peer->start_ticks &&
           state != 'Z' && state != 'X';
}
