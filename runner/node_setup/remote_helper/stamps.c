#include "runner/node_setup/remote_helper/stamps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"

#define STAMPS_BYTES ((size_t)32 << 20)
#define THREADS_MAX  3
#define SPAN_LEAST   2000
#define TICK_SECONDS 0.0005
#define TICK_WAITS   100 /* a tick takes at most 10 ms */

/* --- stamps */

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Returns the time of the kernel's last tick: a change from now on gets no earlier time. */
static int64_t tick_ns(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 ? nanoseconds(&now) : 0;
}

void dt_stamps_pass_tick(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return;
    for (int i = 0; i < TICK_WAITS && tick_ns() <= nanoseconds(&now); i++)
        dt_clock_sleep_seconds(TICK_SECONDS);
}

dt_stamp dt_stamp_of(const struct stat *info)
{
    return (dt_stamp){.inode = (uint64_t)info->st_ino,
                      .changed_ns = nanoseconds(&info->st_ctim),
                      .mode = (uint32_t)info->st_mode,
                      .group = (uint32_t)info->st_gid};
}

dt_stamp dt_stamp_settled(const struct stat *info)
{
    dt_stamp stamp = dt_stamp_of(info);

    if (stamp.changed_ns >= tick_ns())
        stamp.changed_ns = 0;
    return stamp;
}

/* Returns true if the folder has attributes or an access list of someone. */
static bool has_attributes(int folder, const char *path)
{
    int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char names[4096];
    ssize_t length = fd >= 0 ? flistxattr(fd, names, sizeof(names)) : -1;
    bool has = length < 0 && (fd < 0 || errno != ENOTSUP);

    for (const char *name = names; length > 0 && !has && name < names + length;
         name += strlen(name) + 1)
        has = strncmp(name, "security.", strlen("security.")) != 0; /* given to every file */
    if (fd >= 0)
        close(fd);
    return has;
}

/* Returns true if the entry is as it was stamped, which also says whose it is. A folder gets another ctime with each
 * name in it. */
static bool is_untouched(const dt_stamp *stamp, const dt_tree_entry *entry, const struct stat *info,
                         int folder)
{
    if (stamp->changed_ns == 0 || stamp->inode != (uint64_t)info->st_ino ||
        stamp->mode != (uint32_t)info->st_mode || stamp->group != (uint32_t)info->st_gid ||
        (entry->kind == DT_TREE_FILE && info->st_size != entry->bytes))
        return false;
    if (stamp->changed_ns == nanoseconds(&info->st_ctim))
        return true;
    return entry->kind == DT_TREE_FOLDER && !has_attributes(folder, entry->path);
}

/* Reads a number that ends with `end`. */
static bool take_number(uint64_t *out, const char **at, char end)
{
    char *after;

    errno = 0;
    *out = strtoull(*at, &after, 10);
    if (after == *at || *after != end || errno != 0)
        return false;
    *at = after + 1;
    return true;
}

/* Reads "KEY BOOT COUNT\n", and "INODE CTIME MODE GROUP\n" of each entry. */
static bool parse_stamps(dt_stamped *out, const char *text, dt_arena *arena)
{
    char key[DT_DIGEST_SIZE], before[DT_BOOT_ID_SIZE], boot[DT_BOOT_ID_SIZE];
    uint64_t changed, mode, group, count;
    int used = 0;

    if (sscanf(text, "%32s %39s %n", key, before, &used) != 2 || used == 0 ||
        dt_boot_id(boot)[0] == '\0' || strcmp(before, boot) != 0)
        return false;
    text += used;
    if (!take_number(&count, &text, '\n') || count != (uint64_t)out->tree.count)
        return false;
    out->stamps = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(out->stamps[0]));
    for (uint64_t i = 0; i < count; i++) {
        dt_stamp *stamp = &out->stamps[i];

        if (!take_number(&stamp->inode, &text, ' ') || !take_number(&changed, &text, ' ') ||
            !take_number(&mode, &text, ' ') || !take_number(&group, &text, '\n'))
            return false;
        stamp->changed_ns = (int64_t)changed;
        stamp->mode = (uint32_t)mode;
        stamp->group = (uint32_t)group;
    }
    out->key = dt_arena_strdup(arena, key);
    return true;
}

