#include "runner/channel/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

/* Opens the folder and builds the short address; close *dir after bind or connect. */
static dt_status address_make(struct sockaddr_un *address, int *dir, const char *folder,
                              const char *name, dt_error *err)
{
    int length;

    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    *dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*dir < 0)
        return DT_FAIL(err, errno == ENOENT ? DT_ERR_NOT_FOUND : DT_ERR_IO,
                       "cannot open the folder '%s': %s", folder, strerror(errno));
    length =
        snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", *dir, name);
    DT_ASSERT(length > 0 && (size_t)length < sizeof(address->sun_path));
    return DT_OK;
}

dt_status dt_socket_listen(int *fd, const char *folder, const char *name, dt_error *err)
{
    dt_status st = DT_OK;
    struct sockaddr_un address;
    int dir = -1, made = -1;

    *fd = -1;
    DT_TRY(address_make(&address, &dir, folder, name, err));
    if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
        DT_THROW(err, DT_ERR_IO, "cannot remove '%s/%s': %s", folder, name, strerror(errno));
    made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0 || bind(made, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        fchmodat(dir, name, 0600, 0) != 0 || listen(made, BACKLOG) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot listen on '%s/%s': %s", folder, name, strerror(errno));
    *fd = made;
    made = -1;
out:
    if (dir >= 0)
        close(dir);
    if (made >= 0)
        close(made);
    return st;
}

dt_status dt_socket_connect(int *fd, const char *folder, const char *name, dt_error *err)
{
    dt_status st = DT_OK;
    struct sockaddr_un address;
    int dir = -1, made = -1;

    *fd = -1;
    DT_TRY(address_make(&address, &dir, folder, name, err));
    made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0)
        DT_THROW(err, DT_ERR_IO, "cannot create a socket: %s", strerror(errno));
    if (connect(made, (struct sockaddr *)&address, sizeof(address)) != 0) {
        bool nobody = errno == ENOENT || errno == ECONNREFUSED;
        DT_THROW(err, nobody ? DT_ERR_NOT_FOUND : DT_ERR_IO, "cannot connect to '%s/%s': %s",
                 folder, name, strerror(errno));
    }
    *fd = made;
    made = -1;
out:
    if (dir >= 0)
        close(dir);
    if (made >= 0)
        close(made);
    return st;
}
