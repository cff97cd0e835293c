/* fs: stores the files of a machine in memory. Folders are entries of their own; a name is a whole path.
 *
 * A power loss removes a random part of what was appended to a file since its last sync. Overwritten bytes, names and
 * folders survive, since a disk may have written them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#define BLOCK_BYTES 4096

static uint64_t numbers;

sim_machine *sim_machine_self(void)
{
    sim_proc *self = sim_self();

    return self != NULL ? self->machine : &sim.machines[0];
}

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

const char *sim_fs_resolve(char *out, size_t size, const char *path)
{
    sim_proc *self = sim_self();
    size_t length = 0;

    if (path[0] != '/' && self != NULL)
        length = (size_t)snprintf(out, size, "%s", self->cwd);
    while (*path != '\0' && length + 2 < size) {
        size_t part = strcspn(path, "/");

        if (part > 0 && !(part == 1 && path[0] == '.')) {
            if (length + part + 2 >= size)
                break;
            out[length++] = '/';
            memcpy(out + length, path, part);
            length += part;
        }
        path += part;
        path += strspn(path, "/");
    }
    if (length == 0)
        out[length++] = '/';
    out[length] = '\0';
    return out;
}

sim_inode *sim_fs_find(sim_machine *machine, const char *path)
{
    uint32_t hash = hash_of(path);

    for (int i = 0; i < machine->file_count; i++)
        if (machine->files[i]->hash == hash && strcmp(machine->files[i]->path, path) == 0)
            return machine->files[i];
    return NULL;
}

sim_inode *sim_fs_make(sim_machine *machine, const char *path, bool folder)
{
    sim_inode *inode = sim_alloc(sizeof(*inode));

    DT_ASSERT(machine->file_count < (int)(sizeof(machine->files) / sizeof(machine->files[0])));
    inode->path = sim_print("%s", path);
    inode->hash = hash_of(path);
    inode->number = ++numbers;
    inode->folder = folder;
    inode->mode = folder ? 0700 : 0600;
    machine->files[machine->file_count++] = inode;
    return inode;
}

void sim_fs_remove(sim_machine *machine, sim_inode *inode)
{
    for (int i = 0; i < machine->file_count; i++)
        if (machine->files[i] == inode)
            machine->files[i] = machine->files[--machine->file_count];
    inode->path = NULL;
}

bool sim_fs_is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static void reserve(sim_inode *inode, int64_t length)
{
    int64_t capacity = inode->capacity > 0 ? inode->capacity : 512;

    if (length <= inode->capacity)
        return;
    while (capacity < length)
        capacity *= 2;
    inode->data = realloc(inode->data, (size_t)capacity);
    inode->capacity = capacity;
    DT_ASSERT(inode->data != NULL);
}

/* Returns the bytes up to the end of the last block: a full disk still accepts them. Of two
 * files that grow together, one may thus accept its part and the other not. */
static int64_t allocated(const sim_inode *inode)
{
    return (inode->length + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

bool sim_fs_write(sim_machine *machine, sim_inode *inode, int64_t offset, const void *bytes,
                  int64_t length)
{
    int64_t end = offset + length;

    if (end > allocated(inode) && machine->full_until_ns > sim_now_ns)
        return false;
    reserve(inode, end);
    if (offset > inode->length)
        memset(inode->data + inode->length, 0, (size_t)(offset - inode->length));
    memcpy(inode->data + offset, bytes, (size_t)length);
    if (end > inode->length)
        inode->length = end;
    return true;
}

void sim_fs_cut(sim_inode *inode, int64_t length)
{
    reserve(inode, length);
    if (length > inode->length)
        memset(inode->data + inode->length, 0, (size_t)(length - inode->length));
    inode->length = length;
    if (inode->synced > length)
        inode->synced = length;
}

void sim_fs_sync(sim_machine *machine, sim_inode *inode)
{
    int64_t length = inode->length;

    if (sim_running != NULL && machine->slow_until_ns > sim_now_ns)
        sim_sleep(sim_between(0, machine->slow_ns));
    inode->synced = length < inode->length ? length : inode->length;
}

void sim_fs_power_loss(sim_machine *machine)
{
    for (int i = 0; i < machine->file_count; i++) {
        sim_inode *inode = machine->files[i];

        if (!inode->folder && inode->synced < inode->length)
            inode->length = sim_between(inode->synced, inode->length);
        inode->synced = inode->length;
    }
}

void sim_fs_put(sim_machine *machine, const char *path, const char *text)
{
    sim_inode *inode = sim_fs_find(machine, path);

    if (inode == NULL)
        inode = sim_fs_make(machine, path, false);
    sim_fs_cut(inode, 0);
    sim_fs_write(machine, inode, 0, text, (int64_t)strlen(text));
    inode->synced = inode->length;
}