void dt_stamps_read(dt_stamped *out, const char *tree, const char *stamps, dt_arena *arena)
{
    dt_strbuf text;

    *out = (dt_stamped){0};
    dt_strbuf_init(&text);
    if (dt_file_read(&text, stamps, STAMPS_BYTES, NULL) != DT_OK ||
        dt_tree_read(&out->tree, tree, arena, NULL) != DT_OK ||
        !parse_stamps(out, text.data, arena))
        *out = (dt_stamped){0};
    dt_strbuf_release(&text);
}

void dt_stamps_read_folder(dt_stamped *out, const char *folder, dt_arena *arena)
{
    dt_stamps_read(out, dt_arena_printf(arena, "%s" DT_SENT_TREE_RECORD, folder),
                   dt_arena_printf(arena, "%s" DT_STAMPS_RECORD, folder), arena);
}

bool dt_stamps_write(const char *path, const char *key, const dt_stamp *stamps, int64_t count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    char boot[DT_BOOT_ID_SIZE];
    bool written = false;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "%s %s %lld\n", key, dt_boot_id(boot), (long long)count);
    for (int64_t i = 0; i < count; i++)
        dt_strbuf_add_fmt(&text, "%llu %lld %u %u\n", (unsigned long long)stamps[i].inode,
                          (long long)stamps[i].changed_ns, stamps[i].mode, stamps[i].group);
    if (fd >= 0) {
        written = dt_file_write_all(fd, text.data, text.length, NULL) == DT_OK;
        written = close(fd) == 0 && written;
    }
    dt_strbuf_release(&text);
    return written;
}

