#include "base/proc_stat.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
