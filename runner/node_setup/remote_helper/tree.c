/* tree: builds the folder of a command from contents in CACHE/files.
 *
 * Reads from stdin "BYTES\n" and a document of this size (../workdir/tree.h); prints a line "FIRST COUNT" for each
 * range of entries whose contents are not in the store, then "send"; reads these contents, in order, as one zstd
 * stream. Then it gives FOLDER the entries of the tree.
 *
 *   tree FOLDER [KEY]   what an earlier build placed is replaced, or removed if the new tree lacks it. What the command
 *                       changed or made stays (sent_tree.h). DT_ERR_UNSUPPORTED, before anything changes, if both sides
 *                       changed a file. KEY stands for the workdir on the launch machine: where nothing is yet, a
 *                       spare folder of this key is changed and renamed (spare.h)
 *   tree FOLDER check   as above, and changes nothing: prints "send" at once
 *   tree FOLDER add     adds files to a folder that has others, and removes nothing; contents do not stay in the store
 *
 * A content is moved from the store to the folder, unless the disk has room for both.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/remote_helper/sent_tree.h"
#include "runner/node_setup/remote_helper/spare.h"
#include "runner/node_setup/workdir/contents.h"

#define PIECE_BYTES  131072
#define SPARE_BYTES  ((int64_t)16 << 20)
#define NAMES_MAX    5
#define LOCK_SECONDS 60.0

typedef struct building {
    dt_tree tree;
    dt_strbuf text; /* document of the tree */
    dt_sent_tree before;
    dt_stamped stamped; /* what an earlier build placed, with its stamps */
    dt_spare spare;
    const char *folder, *key;
    const char
        *place; /* where files are placed: `folder`, or a spare folder that is renamed to it */
    bool check, add;
    dt_strbuf cache;
    dt_sent_act *acts; /* [tree.count] */
    bool *wanted;      /* [tree.count]: contents that are not in the store */
    bool move;         /* contents leave the store */
    int lock; /* lock of the store: shared while contents are needed, exclusive while they are moved */
    dt_unpacker *from;
    dt_arena arena;
} building;

/* --- from stdin */

static dt_status read_exactly(char *bytes, int64_t length, dt_error *err)
{
    while (length > 0) {
        ssize_t got = read(STDIN_FILENO, bytes, (size_t)length);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return DT_FAIL(err, DT_ERR_PEER, "the transfer of the folder was interrupted");
        bytes += got;
        length -= got;
    }
    return DT_OK;
}

static dt_status read_tree(building *job, dt_error *err)
{
    int64_t length = 0;
    dt_status st = DT_OK;
    char c;

    for (;;) {
        DT_TRY(read_exactly(&c, 1, err));
        if (c == '\n')
            break;
        if (c < '0' || c > '9' || length > (int64_t)DT_TREE_BYTES_MAX)
            DT_THROW(err, DT_ERR_CORRUPT, "the list of files is malformed");
        length = length * 10 + (c - '0');
    }
    if (length > (int64_t)DT_TREE_BYTES_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "the list of files is too large");
    DT_TRY(read_exactly(dt_strbuf_extend(&job->text, (size_t)length), length, err));
    DT_TRY(dt_tree_read_text(&job->tree, job->text.data, job->text.length, &job->arena, err));
out:
    return st;
}

