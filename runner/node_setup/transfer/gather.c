/* gather: copies a checkpoint's files from the nodes that wrote them to the launch machine, and removes
 * copies that the keep rules do not keep.
 *
 * Each node has the whole index.json and the files of its own ranks; the index has the digest of
 * every file. While the copy runs, nodes keep the checkpoint even if the recipe's rules would
 * remove it. The indexes of two nodes may differ, because the recipe in them has the node's own
 * paths of data. The event `checkpoint` comes from rank 0 and has the digest of node 0's index. All
 * files go into CHECKPOINTS/NAME.partial, which is then renamed; the checkpoint counts once its
 * marker `complete` is written, last. A file that already exists and matches is not copied again.
 * Finally the recipe's rules remove old checkpoints here, as the ranks do on the nodes.
 *
 * Nodes only know the names on their own disks. If the launch machine has another checkpoint of the
 * same name (of an earlier attempt, on other nodes), the new one is named NAME-2.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/remote.h"

#define DT_GATHER_ASK_SECONDS 20.0

typedef struct dt_gathering {
    const dt_gather_request *request;
    const char *folder; /* CHECKPOINTS/NAME.partial on this machine */
    char *piece;        /* DT_GATHER_PIECE_BYTES */
    dt_talk *talks;     /* [count] of the request */
} dt_gathering;

#define DT_GATHER_PIECE_BYTES ((size_t)262144)

/* download: copies one file of a checkpoint from the node that has it to the launch machine;
 * resumes an interrupted copy. */

#define UNFINISHED ".fetching"

/* Returns true if the node's checkpoints are on its own disk. */
static bool gather_is_far(const dt_node_layout *layout)
{
    return !layout->here && !layout->checkpoints_shared;
}

static void path_there(dt_strbuf *out, const dt_gathering *gathering, const dt_node_layout *layout,
                       const char *file)
{
    if (gather_is_far(layout))
        dt_strbuf_add_str(out, layout->checkpoints);
    else
        dt_nodes_parts(out, layout);
    dt_strbuf_add_fmt(out, "/%s/%s", gathering->request->name, file);
}

/* Returns the size of NAME/`file` on node i; -1: it is missing. */
static dt_status size_there(int64_t *bytes, const dt_gathering *gathering, int64_t i,
                            const char *file, dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    path_there(&path, gathering, &gathering->request->layouts[i], file);
    st = dt_talk_size(bytes, &gathering->talks[i], path.data, err);
    dt_strbuf_release(&path);
    return st;
}

#define INDEX_MAX_BYTES ((size_t)64 << 20)

static dt_status take_text(void *context, const void *bytes, size_t length, dt_error *err)
{
    dt_strbuf *out = context;

    if (out->length + length > INDEX_MAX_BYTES)
        return DT_FAIL(err, DT_ERR_CORRUPT, "the index of a checkpoint has over %zu MB",
                       INDEX_MAX_BYTES >> 20);
    dt_strbuf_add(out, bytes, length);
    return DT_OK;
}

/* Reads NAME/`file` of node i's checkpoints. */
static dt_status gather_read_there(dt_strbuf *out, const dt_gathering *gathering, int64_t i,
                                   const char *file, dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    path_there(&path, gathering, &gathering->request->layouts[i], file);
    st = dt_talk_get(&gathering->talks[i], path.data, 0, take_text, out, err);
    dt_strbuf_release(&path);
    return st;
}

/* Keeps the checkpoint from being removed on node i until its talk ends. DT_ERR_NOT_FOUND: it was removed. */
static dt_status gather_keepalive(const dt_gathering *gathering, int64_t i, dt_error *err)
{
    const dt_node_layout *layout = &gathering->request->layouts[i];
    dt_talk *talk = &gathering->talks[i];
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf path, heard;
    dt_status st = DT_OK;

    dt_strbuf_init(&path);
    dt_strbuf_init(&heard);
    path_there(&path, gathering, layout, "");
    *talk = (dt_talk){
        .node = layout->node, .agent = layout->agent, .cancelled = gathering->request->cancelled};
    {
        const char *const words[] = {"hold", path.data, NULL};

        st = dt_talk_ask(talk, &heard, words, DT_GATHER_ASK_SECONDS, &problem);
    }
    if (st == DT_ERR_IO)
        DT_THROW(err, DT_ERR_NOT_FOUND, "node '%s' no longer has checkpoint '%s'", layout->node,
                 gathering->request->name);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&heard);
    return st;
}

