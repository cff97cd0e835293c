/* run_folder: the folder of a run: paths, owner, secret, and the mark of a requested stop. */
#include "runner/supervisor/folder/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"

dt_status dt_run_path(const char **out, const char *run, const char *below, dt_arena *arena,
                      dt_error *err)
{
    const char *state;
    dt_status st;

    *out = NULL;
    /* Ids come from the store; one that contains a path is never looked up on the disk. */
    if (run[0] == '\0' || run[0] == '.' || strchr(run, '/') != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' is not the id of a run", run);
    st = dt_dir_path(&state, DT_DIR_STATE, arena, err);
    if (st != DT_OK)
        return st;
    *out = below == NULL ? dt_arena_printf(arena, "%s/runs/%s", state, run)
                         : dt_arena_printf(arena, "%s/runs/%s/%s", state, run, below);
    return DT_OK;
}

/* A supervisor of another user would use that user's keys, and leave files that the owner cannot
 * write. */
dt_status dt_run_check_owner(const char *run, const char *folder, dt_error *err)
{
    struct stat info;
    struct passwd *owner;

    if (lstat(folder, &info) != 0 || info.st_uid == geteuid())
        return DT_OK; /* the caller reports problems when it uses the folder */
    owner = getpwuid(info.st_uid);
    if (owner != NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "run '%s' belongs to user %s, who alone can supervise it", run,
                       owner->pw_name);
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "run '%s' belongs to the user with id %lld, who alone can supervise it", run,
                   (long long)info.st_uid);
}

const char *dt_run_claim_owner(dt_arena *arena)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    char host[64] = "";
    const char *state;

    if (dt_dir_path(&state, DT_DIR_STATE, arena, NULL) != DT_OK)
        return "";
    gethostname(host, sizeof(host) - 1);
    for (; *state != '\0'; state++)
        hash = (hash ^ (unsigned char)*state) * UINT64_C(0x100000001b3);
    return dt_arena_printf(arena, "%s-%016llx", host, (unsigned long long)hash);
}

#define WRITE_BYTES 65536

dt_status dt_run_check_room(dt_arena *arena, dt_error *err)
{
    static const char nothing[WRITE_BYTES];
    const char *state, *path;
    dt_status st;

    DT_TRY(dt_dir_make(&state, DT_DIR_STATE, arena, err));
    path = dt_arena_printf(arena, "%s/.room.%d", state, (int)getpid());
    st = dt_file_write_atomic(path, nothing, sizeof(nothing), 0600, err);
    (void)dt_file_remove_tree(path, NULL);
out:
    return st;
}

/* secret: reads or creates the secret of a run, with which its ranks authenticate to each other. It is in a
 * file of the run's folder and in the ranks' environment; no plan, journal, log or store holds it.
 */

enum { SECRET_BYTES = 32, SECRET_DIGITS = 2 * SECRET_BYTES };

