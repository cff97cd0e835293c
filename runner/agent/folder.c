/* folder: creates and checks the agent's folder, which only its user may access. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/agent/agent_int.h"

dt_status dt_agent_folder_check(const char *folder, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    int fd;

    fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return DT_FAIL(err, errno == ENOENT ? DT_ERR_NOT_FOUND : DT_ERR_IO,
                       "cannot use the folder '%s': %s", folder,
                       errno == ELOOP || errno == ENOTDIR ? "it is a link or not a folder"
                                                          : strerror(errno));
    if (fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot use the folder '%s': %s", folder, strerror(errno));
    if (info.st_uid != geteuid())
        DT_THROW(err, DT_ERR_IO, "the folder '%s' belongs to user %ld, and this is user %ld",
                 folder, (long)info.st_uid, (long)geteuid());
    if ((info.st_mode & 07777) != 0700 && fchmod(fd, 0700) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make the folder '%s' private: %s", folder,
                 strerror(errno));
out:
    close(fd);
    return st;
}

dt_status dt_agent_folder_make(const char *folder, dt_error *err)
{
    dt_status st = dt_file_make_dirs(folder, 0700, err);

    return st == DT_OK ? dt_agent_folder_check(folder, err) : st;
}