static dt_status take_content(building *job, const dt_tree_entry *entry, char *piece, dt_error *err)
{
    char hex[DT_DIGEST_SIZE];
    dt_content content = {0};
    int64_t left = entry->bytes;
    dt_status st = DT_OK;

    DT_TRY(dt_content_begin(&content, job->cache.data, err));
    while (left > 0) {
        size_t now = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

        DT_TRY(dt_unpacker_take(job->from, piece, now, err));
        DT_TRY(dt_content_add(&content, piece, now, err));
        left -= (int64_t)now;
    }
    dt_digest_get(hex, content.digest);
    if (strcmp(hex, entry->digest) != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' was damaged in transfer", entry->path);
    DT_TRY(dt_content_finish(&content, hex, job->cache.data, err));
out:
    dt_content_drop(&content);
    return st;
}

/* --- decisions */

static dt_status decide(building *job, dt_error *err)
{
    const char *placed = ""; /* a folder that is made: nothing is in it */
    int64_t conflicts = 0;
    dt_status st = DT_OK;
    dt_strbuf names;

    dt_strbuf_init(&names);
    for (int64_t i = 0; i < job->tree.count; i++) {
        const dt_tree_entry *entry = &job->tree.entries[i];
        size_t length = strlen(placed);

        if (length > 0 && strncmp(entry->path, placed, length) == 0 && entry->path[length] == '/') {
            job->acts[i] = DT_SENT_PLACE;
            continue;
        }
        job->acts[i] = dt_sent_tree_decide(&job->before, entry);
        if (entry->kind == DT_TREE_FOLDER && job->acts[i] == DT_SENT_PLACE)
            placed = entry->path;
        if (job->acts[i] != DT_SENT_CONFLICT || ++conflicts > NAMES_MAX)
            continue;
        dt_strbuf_add_fmt(&names, "%s'%s'", conflicts > 1 ? ", " : "", entry->path);
    }
    if (conflicts > NAMES_MAX)
        dt_strbuf_add_fmt(&names, " and %lld more", (long long)conflicts - NAMES_MAX);
    if (conflicts > 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "%s", names.data);
out:
    dt_strbuf_release(&names);
    return st;
}

static dt_status lock_store(building *job, dt_error *err)
{
    const char *path =
        dt_arena_printf(&job->arena, "%s/" DT_CONTENTS_FOLDER ".lock", job->cache.data);

    job->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (job->lock < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    (void)flock(job->lock, LOCK_SH); /* a file system without flock: no build moves contents */
    return DT_OK;
}

/* Returns whether no other build needs the store's contents. */
static bool lock_store_alone(const building *job)
{
    double deadline = dt_clock_monotonic_seconds() + LOCK_SECONDS;

    while (flock(job->lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || dt_clock_monotonic_seconds() > deadline)
            return false;
        dt_clock_sleep_seconds(0.1);
    }
    return true;
}

/* --- contents */

static int64_t free_bytes(const char *path)
{
    struct statvfs info;

    return statvfs(path, &info) == 0 ? (int64_t)(info.f_bavail * info.f_frsize) : 0;
}

/* Finds the contents that are missing, and checks that there is room: for the files, and for a second copy of them in
 * the store unless they are moved. */
static dt_status find_wanted(building *job, dt_error *err)
{
    int64_t placed = 0, wanted = 0;
    struct stat cache, folder;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < job->tree.count; i++) {
        const dt_tree_entry *entry = &job->tree.entries[i];

        if (entry->kind != DT_TREE_FILE || job->acts[i] != DT_SENT_PLACE)
            continue;
        placed += entry->disk_bytes;
        job->wanted[i] = !dt_contents_have(job->cache.data, entry->digest, entry->bytes, true);
        wanted += job->wanted[i] ? entry->disk_bytes : 0;
    }
    if (stat(job->cache.data, &cache) != 0 || stat(job->place, &folder) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot use '%s': %s", job->place, strerror(errno));
    if (free_bytes(job->cache.data) < 2 * (placed + wanted) + SPARE_BYTES)
        dt_spare_prune(job->cache.data, 0);
    job->move = job->add || free_bytes(job->cache.data) < 2 * (placed + wanted) + SPARE_BYTES;
    if (cache.st_dev != folder.st_dev) {
        DT_TRY(dt_remote_helper_check_space(job->cache.data, wanted + SPARE_BYTES, err));
        DT_TRY(dt_remote_helper_check_space(job->place, placed + SPARE_BYTES, err));
    } else {
        DT_TRY(dt_remote_helper_check_space(
            job->place, (job->move ? wanted : wanted + placed) + SPARE_BYTES, err));
    }
out:
    return st;
}

static void print_wanted(const building *job)
{
    for (int64_t i = 0, first; i < job->tree.count; i++) {
        if (!job->wanted[i])
            continue;
        first = i;
        while (i + 1 < job->tree.count && job->wanted[i + 1])
            i++;
        printf("%lld %lld\n", (long long)first, (long long)(i - first + 1));
    }
    puts("send");
    fflush(stdout);
}

/* Reads all contents, and the end of the stream, so that the sender never writes to a closed pipe. */
static dt_status take_contents(building *job, dt_error *err)
{
    char *piece = dt_malloc(PIECE_BYTES);
    ssize_t got;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < job->tree.count; i++)
        if (job->wanted[i])
            DT_TRY(take_content(job, &job->tree.entries[i], piece, err));
    do
        got = read(STDIN_FILENO, piece, PIECE_BYTES);
    while (got > 0 || (got < 0 && errno == EINTR));
out:
    free(piece);
    return st;
}

/* --- the folder */

/* Returns true if a later entry needs the content too. */
static bool is_needed_again(const building *job, int64_t index)
{
    const dt_tree_entry *entry = &job->tree.entries[index];

    for (int64_t i = index + 1; i < job->tree.count; i++)
        if (job->acts[i] == DT_SENT_PLACE && job->tree.entries[i].kind == DT_TREE_FILE &&
            job->tree.entries[i].bytes == entry->bytes &&
            strcmp(job->tree.entries[i].digest, entry->digest) == 0)
            return true;
    return false;
}

static dt_status place_all(building *job, dt_error *err)
{
    const char *unfinished =
        dt_arena_printf(&job->arena, "%s%s", job->place,
                        job->add ? dt_arena_printf(&job->arena, "/.dtrun-placing-%d-%lld",
                                                   (int)getpid(), (long long)dt_clock_wall_ms())
                                 : DT_SENT_TREE_PLACING);
    bool move = job->move && lock_store_alone(job);
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    if (unlink(unfinished) != 0 && errno != ENOENT) /* an interrupted build left it */
        DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", unfinished, strerror(errno));
    for (int64_t i = 0; i < job->tree.count; i++) {
        const dt_tree_entry *entry = &job->tree.entries[i];

        if (job->acts[i] != DT_SENT_PLACE && job->acts[i] != DT_SENT_DATE)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", job->place, entry->path);
        if (job->acts[i] == DT_SENT_DATE) {
            DT_TRY(dt_sent_tree_date(path.data, entry, err));
            continue;
        }
        DT_TRY(dt_sent_tree_place(path.data, unfinished, entry, job->cache.data,
                                  move && !is_needed_again(job, i), err));
    }
out:
    if (unlink(unfinished) != 0 && errno != ENOENT && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot remove '%s': %s", unfinished, strerror(errno));
    dt_strbuf_release(&path);
    return st;
}

static const char *beside(building *job, const char *ending)
{
    return dt_arena_printf(&job->arena, "%s%s", job->folder, ending);
}

/* Places what a spare folder lacks, and renames it. The document is there first: at any time it tells what was
 * placed. */
static dt_status place_spare(building *job, const char *unfinished, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(place_all(job, err));
    DT_TRY(dt_file_write_atomic(unfinished, job->text.data, job->text.length, 0600, err));
    if (rename(job->place, job->folder) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", job->place, strerror(errno));
out:
    return st;
}

/* Builds with the documents of sent_tree.h: at any time they tell what was placed. */
static dt_status place_recorded(building *job, dt_error *err)
{
    const char *record = beside(job, DT_SENT_TREE_RECORD);
    const char *unfinished = beside(job, DT_SENT_TREE_UNFINISHED);
    const char *setup = beside(job, DT_SENT_TREE_SETUP);
    const char *stamps = beside(job, DT_STAMPS_RECORD);
    dt_status st = DT_OK;

    if (unlink(stamps) != 0 && errno != ENOENT)
        DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", stamps, strerror(errno));
    if (job->spare.path != NULL) {
        DT_TRY(place_spare(job, unfinished, err));
    } else {
        if (dt_file_exists(unfinished))
            DT_TRY(dt_tree_write(&job->before.sent, record, err));
        DT_TRY(dt_file_write_atomic(unfinished, job->text.data, job->text.length, 0600, err));
        DT_TRY(dt_sent_tree_remove(&job->before, &job->tree, err));
        DT_TRY(place_all(job, err));
    }
    if (rename(unfinished, record) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", unfinished, strerror(errno));
    if (unlink(setup) != 0 && errno != ENOENT)
        DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", setup, strerror(errno));
    if (job->key != NULL)
        dt_stamps_write_folder(job->folder, job->key, &job->tree, job->acts, &job->stamped,
                               job->spare.path != NULL);
out:
    return st;
}

/* Finds what is there, or takes a spare folder, and decides what is done with each entry. */
static dt_status begin(building *job, dt_error *err)
{
    dt_status st = DT_OK;

    if (job->add) { /* what is there with the same size and time of change is the same */
        job->before = (dt_sent_tree){.folder = job->folder, .sent = job->tree, .adds = true};
        dt_strbuf_init(&job->before.parent);
    } else {
        if (job->key != NULL && !dt_file_exists(job->folder) &&
            !dt_file_exists(beside(job, DT_SENT_TREE_RECORD)) &&
            !dt_file_exists(beside(job, DT_SENT_TREE_UNFINISHED)) &&
            dt_spare_take(&job->spare, &job->stamped, job->acts, &job->tree, job->key,
                          job->cache.data, &job->arena)) {
            job->place = job->spare.folder;
            goto out;
        }
        dt_sent_tree_read(&job->before, job->folder, &job->arena);
        dt_stamps_read_folder(&job->stamped, job->folder, &job->arena);
    }
    DT_TRY(decide(job, err));
out:
    return st;
}

static dt_status build(building *job, dt_error *err)
{
    const char *parent = dt_arena_printf(
        &job->arena, "%.*s", (int)(strrchr(job->folder, '/') - job->folder), job->folder);
    dt_status st = DT_OK;

    DT_TRY(read_tree(job, err));
    job->acts = dt_calloc((size_t)job->tree.count + 1, sizeof(*job->acts));
    job->wanted = dt_calloc((size_t)job->tree.count + 1, sizeof(*job->wanted));
    DT_TRY(begin(job, err));
    if (job->check) {
        print_wanted(job);
        goto out;
    }
    DT_TRY(dt_file_make_dirs(job->spare.path != NULL ? parent : job->folder, 0700, err));
    DT_TRY(dt_unpacker_new(&job->from, "the folder", err));
    DT_TRY(lock_store(job, err));
    dt_remote_helper_prune(job->cache.data);
    st = find_wanted(job, err);
    if (st != DT_OK)
        dt_remote_helper_name_ended(err, job->folder);
    DT_TRY(st);
    print_wanted(job);
    DT_TRY(take_contents(job, err));
    DT_TRY(job->add ? place_all(job, err) : place_recorded(job, err));
out:
    return st;
}

dt_status dt_remote_helper_tree(const char *folder, const char *mode, dt_error *err)
{
    building job = {.folder = folder,
                    .place = folder,
                    .check = strcmp(mode, "check") == 0,
                    .add = strcmp(mode, "add") == 0,
                    .lock = -1};
    dt_status st = DT_OK;

    dt_arena_init(&job.arena, 0);
    dt_strbuf_init(&job.cache);
    dt_strbuf_init(&job.text);
    if (strlen(mode) == DT_DIGEST_SIZE - 1)
        job.key = mode;
    if (strchr(folder, '/') == NULL ||
        (job.key != NULL && strspn(mode, "0123456789abcdef") != strlen(mode)))
        DT_THROW(err, DT_ERR_USAGE, "tree: not a folder and a key");
    DT_TRY(dt_remote_helper_cache(&job.cache, err));
    DT_TRY(build(&job, err));
out:
    dt_spare_release(&job.spare);
    dt_unpacker_free(job.from);
    dt_sent_tree_release(&job.before);
    if (job.lock >= 0)
        close(job.lock);
    free(job.acts);
    free(job.wanted);
    dt_strbuf_release(&job.cache);
    dt_strbuf_release(&job.text);
    dt_arena_release(&job.arena);
    return st;
}
