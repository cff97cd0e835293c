/* compare: compares a file of the launch machine with the file of the same path on a node.
 *
 * Equal name and size prove little: a corpus that was generated again often has the same size. The
 * two are one file in a shared folder if inode and change time (ctime) agree: users cannot set a
 * ctime. Some file systems make it up, in whole seconds, and are not trusted. All other files are
 * compared by their digests, which both machines cache (content.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/transfer/content.h"
#include "runner/transport/remote.h"

#define SIZE_SECONDS   20.0
#define STALL_SECONDS  600.0 /* another launch can be reading the same file; this one waits */
#define SETTLE_SECONDS 20.0

/* The answer to "size", "BYTES INODE CHANGED"; bytes -1: there is no such file. */
typedef struct look {
    long long bytes, changed_ns;
    unsigned long long inode;
} look;

static dt_status look_there(look *out, const char *path, const char *agent,
                            const dt_prepare_request *request, dt_error *err)
{
    const char *const words[] = {agent, "node", "size", path, NULL};
    dt_strbuf answer;
    dt_status st;

    *out = (look){.bytes = -1};
    dt_strbuf_init(&answer);
    st =
        dt_nodes_ask(&answer, request->node, words, NULL, 0, SIZE_SECONDS, request->cancelled, err);
    if (st == DT_OK &&
        sscanf(answer.data, "%lld %llu %lld", &out->bytes, &out->inode, &out->changed_ns) < 1)
        st = DT_FAIL(err, DT_ERR_CORRUPT, "node '%s': cannot get the size of '%s'", request->node,
                     path);
    dt_strbuf_release(&answer);
    return st;
}

static dt_status digest_there(char *hex, const char *path, const char *agent,
                              const dt_prepare_request *request, dt_error *err)
{
    const char *const words[] = {agent, "node", "digest", path, NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_remote remote = {0};
    dt_status st = DT_OK;
    dt_strbuf line;
    int code = 0;

    dt_strbuf_init(&line);
    hex[0] = '\0';
    DT_TRY(dt_remote_open(&remote, request->node, words, request->cancelled, err));
    do
        DT_TRY(dt_nodes_line(&line, &remote, STALL_SECONDS, err));
    while (strncmp(line.data, "at ", 3) == 0);
    if (strncmp(line.data, "is ", 3) == 0)
        snprintf(hex, DT_DIGEST_SIZE, "%s", line.data + 3);
    DT_TRY(dt_remote_finish(&remote, &code, &problem, SETTLE_SECONDS, err));
    if (code != 0 || hex[0] == '\0')
        DT_THROW(err, DT_ERR_IO, "node '%s': cannot compare '%s': %s", request->node, path,
                 problem.message);
out:
    dt_remote_close(&remote);
    dt_strbuf_release(&line);
    return st;
}

dt_status dt_nodes_compare(dt_same *out, const char *path, const char *agent,
                           const dt_prepare_request *request, dt_arena *arena, dt_error *err)
{
    char here_hex[DT_DIGEST_SIZE], there_hex[DT_DIGEST_SIZE], text[160];
    const char *cache, *slash = strrchr(path, '/');
    dt_status st = DT_OK;
    struct stat here;
    look there;

    *out = DT_OTHER;
    if (stat(path, &here) != 0)
        DT_THROW(err, DT_ERR_IO, "'%s' no longer exists", path);
    DT_TRY(look_there(&there, path, agent, request, err));
    if (there.bytes < 0)
        *out = DT_MISSING;
    if (there.bytes != (long long)here.st_size)
        goto out;
    if (here.st_ctim.tv_nsec != 0 && there.inode == (unsigned long long)here.st_ino &&
        there.changed_ns == (long long)here.st_ctim.tv_sec * 1000000000 + here.st_ctim.tv_nsec) {
        *out = DT_SAME;
        goto out;
    }
    if (request->progress != NULL) {
        snprintf(text, sizeof(text), "comparing %.80s", slash != NULL ? slash + 1 : path);
        request->progress(request->context, text);
    }
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    DT_TRY(dt_content_digest(here_hex, path, cache, request->cancelled, NULL, NULL, err));
    DT_TRY(digest_there(there_hex, path, agent, request, err));
    if (strcmp(here_hex, there_hex) == 0)
        *out = DT_SAME;
out:
    return st;
}
