/* send: builds the folder of a command on a node, from contents in this machine's CACHE/files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/workdir/contents.h"
#include "runner/node_setup/workdir/workdir.h"

#define PIECE_BYTES    ((size_t)262144)
#define LOOK_SECONDS   600.0 /* time limit for the node to read what it has */
#define STALL_SECONDS  30.0
#define SETTLE_SECONDS 300.0 /* time limit for the node to build the folder */

typedef struct sending {
    dt_remote remote;
    const dt_tree *tree;
    const dt_send_request *request;
    dt_packer *packer;
    char *piece;       /* PIECE_BYTES */
    bool *wanted;      /* [tree->count]: contents that the node lacks */
    int64_t done, all; /* bytes */
} sending;

static void tell(const sending *to, int64_t before)
{
    char text[96];

    if (to->request->progress == NULL || to->all == 0 ||
        (before > 0 && before * 10 / to->all == to->done * 10 / to->all))
        return;
    snprintf(text, sizeof(text), "copying %.40s: %.1f of %.1f MB", to->request->what,
             (double)to->done / 1e6, (double)to->all / 1e6);
    to->request->progress(to->request->context, text);
}

/* Fails because this machine no longer has the content that the entry had. */
static dt_status refuse(const sending *to, const dt_tree_entry *entry, const char *path,
                        const char *why, dt_error *err)
{
    if (to->request->sources != NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "'%s' %s", path, why);
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "the content that '%s' had at the launch %s in the cache ('%s'): resume the "
                   "run, which takes the folder as it is then",
                   entry->path, why, path);
}