static dt_status check_file(bool *good, const dt_gathering *gathering, const char *path,
                            int64_t bytes, const char *wanted, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char hex[DT_DIGEST_SIZE];
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    struct stat info;
    ssize_t got;

    *good = false;
    if (fd < 0 && errno == ENOENT)
        return DT_OK;
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (info.st_size != bytes)
        goto out;
    DT_TRY(dt_digest_new(&digest, err));
    while ((got = read(fd, gathering->piece, DT_GATHER_PIECE_BYTES)) > 0)
        dt_digest_add(digest, gathering->piece, (size_t)got);
    if (got < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    dt_digest_get(hex, digest);
    *good = strcmp(hex, wanted) == 0;
out:
    dt_digest_free(digest);
    if (fd >= 0)
        close(fd);
    return st;
}

static dt_status take_bytes(void *context, const void *bytes, size_t length, dt_error *err)
{
    return dt_file_write_all(*(const int *)context, bytes, length, err);
}

/* Copies the file from node i. */
static dt_status fetch(const dt_gathering *gathering, int64_t i, const char *name, int64_t bytes,
                       const char *digest, dt_error *err)
{
    const dt_node_layout *layout = &gathering->request->layouts[i];
    dt_strbuf there, here, unfinished;
    dt_status st = DT_OK;
    bool good;
    off_t have;
    int fd = -1;

    dt_strbuf_init(&there);
    dt_strbuf_init(&here);
    dt_strbuf_init(&unfinished);
    path_there(&there, gathering, layout, name);
    dt_strbuf_add_fmt(&here, "%s/%s", gathering->folder, name);
    dt_strbuf_add_fmt(&unfinished, "%s" UNFINISHED, here.data);
    fd = open(unfinished.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    have = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (have > bytes) {
        have = lseek(fd, 0, SEEK_SET);
        if (ftruncate(fd, 0) != 0)
            have = -1;
    }
    if (have < 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", unfinished.data, strerror(errno));
    DT_TRY(dt_talk_get(&gathering->talks[i], there.data, have, take_bytes, &fd, err));
    if (fsync(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", unfinished.data, strerror(errno));
    DT_TRY(check_file(&good, gathering, unfinished.data, bytes, digest, err));
    if (!good) {
        unlink(unfinished.data);
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' of node '%s' does not match its digest", there.data,
                 layout->node);
    }
    if (rename(unfinished.data, here.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", unfinished.data, strerror(errno));
out:
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&there);
    dt_strbuf_release(&here);
    dt_strbuf_release(&unfinished);
    return st;
}

/* Moves a file of a node that writes below the launch machine's own folder (node_layout.c), instead
 * of copying it. */
static dt_status move(bool *moved, const dt_gathering *gathering, const dt_node_layout *layout,
                      const char *name, dt_error *err)
{
    dt_strbuf from, to;
    dt_status st = DT_OK;

    dt_strbuf_init(&from);
    dt_strbuf_init(&to);
    dt_nodes_parts(&from, layout);
    dt_strbuf_add_fmt(&from, "/%s/%s", gathering->request->name, name);
    dt_strbuf_add_fmt(&to, "%s/%s", gathering->folder, name);
    *moved = rename(from.data, to.data) == 0;
    if (!*moved && errno != ENOENT)
        st = DT_FAIL(err, DT_ERR_IO, "cannot move '%s' to '%s': %s", from.data, to.data,
                     strerror(errno));
    dt_strbuf_release(&from);
    dt_strbuf_release(&to);
    return st;
}

/* Checks a file name from a node, which is not trusted. */
static bool is_good_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < 200;
}

/* Downloads one of the index's files into the folder, from any node that has it, unless it is there. */
static dt_status gather_download(const dt_gathering *gathering, const json_t *item, dt_error *err)
{
    const dt_gather_request *request = gathering->request;
    const char *name, *digest;
    dt_status st = DT_OK;
    int64_t bytes, has;
    dt_strbuf here;
    bool good;

    dt_strbuf_init(&here);
    DT_TRY(dt_json_get_string(&name, item, "name", "index", err));
    DT_TRY(dt_json_get_string(&digest, item, "xxh3_128", "index", err));
    DT_TRY(dt_json_get_int(&bytes, item, "bytes", "index", err));
    if (!is_good_name(name) || bytes < 0)
        DT_THROW(err, DT_ERR_CORRUPT, "the index of checkpoint '%s' is malformed at file '%s'",
                 request->name, name);
    dt_strbuf_add_fmt(&here, "%s/%s", gathering->folder, name);
    DT_TRY(check_file(&good, gathering, here.data, bytes, digest, err));
    for (int64_t i = 0; !good && i < request->count; i++) {
        const dt_node_layout *layout = &request->layouts[i];

        if (!gather_is_far(layout)) {
            DT_TRY(move(&good, gathering, layout, name, err));
            if (good)
                DT_TRY(check_file(&good, gathering, here.data, bytes, digest, err));
            continue;
        }
        DT_TRY(size_there(&has, gathering, i, name, err));
        good = has >= 0;
        if (good)
            DT_TRY(fetch(gathering, i, name, bytes, digest, err));
    }
    if (!good)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no node has '%s' of checkpoint '%s'", name, request->name);
out:
    dt_strbuf_release(&here);
    return st;
}

#define COPIES_MAX 1000

/* Chooses the first of the possible names that is unused on this machine, or already has this
 * checkpoint (*whole). */
static dt_status choose_name(char *name, bool *whole, const dt_gather_request *request,
                             dt_error *err)
{
    dt_checkpoint_name wanted;
    dt_strbuf path, digest;
    dt_status st = DT_OK;

    *whole = false;
    dt_strbuf_init(&path);
    dt_strbuf_init(&digest);
    if (!dt_checkpoint_name_parse(&wanted, request->name) || wanted.partial)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is not the name of a checkpoint", request->name);
    for (; wanted.copy < COPIES_MAX; wanted.copy++) {
        dt_checkpoint_name_format(name, &wanted);
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s/" DT_CHECKPOINT_MARKER, request->checkpoints_here, name);
        if (!dt_file_exists(path.data))
            goto out;
        DT_TRY(dt_file_read(&digest, path.data, 4096, err));
        *whole = strncmp(digest.data, request->digest, DT_DIGEST_SIZE - 1) == 0;
        if (*whole)
            goto out;
    }
    DT_THROW(err, DT_ERR_CORRUPT, "cannot copy checkpoint '%s': '%s' has %d of this name",
             request->name, request->checkpoints_here, COPIES_MAX);
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&digest);
    return st;
}

static dt_status fetch_index(json_t **index, const dt_gathering *gathering, dt_error *err)
{
    const dt_gather_request *request = gathering->request;
    const dt_node_layout *layout = &request->layouts[0];
    char digest[DT_DIGEST_SIZE];
    dt_strbuf bytes, path;
    dt_status st = DT_OK;

    dt_strbuf_init(&bytes);
    dt_strbuf_init(&path);
    DT_TRY(gather_read_there(&bytes, gathering, 0, DT_CHECKPOINT_INDEX, err));
    dt_digest_of(digest, bytes.data, bytes.length);
    if (strcmp(digest, request->digest) != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "checkpoint '%s' on node '%s' is a different one",
                 request->name, layout->node);
    DT_TRY(dt_json_parse(index, bytes.data, bytes.length, DT_CHECKPOINT_INDEX, err));
    dt_strbuf_add_fmt(&path, "%s/" DT_CHECKPOINT_INDEX, gathering->folder);
    DT_TRY(dt_file_write_atomic(path.data, bytes.data, bytes.length, 0600, err));
out:
    dt_strbuf_release(&bytes);
    dt_strbuf_release(&path);
    return st;
}

/* Renames NAME.partial, and marks the checkpoint as complete. */
static dt_status finish(const dt_gathering *gathering, const char *name, dt_error *err)
{
    const dt_gather_request *request = gathering->request;
    dt_strbuf last, marker, digest;
    dt_status st = DT_OK;

    dt_strbuf_init(&last);
    dt_strbuf_init(&marker);
    dt_strbuf_init(&digest);
    dt_strbuf_add_fmt(&last, "%s/%s", request->checkpoints_here, name);
    dt_strbuf_add_fmt(&marker, "%s/" DT_CHECKPOINT_MARKER, last.data);
    dt_strbuf_add_fmt(&digest, "%s\n", request->digest);
    DT_TRY(dt_file_sync_dir(gathering->folder, err));
    DT_TRY(dt_file_remove_tree(last.data, err)); /* incomplete, of that name */
    if (rename(gathering->folder, last.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", gathering->folder, strerror(errno));
    DT_TRY(dt_file_sync_dir(request->checkpoints_here, err));
    DT_TRY(dt_file_write_atomic(marker.data, digest.data, digest.length, 0600, err));
out:
    dt_strbuf_release(&last);
    dt_strbuf_release(&marker);
    dt_strbuf_release(&digest);
    return st;
}

/* --- retention */

static int64_t number_of(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

/* Removes leftovers in node-K folders, and checkpoints that the rules do not keep: a failure only wastes disk space. */
static void prune(const dt_gather_request *request)
{
    const json_t *rules = json_object_get(json_object_get(request->plan, "recipe"), "checkpoint");
    dt_checkpoint_keep keep = {
        .newest = number_of(rules, "keep"),
        .epochs = number_of(rules, "keep_epochs"),
        .best = number_of(rules, "keep_best"),
    };
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf path;

    dt_strbuf_init(&path);
    for (int64_t i = 0; i < request->count; i++) {
        if (gather_is_far(&request->layouts[i]))
            continue;
        dt_strbuf_reset(&path);
        dt_nodes_parts(&path, &request->layouts[i]);
        dt_strbuf_add_fmt(&path, "/%s", request->name);
        if (dt_file_remove_tree(path.data, &problem) != DT_OK)
            dt_log_warn("%s", problem.message);
    }
    if (dt_checkpoint_prune(request->checkpoints_here, &keep, &problem) != DT_OK)
        dt_log_warn("cannot remove old checkpoints: %s", problem.message);
    dt_strbuf_release(&path);
}

typedef struct opening {
    const dt_gathering *gathering;
    dt_error *problems; /* of each node */
} opening;

static void open_talk(void *context, int64_t i)
{
    const opening *all = context;

    (void)gather_keepalive(all->gathering, i, &all->problems[i]);
}

/* Opens the talks of all nodes at once, since each takes a login or a session of ssh. */
static dt_status open_talks(dt_gathering *gathering, dt_error *err)
{
    int64_t count = gathering->request->count;
    dt_error *problems = dt_calloc((size_t)count, sizeof(problems[0]));
    dt_status st = DT_OK;

    gathering->talks = dt_calloc((size_t)count, sizeof(gathering->talks[0]));
    dt_probe_parallel(count, open_talk, &(opening){gathering, problems});
    for (int64_t n = 0; n < count; n++)
        if (problems[n].code != DT_OK)
            DT_THROW(err, problems[n].code, "%s", problems[n].message);
out:
    free(problems);
    return st;
}

static dt_status gather(dt_gathering *gathering, const char *name, dt_error *err)
{
    int64_t count = gathering->request->count;
    json_t *index = NULL, *files, *item;
    dt_status st = DT_OK;
    size_t i;

    DT_TRY(open_talks(gathering, err));
    DT_TRY(dt_file_make_dirs(gathering->folder, 0700, err));
    DT_TRY(fetch_index(&index, gathering, err));
    DT_TRY(dt_json_get_array(&files, index, "files", "index", err));
    json_array_foreach(files, i, item)
        DT_TRY(gather_download(gathering, item, err));
    DT_TRY(finish(gathering, name, err));
    prune(gathering->request);
out:
    for (int64_t n = 0; n < count; n++)
        dt_talk_end(&gathering->talks[n]);
    free(gathering->talks);
    json_decref(index);
    return st;
}

dt_status dt_nodes_gather(char *name, const dt_gather_request *request, dt_error *err)
{
    dt_gathering gathering = {.request = request};
    bool any_far = false, whole;
    dt_strbuf folder;
    dt_status st = DT_OK;

    dt_strbuf_init(&folder);
    snprintf(name, DT_CHECKPOINT_NAME_SIZE, "%s", request->name);
    for (int64_t i = 0; i < request->count; i++)
        any_far = any_far || gather_is_far(&request->layouts[i]);
    if (!any_far)
        goto out; /* every node shares the folder: nothing to copy */
    DT_TRY(choose_name(name, &whole, request, err));
    if (whole)
        goto out;
    dt_strbuf_add_fmt(&folder, "%s/%s" DT_CHECKPOINT_PARTIAL, request->checkpoints_here, name);
    gathering.folder = folder.data;
    gathering.piece = dt_malloc(DT_GATHER_PIECE_BYTES);
    DT_TRY(gather(&gathering, name, err));
out:
    free(gathering.piece);
    dt_strbuf_release(&folder);
    return st;
}