static dt_status make(dt_strbuf *out, const char *path, dt_error *err)
{
    unsigned char bytes[SECRET_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return DT_FAIL(err, DT_ERR_IO, "cannot get random bytes for the run's secret: %s",
                       strerror(errno));
    dt_strbuf_reset(out);
    for (size_t i = 0; i < sizeof(bytes); i++)
        dt_strbuf_add_fmt(out, "%02x", bytes[i]);
    return dt_file_write_atomic(path, out->data, out->length, 0600, err);
}

dt_status dt_run_secret(const char **out, const char *folder, dt_arena *arena, dt_error *err)
{
    dt_strbuf path, text;
    dt_status st;

    *out = NULL;
    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/secret", folder);
    st = dt_file_read(&text, path.data, SECRET_DIGITS, NULL);
    if (st != DT_OK || text.length != SECRET_DIGITS)
        DT_TRY(make(&text, path.data, err));
    *out = dt_arena_strndup(arena, text.data, text.length);
    st = DT_OK;
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* --- the mark of a stop, in supervisor.lock */

#define MARK_BYTES 40 /* "stopped ATTEMPT", padded with blanks, and a newline */

static dt_status write_mark(int lock, const char *what, int64_t attempt, dt_error *err)
{
    char text[64], line[MARK_BYTES];
    ssize_t wrote;

    snprintf(text, sizeof(text), "%s %lld", what, (long long)attempt);
    snprintf(line, sizeof(line), "%-38.38s\n", text);
    wrote = pwrite(lock, line, MARK_BYTES - 1, 0);
    if (wrote != MARK_BYTES - 1 || fdatasync(lock) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot mark the run as stopped: %s",
                       strerror(wrote >= 0 && wrote < MARK_BYTES - 1 ? ENOSPC : errno));
    return DT_OK;
}

dt_status dt_stop_mark_reserve(int lock, dt_error *err)
{
    struct stat info;

    if (fstat(lock, &info) == 0 && info.st_size >= MARK_BYTES - 1)
        return DT_OK;
    return write_mark(lock, "follow", 0, err);
}

dt_status dt_stop_mark_set(int lock, int64_t attempt, dt_error *err)
{
    return write_mark(lock, "stopped", attempt, err);
}

dt_status dt_stop_mark_clear(int lock, dt_error *err)
{
    return write_mark(lock, "follow", 0, err);
}

dt_stop_mark dt_stop_mark_read(const char *folder, int64_t attempt)
{
    static const char *const texts[] = {
        [DT_STOP_MARK_ASKED] = "asked",
        [DT_STOP_MARK_ASKED_NOW] = "asked-now",
        [DT_STOP_MARK_STOPPED] = "stopped",
    };
    dt_stop_mark found = DT_STOP_MARK_NONE;
    dt_strbuf path, text;
    char word[16] = "";
    long long until = 0;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/supervisor.lock", folder);
    if (dt_file_read(&text, path.data, 4096, NULL) == DT_OK &&
        sscanf(text.data, "%15s %lld", word, &until) == 2 && attempt <= until)
        for (int i = DT_STOP_MARK_ASKED; i <= DT_STOP_MARK_STOPPED; i++)
            found = strcmp(word, texts[i]) == 0 ? (dt_stop_mark)i : found;
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return found;
}

bool dt_stop_mark_covers(const char *folder, int64_t attempt)
{
    return dt_stop_mark_read(folder, attempt) == DT_STOP_MARK_STOPPED;
}

dt_status dt_stop_mark_ask(const char *folder, int64_t attempt, bool now, dt_error *err)
{
    dt_strbuf path;
    dt_status st;
    int lock;

    if (dt_stop_mark_covers(folder, attempt))
        return DT_OK;
    now = now || dt_stop_mark_read(folder, attempt) == DT_STOP_MARK_ASKED_NOW;
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/supervisor.lock", folder);
    lock = open(path.data, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    st = lock >= 0 ? write_mark(lock, now ? "asked-now" : "asked", attempt, err)
                   : DT_FAIL(err, DT_ERR_IO, "cannot open '%s': %s", path.data, strerror(errno));
    if (lock >= 0)
        close(lock);
    dt_strbuf_release(&path);
    return st;
}

/* --- preempted, grows: "ATTEMPT REASON" */

static dt_status write_reason(const char *folder, const char *name, int64_t attempt,
                              const char *reason, dt_error *err)
{
    dt_strbuf path, text;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, name);
    dt_strbuf_add_fmt(&text, "%lld %s", (long long)attempt, reason);
    st = dt_file_write_atomic(path.data, text.data, text.length, 0600, err);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* Returns NULL if there is none for the attempt, or a person stopped it. */
static const char *read_reason(const char *folder, const char *name, int64_t attempt,
                               dt_arena *arena)
{
    const char *reason = NULL;
    dt_strbuf path, text;
    long long of = 0;
    int length = 0;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, name);
    if (dt_file_read(&text, path.data, 4096, NULL) == DT_OK &&
        sscanf(text.data, "%lld %n", &of, &length) == 1 && of == attempt && length > 0 &&
        dt_stop_mark_read(folder, attempt) == DT_STOP_MARK_NONE)
        reason = dt_arena_strdup(arena, text.data + length);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return reason;
}

dt_status dt_preempted_ask(const char *folder, int64_t attempt, const char *reason, dt_error *err)
{
    return write_reason(folder, "preempted", attempt, reason, err);
}

const char *dt_preempted_reason(const char *folder, int64_t attempt, dt_arena *arena)
{
    return read_reason(folder, "preempted", attempt, arena);
}

dt_status dt_grows_ask(const char *folder, int64_t attempt, const char *reason, dt_error *err)
{
    return write_reason(folder, "grows", attempt, reason, err);
}

const char *dt_grows_reason(const char *folder, int64_t attempt, dt_arena *arena)
{
    return read_reason(folder, "grows", attempt, arena);
}

bool dt_preempted_is_asked(const char *folder, int64_t attempt)
{
    dt_arena arena;
    bool asked;

    dt_arena_init(&arena, 512);
    asked = dt_preempted_reason(folder, attempt, &arena) != NULL;
    dt_arena_release(&arena);
    return asked;
}
