/* libc_folder: answers the calls that list a folder. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/wrap.h"

typedef struct listing {
    struct dirent entry;
    int count, at, fd;
    const char *names[];
} listing;

static DIR *list(const char *path, int fd)
{
    sim_machine *machine = sim_machine_self();
    char full[SIM_PATH_BYTES];
    const sim_inode *folder = sim_fs_find(machine, sim_fs_resolve(full, sizeof(full), path));
    listing *made;

    if (folder == NULL || !folder->folder) {
        errno = ENOENT;
        return NULL;
    }
    made = sim_alloc(sizeof(*made) + (size_t)machine->file_count * sizeof(made->names[0]));
    made->fd = fd;
    for (int i = 0; i < machine->file_count; i++) {
        const char *name = machine->files[i]->path;

        if (sim_fs_is_below(name, full) && strchr(name + strlen(full) + 1, '/') == NULL)
            made->names[made->count++] = name + strlen(full) + 1;
    }
    return (DIR *)made;
}

WRAP(DIR *, opendir, const char *path)
{
    return sim_self() != NULL ? list(path, -1) : __real_opendir(path);
}

WRAP(DIR *, fdopendir, int fd)
{
    sim_fd *entry = sim_fd_get(fd);

    return entry != NULL ? list(entry->inode->path, fd) : NULL;
}

WRAP(struct dirent *, readdir, DIR *dir)
{
    listing *open = (listing *)dir;

    if (sim_self() == NULL)
        return __real_readdir(dir);
    if (open->at == open->count)
        return NULL;
    snprintf(open->entry.d_name, sizeof(open->entry.d_name), "%s", open->names[open->at++]);
    return &open->entry;
}

WRAP(int, closedir, DIR *dir)
{
    if (sim_self() == NULL)
        return __real_closedir(dir);
    if (((listing *)dir)->fd >= 0)
        sim_fd_close(sim_self(), ((listing *)dir)->fd);
    return 0;
}
