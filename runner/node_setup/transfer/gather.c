/* gather: copies a checkpoint's files from the nodes that wrote them to the launch machine.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/transfer/gather_int.h"

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

static dt_status fetch_index(json_t **index, const dt_gathering *all, dt_error *err)
{
    const dt_gather_request *request = all->request;
    const dt_node_layout *layout = &request->layouts[0];
    char digest[DT_DIGEST_SIZE];
    dt_strbuf bytes, path;
    dt_status st = DT_OK;

    dt_strbuf_init(&bytes);
    dt_strbuf_init(&path);
    DT_TRY(dt_gather_read_there(&bytes, all, layout, DT_CHECKPOINT_INDEX, err));
    dt_digest_of(digest, bytes.data, bytes.length);
    if (strcmp(digest, request->digest) != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "checkpoint '%s' on node '%s' is a different one",
                 request->name, layout->node);
    DT_TRY(dt_json_parse(index, bytes.data, bytes.length, DT_CHECKPOINT_INDEX, err));
    dt_strbuf_add_fmt(&path, "%s/" DT_CHECKPOINT_INDEX, all->folder);
    DT_TRY(dt_file_write_atomic(path.data, bytes.data, bytes.length, 0600, err));
out:
    dt_strbuf_release(&bytes);
    dt_strbuf_release(&path);
    return st;
}

/* Renames NAME.partial, and marks the checkpoint as complete. */
static dt_status finish(const dt_gathering *all, const char *name, dt_error *err)
{
    const dt_gather_request *request = all->request;
    dt_strbuf last, marker, digest;
    dt_status st = DT_OK;

    dt_strbuf_init(&last);
    dt_strbuf_init(&marker);
    dt_strbuf_init(&digest);
    dt_strbuf_add_fmt(&last, "%s/%s", request->checkpoints_here, name);
    dt_strbuf_add_fmt(&marker, "%s/" DT_CHECKPOINT_MARKER, last.data);
    dt_strbuf_add_fmt(&digest, "%s\n", request->digest);
    DT_TRY(dt_file_sync_dir(all->folder, err));
    DT_TRY(dt_file_remove_tree(last.data, err)); /* incomplete, of that name */
    if (rename(all->folder, last.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", all->folder, strerror(errno));
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
        if (dt_gather_is_far(&request->layouts[i]))
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

static dt_status gather(const dt_gathering *all, const char *name, dt_error *err)
{
    int64_t count = all->request->count;
    dt_remote *keepalives = dt_calloc((size_t)count, sizeof(*keepalives));
    json_t *index = NULL, *files, *item;
    dt_status st = DT_OK;
    size_t i;

    for (int64_t n = 0; n < count; n++)
        DT_TRY(dt_gather_keepalive(&keepalives[n], all, &all->request->layouts[n], err));
    DT_TRY(dt_file_make_dirs(all->folder, 0700, err));
    DT_TRY(fetch_index(&index, all, err));
    DT_TRY(dt_json_get_array(&files, index, "files", "index", err));
    json_array_foreach(files, i, item)
        DT_TRY(dt_gather_download(all, item, err));
    DT_TRY(finish(all, name, err));
    prune(all->request);
out:
    for (int64_t n = 0; n < count; n++)
        dt_remote_close(&keepalives[n]);
    free(keepalives);
    json_decref(index);
    return st;
}

dt_status dt_nodes_gather(char *name, const dt_gather_request *request, dt_error *err)
{
    dt_gathering all = {.request = request};
    bool any_far = false, whole;
    dt_strbuf folder;
    dt_status st = DT_OK;

    dt_strbuf_init(&folder);
    snprintf(name, DT_CHECKPOINT_NAME_SIZE, "%s", request->name);
    for (int64_t i = 0; i < request->count; i++)
        any_far = any_far || dt_gather_is_far(&request->layouts[i]);
    if (!any_far)
        goto out; /* every node shares the folder: nothing to copy */
    DT_TRY(choose_name(name, &whole, request, err));
    if (whole)
        goto out;
    dt_strbuf_add_fmt(&folder, "%s/%s" DT_CHECKPOINT_PARTIAL, request->checkpoints_here, name);
    all.folder = folder.data;
    all.piece = dt_malloc(DT_GATHER_PIECE_BYTES);
    DT_TRY(gather(&all, name, err));
out:
    free(all.piece);
    dt_strbuf_release(&folder);
    return st;
}