/* Sends a content, which must have the bytes and the digest of the entry. */
static dt_status put_content(sending *to, int64_t index, dt_error *err)
{
    const dt_tree_entry *entry = &to->tree->entries[index];
    char hex[DT_DIGEST_SIZE];
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    int64_t left = entry->bytes;
    dt_strbuf path;
    int fd;

    dt_strbuf_init(&path);
    if (to->request->sources != NULL)
        dt_strbuf_add_str(&path, to->request->sources[index]);
    else
        dt_contents_path(&path, to->request->cache, entry->digest);
    fd = open(path.data, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        DT_TRY(refuse(to, entry, path.data, "is missing", err));
    DT_TRY(dt_digest_new(&digest, err));
    while (left > 0) {
        ssize_t got = read(fd, to->piece, left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        dt_digest_add(digest, to->piece, (size_t)got);
        DT_TRY(dt_packer_put(to->packer, to->piece, (size_t)got, false, err));
        left -= got;
        to->done += got;
        tell(to, to->done - got);
    }
    dt_digest_get(hex, digest);
    if (left > 0 || strcmp(hex, entry->digest) != 0) {
        if (to->request->sources == NULL)
            unlink(path.data);
        DT_TRY(refuse(to, entry, path.data, "is damaged", err));
    }
out:
    dt_digest_free(digest);
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&path);
    return st;
}

static dt_status put_tree(sending *to, dt_error *err)
{
    dt_strbuf text;
    char length[32];
    dt_status st = DT_OK;

    dt_strbuf_init(&text);
    if (to->request->document != NULL)
        DT_TRY(dt_file_read(&text, to->request->document, DT_TREE_BYTES_MAX, err));
    else
        dt_tree_print(&text, to->tree);
    snprintf(length, sizeof(length), "%zu\n", text.length);
    DT_TRY(dt_remote_write(&to->remote, length, strlen(length), STALL_SECONDS, err));
    DT_TRY(dt_remote_write(&to->remote, text.data, text.length, STALL_SECONDS, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* Reads lines "FIRST COUNT" of entries whose contents the node lacks, up to "send". *ended: the node has ended, and
 * its exit code and stderr have the reason. */
static dt_status read_wanted(sending *to, bool *ended, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf line;

    *ended = false;
    dt_strbuf_init(&line);
    for (;;) {
        long long first, count;

        DT_TRY(dt_nodes_line(&line, &to->remote, LOOK_SECONDS, err));
        if (line.length > 0 && strcmp(line.data, "send") == 0)
            break;
        *ended = line.length == 0;
        if (*ended)
            break;
        if (sscanf(line.data, "%lld %lld", &first, &count) != 2 || first < 0 || count < 1 ||
            first >= to->tree->count || count > to->tree->count - first)
            DT_THROW(err, DT_ERR_CORRUPT, "node '%s': unexpected answer '%.80s'", to->request->node,
                     line.data);
        for (long long i = first; i < first + count; i++) {
            to->all += to->wanted[i] ? 0 : to->tree->entries[i].bytes;
            to->wanted[i] = true;
        }
    }
out:
    dt_strbuf_release(&line);
    return st;
}

static dt_status put_contents(sending *to, dt_error *err)
{
    dt_status st = DT_OK;

    tell(to, 0);
    for (int64_t i = 0; i < to->tree->count; i++)
        if (to->wanted[i] && to->tree->entries[i].kind == DT_TREE_FILE)
            DT_TRY(put_content(to, i, err));
    DT_TRY(dt_packer_put(to->packer, NULL, 0, true, err));
out:
    return st;
}

/* Fails as the node did. */
static dt_status fail_there(const dt_send_request *request, int code, const char *problem,
                            dt_status sent, const char *cause, dt_error *err)
{
    if (code != DT_REMOTE_HELPER_CONFLICT)
        return DT_FAIL(err, code != 0 ? DT_ERR_IO : sent, "node '%s': cannot build '%s': %s",
                       request->node, request->there, code != 0 ? problem : cause);
    if (strcmp(request->mode, "add") == 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "node '%s': '%s' has other files: %s", request->node,
                       request->there, problem);
    return DT_FAIL(
        err, DT_ERR_RECIPE,
        "node '%s': the run changed %s in '%s', and the workdir of this machine changed too: name "
        "the file in " DT_WORKDIR_IGNORE_FILE " to keep that of the run, or remove it there to "
        "send that of this machine",
        request->node, problem, request->there);
}

dt_status dt_workdir_send(const dt_send_request *request, dt_error *err)
{
    const char *const words[] = {request->agent, "node",        "tree",
                                 request->there, request->mode, NULL};
    dt_error cause = DT_ERROR_INIT, problem = DT_ERROR_INIT;
    dt_status st = DT_OK, sent = DT_OK;
    sending to = {.tree = request->tree, .request = request};
    bool ended = false;
    int code = 0;

    to.piece = dt_malloc(PIECE_BYTES);
    to.wanted = dt_calloc((size_t)to.tree->count + 1, sizeof(*to.wanted));
    DT_TRY(dt_packer_new(&to.packer, &to.remote, STALL_SECONDS, err));
    DT_TRY(dt_remote_open(&to.remote, request->node, words, request->cancelled, err));
    sent = put_tree(&to, &cause);
    if (sent == DT_OK)
        DT_TRY(read_wanted(&to, &ended, err));
    if (sent == DT_OK && !ended && strcmp(request->mode, "check") != 0)
        sent = put_contents(&to, &cause);
    if (sent != DT_OK && sent != DT_ERR_PEER)
        DT_THROW(err, sent, "%s", cause.message);
    dt_remote_write_end(&to.remote);
    /* If the node stopped reading, its exit code and stderr have the reason. */
    DT_TRY(dt_remote_finish(&to.remote, &code, &problem, SETTLE_SECONDS, err));
    if (code != 0 || sent != DT_OK)
        DT_TRY(fail_there(request, code, problem.message, sent, cause.message, err));
    if (ended)
        DT_THROW(err, DT_ERR_PEER, "node '%s': cannot build '%s': it ended without an answer",
                 request->node, request->there);
out:
    dt_remote_close(&to.remote);
    dt_packer_free(to.packer);
    free(to.piece);
    free(to.wanted);
    return st;
}

/* stage: gives a node the folder of a command while the node is prepared. */

static const json_t *recipe_workdir(const json_t *plan)
{
    return json_object_get(json_object_get(plan, "recipe"), "workdir");
}

const char *dt_stage_workdir_folder(const json_t *plan)
{
    const json_t *workdir = recipe_workdir(plan);
    const char *folder = json_string_value(json_object_get(workdir, "folder"));
    const char *ship = json_string_value(json_object_get(workdir, "ship"));
    struct stat info;

    if (folder == NULL || folder[0] != '/' || (ship != NULL && strcmp(ship, "never") == 0) ||
        stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return NULL;
    return folder;
}

/* Returns a number that stands for the node in file names. A restart without other nodes does not change it. */
static unsigned long node_number(const char *node)
{
    char hex[DT_DIGEST_SIZE];

    dt_digest_of(hex, node, strlen(node));
    hex[8] = '\0';
    return strtoul(hex, NULL, 16);
}

dt_status dt_stage_workdir(dt_node_layout *layout, const json_t *facts,
                           const dt_prepare_request *request, dt_arena *arena, dt_error *err)
{
    const char *digest = json_string_value(json_object_get(request->plan, "tree"));
    const char *folder = dt_stage_workdir_folder(request->plan), *state, *cache, *slash, *path;
    char key[DT_DIGEST_SIZE];
    dt_status st = DT_OK;
    dt_send_request send;
    dt_tree tree;

    if (folder == NULL || json_is_true(json_object_get(facts, "sees")))
        return DT_OK; /* the node has it, or must have it */
    if (digest == NULL)
        return DT_OK; /* the program's rank reports that the folder is missing */
    slash = strrchr(request->checkpoints_here, '/');
    path = dt_arena_printf(arena, "%.*s/" DT_WORKDIR_TREE_FILE,
                           (int)(slash - request->checkpoints_here), request->checkpoints_here,
                           digest);
    if (!dt_file_exists(path))
        return DT_OK; /* the same: at the launch no node was known to need it */
    DT_TRY(dt_tree_read(&tree, path, arena, err));
    DT_TRY(dt_json_get_string(&state, facts, "state", request->node, err));
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    layout->workdir = dt_arena_printf(arena, "%s/nodes/%s/workdir-%lu", state, request->run,
                                      node_number(request->node));
    dt_digest_of(key, folder, strlen(folder));
    send = (dt_send_request){.tree = &tree,
                             .what = "workdir",
                             .node = request->node,
                             .agent = layout->agent,
                             .there = layout->workdir,
                             .mode = key,
                             .document = path,
                             .cache = cache,
                             .cancelled = request->cancelled,
                             .progress = request->progress,
                             .context = request->context};
    DT_TRY(dt_workdir_send(&send, err));
out:
    return st;
}