bool dt_stamps_are_kept(int fd)
{
    static const unsigned long kinds[] = {
        0xef53,     /* ext2, ext3, ext4 */
        0x58465342, /* XFS */
        0x9123683e, /* Btrfs */
        0xf2f52010, /* F2FS */
        0x2fc12fc1, /* ZFS */
        0xca451a4e, /* bcachefs */
        0x01021994, /* tmpfs */
        0x794c7630, /* overlayfs */
    };
    struct statfs info;

    if (fstatfs(fd, &info) != 0)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if ((unsigned long)info.f_type == kinds[i])
            return true;
    return false;
}

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void dt_stamps_write_folder(const char *folder, const char *key, const dt_tree *tree,
                            const dt_sent_act *acts, const dt_stamped *before, bool checked)
{
    dt_stamp *stamps = dt_calloc((size_t)tree->count + 1, sizeof(*stamps));
    int fd = open_folder(folder);
    struct stat info;
    dt_strbuf path;
    int64_t j = 0;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s" DT_STAMPS_RECORD, folder);
    dt_stamps_pass_tick();
    for (int64_t i = 0; fd >= 0 && i < tree->count; i++) {
        const dt_tree_entry *entry = &tree->entries[i];
        int order = -1;

        while (j < before->tree.count &&
               (order = dt_tree_order(before->tree.entries[j].path, entry->path)) < 0)
            j++;
        if (checked && order == 0 && acts[i] == DT_SENT_KEEP && entry->kind != DT_TREE_FOLDER)
            stamps[i] = before->stamps[j];
        else if (fstatat(fd, entry->path, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                 (acts[i] == DT_SENT_PLACE ||
                  (order == 0 && is_untouched(&before->stamps[j], entry, &info, fd))))
            stamps[i] = dt_stamp_settled(&info);
    }
    if (fd < 0 || !dt_stamps_are_kept(fd) || !dt_stamps_write(path.data, key, stamps, tree->count))
        unlink(path.data);
    if (fd >= 0)
        close(fd);
    free(stamps);
    dt_strbuf_release(&path);
}

/* --- what is in a folder */

/* Returns how many names the folder has; -1: it cannot be read. */
static int64_t count_names(int folder, const char *path)
{
    int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    int64_t count = -2; /* . and .. */

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    while ((entry = readdir(dir)) != NULL)
        count++;
    closedir(dir);
    return count;
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Returns true if the folder itself is as a build makes it. */
static bool is_plain(int folder)
{
    struct stat info;

    return folder >= 0 && fstat(folder, &info) == 0 && (info.st_mode & 07777) == 0700 &&
           info.st_uid == geteuid() && !has_attributes(folder, ".");
}

/* Entries that one thread looks at: this takes a few microseconds each. */
typedef struct span {
    dt_survey *of;
    int64_t first, end;
} span;

static void *look_at(void *argument)
{
    const span *part = argument;
    const dt_stamped *all = part->of->all;
    struct stat info;

    for (int64_t i = part->first; i < part->end; i++) {
        const dt_tree_entry *entry = &all->tree.entries[i];

        if (fstatat(part->of->fd, entry->path, &info, AT_SYMLINK_NOFOLLOW) != 0)
            part->of->states[i] = DT_ENTRY_ABSENT;
        else if (is_untouched(&all->stamps[i], entry, &info, part->of->fd))
            part->of->states[i] = DT_ENTRY_UNTOUCHED;
        else
            part->of->states[i] = DT_ENTRY_TOUCHED;
    }
    return NULL;
}

static void look_at_all(dt_survey *out)
{
    int64_t count = out->all->tree.count;
    pthread_t threads[THREADS_MAX];
    span spans[THREADS_MAX + 1];
    int wanted = (int)(count / SPAN_LEAST), started = 0;

    if (wanted > THREADS_MAX)
        wanted = THREADS_MAX;
    for (int i = 0; i <= wanted; i++)
        spans[i] = (span){out, count * i / (wanted + 1), count * (i + 1) / (wanted + 1)};
    while (started < wanted &&
           pthread_create(&threads[started], NULL, look_at, &spans[started]) == 0)
        started++;
    for (int i = started; i <= wanted; i++)
        look_at(&spans[i]);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* Returns false if an entry of a folder is something else now, or its folder is not in the tree. */
static bool look(dt_survey *out)
{
    const dt_tree *tree = &out->all->tree;
    int64_t *above = dt_calloc((size_t)tree->count + 1, sizeof(*above)); /* indices of `names` */
    int64_t current = 0;
    bool good = true;

    look_at_all(out);
    for (int64_t i = 0; good && i < tree->count; i++) {
        const dt_tree_entry *entry = &tree->entries[i];
        const char *slash = strrchr(entry->path, '/');
        dt_entry_state state = out->states[i];

        while (current > 0 && !is_below(entry->path, tree->entries[current - 1].path))
            current = above[current];
        good = (slash == NULL ? current == 0
                              : current > 0 && strlen(tree->entries[current - 1].path) ==
                                                   (size_t)(slash - entry->path)) &&
               (entry->kind != DT_TREE_FOLDER || state != DT_ENTRY_TOUCHED);
        out->names[current] += state != DT_ENTRY_ABSENT;
        out->touched += state == DT_ENTRY_TOUCHED;
        out->files += state == DT_ENTRY_UNTOUCHED && entry->kind == DT_TREE_FILE;
        out->bytes += state == DT_ENTRY_UNTOUCHED ? entry->disk_bytes : 0;
        if (entry->kind == DT_TREE_FOLDER) {
            above[i + 1] = current;
            current = i + 1;
        }
    }
    free(above);
    return good;
}

bool dt_survey_is_all(const dt_survey *of)
{
    const dt_tree *tree = &of->all->tree;
    bool only = count_names(of->fd, ".") == of->names[0];

    for (int64_t i = 0; only && i < tree->count; i++)
        if (tree->entries[i].kind == DT_TREE_FOLDER && of->states[i] != DT_ENTRY_ABSENT)
            only = count_names(of->fd, tree->entries[i].path) == of->names[i + 1];
    return only;
}

bool dt_survey_open(dt_survey *out, const dt_stamped *all, const char *folder, dt_arena *arena)
{
    *out = (dt_survey){.fd = open_folder(folder), .all = all};
    out->states = dt_arena_alloc_array(arena, (size_t)all->tree.count + 1, sizeof(out->states[0]));
    out->names = dt_arena_alloc_array(arena, (size_t)all->tree.count + 1, sizeof(out->names[0]));
    return is_plain(out->fd) && look(out);
}

void dt_survey_close(dt_survey *of)
{
    if (of->fd >= 0)
        close(of->fd);
    of->fd = -1;
}
