/* main: `dtrun-agent node ...`: runs one of the operations of remote_helper.h, or several (talk); those on a single
 * file (put, have, get, size, digest, same) are here. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/remote_helper/gpu_claims.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/workdir/contents.h"

/* put: stores a data file from stdin in CACHE/data/DIGEST/NAME.
 *
 * Prints "have" if the file already exists. Otherwise prints "from N", where N is the size of the
 * partial upload in CACHE/data/DIGEST.part, reads the rest from stdin, and checks the complete file
 * against DIGEST. A second upload of the same file waits for the first, and then finds the file.
 */

#define PIECE_BYTES 131072

/* Opens and locks the partial file. While this waits for the lock, another upload may rename the
 * file: then opens a new one. */
static dt_status open_part(int *fd, const char *part, dt_error *err)
{
    struct stat ours, there;

    for (;;) {
        *fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (*fd < 0 || flock(*fd, LOCK_EX) != 0 || fstat(*fd, &ours) != 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", part, strerror(errno));
        if (stat(part, &there) == 0 && there.st_ino == ours.st_ino)
            return DT_OK;
        close(*fd);
    }
}

/* Adds the existing bytes to the digest; discards a partial upload that is longer than the file. */
static dt_status read_part(int64_t *have, dt_digest *digest, int fd, int64_t bytes, dt_error *err)
{
    char piece[PIECE_BYTES];
    ssize_t got;

    *have = 0;
    while ((got = read(fd, piece, sizeof(piece))) > 0 && *have + got <= bytes) {
        dt_digest_add(digest, piece, (size_t)got);
        *have += got;
    }
    if (got == 0)
        return DT_OK;
    if (got < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read the partial upload: %s", strerror(errno));
    return DT_FAIL(err, DT_ERR_CORRUPT, "the partial upload is longer than the file");
}

static dt_status take_rest(int fd, dt_digest *digest, int64_t left, dt_error *err)
{
    char piece[PIECE_BYTES];
    dt_status st;

    while (left > 0) {
        ssize_t got = read(STDIN_FILENO, piece, sizeof(piece));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || got > left)
            return DT_FAIL(err, DT_ERR_PEER, "the upload was interrupted; it can be resumed");
        st = dt_file_write_all(fd, piece, (size_t)got, err);
        if (st != DT_OK)
            return st;
        dt_digest_add(digest, piece, (size_t)got);
        left -= got;
    }
    return fsync(fd) == 0 ? DT_OK : DT_FAIL(err, DT_ERR_IO, "cannot write: %s", strerror(errno));
}

/* With a folder as the target, its name does not identify the contents, so an existing file with another
 * digest is removed. */
static dt_status remove_other(const char *path, const char *wanted, int64_t bytes, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char hex[DT_DIGEST_SIZE] = "";
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    int64_t have;

    if (fd < 0)
        return DT_OK;
    DT_TRY(dt_digest_new(&digest, err));
    st = read_part(&have, digest, fd, bytes, NULL);
    if (st == DT_OK && have == bytes)
        dt_digest_get(hex, digest);
    st = DT_OK;
    if (strcmp(hex, wanted) != 0 && unlink(path) != 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot remove '%s': %s", path, strerror(errno));
out:
    dt_digest_free(digest);
    close(fd);
    return st;
}

/* Returns true for a file name without a path. In a folder that has other files, partial uploads
 * begin with a dot, so that such names are refused there (among_others). */
static bool is_name(const char *name, bool among_others)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && !(among_others && name[0] == '.');
}

static dt_status remote_helper_put(const char *wanted, int64_t bytes, const char *name,
                                   const char *into, dt_error *err)
{
    dt_strbuf cache, folder, part, path;
    char hex[DT_DIGEST_SIZE];
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    int64_t have = 0;
    int fd = -1;

    dt_strbuf_init(&cache);
    dt_strbuf_init(&folder);
    dt_strbuf_init(&part);
    dt_strbuf_init(&path);
    if (strlen(wanted) != DT_DIGEST_SIZE - 1 ||
        strspn(wanted, "0123456789abcdef") != strlen(wanted) || bytes < 0 ||
        !is_name(name, into != NULL))
        DT_THROW(err, DT_ERR_USAGE, "put: not a digest, a size and a name");
    DT_TRY(dt_remote_helper_cache(&cache, err));
    if (into != NULL) {
        dt_strbuf_add_str(&folder, into);
        dt_strbuf_add_fmt(&part, "%s/.%s.part", into, wanted);
    } else {
        dt_strbuf_add_fmt(&folder, "%s/data/%s", cache.data, wanted);
        dt_strbuf_add_fmt(&part, "%s.part", folder.data);
    }
    dt_strbuf_add_fmt(&path, "%s/%s", folder.data, name);
    DT_TRY(dt_file_make_dirs(folder.data, 0700, err));
    DT_TRY(open_part(&fd, part.data, err));
    if (into != NULL)
        DT_TRY(remove_other(path.data, wanted, bytes, err));
    if (dt_file_exists(path.data)) {
        unlink(part.data);
        (void)utimensat(AT_FDCWD, folder.data, NULL, 0); /* so that cache.c sees it as used */
        puts("have");
        goto out;
    }
    DT_TRY(dt_digest_new(&digest, err));
    st = read_part(&have, digest, fd, bytes, err);
    if (st == DT_ERR_CORRUPT)
        unlink(part.data);
    if (st != DT_OK)
        goto out;
    DT_TRY(dt_remote_helper_check_space(folder.data, bytes - have, err));
    printf("from %lld\n", (long long)have);
    fflush(stdout);
    DT_TRY(take_rest(fd, digest, bytes - have, err));
    dt_digest_get(hex, digest);
    if (strcmp(hex, wanted) != 0) {
        unlink(part.data); /* which bytes are wrong is unknown */
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' was damaged in transfer", name);
    }
    if (rename(part.data, path.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", part.data, strerror(errno));
    DT_TRY(dt_file_sync_dir(folder.data, err));
    puts("have");
out:
    dt_digest_free(digest);
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&cache);
    dt_strbuf_release(&folder);
    dt_strbuf_release(&part);
    dt_strbuf_release(&path);
    return st;
}

static dt_status print_have(const char *digest, const char *name, dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    DT_TRY(dt_remote_helper_cache(&path, err));
    dt_strbuf_add_fmt(&path, "/data/%s/%s", digest, name);
    if (dt_file_exists(path.data)) {
        *strrchr(path.data, '/') = '\0';
        (void)utimensat(AT_FDCWD, path.data, NULL, 0); /* so that cache.c sees it as used */
        puts("have");
    } else {
        puts("no");
    }
out:
    dt_strbuf_release(&path);
    return st;
}

/* --- operations */

static void print_size(const char *path)
{
    struct stat info;
    bool is_file = stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, R_OK) == 0;

    if (is_file)
        printf("%lld %llu %lld%09ld\n", (long long)info.st_size, (unsigned long long)info.st_ino,
               (long long)info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
    else
        puts("-1");
}

/* Prints the progress; false if the caller is gone. */
static bool report_position(void *unused, int64_t bytes)
{
    return printf("at %lld\n", (long long)bytes) > 0 && fflush(stdout) == 0;
}

static dt_status digest(const char *path, dt_error *err)
{
    char hex[DT_DIGEST_SIZE];
    dt_strbuf cache;
    dt_status st;

    dt_strbuf_init(&cache);
    DT_TRY(dt_remote_helper_cache(&cache, err));
    DT_TRY(dt_content_digest(hex, path, cache.data, NULL, report_position, NULL, err));
    printf("is %s\n", hex);
out:
    dt_strbuf_release(&cache);
    return st;
}

/* Prints whether this machine sees a file that the launch machine has just written, and can write
 * to its folder. */
static void print_same(const char *path, const char *text)
{
    dt_strbuf found, folder;
    const char *slash = strrchr(path, '/');

    dt_strbuf_init(&found);
    dt_strbuf_init(&folder);
    dt_strbuf_add(&folder, path, slash != NULL ? (size_t)(slash - path) : 0);
    puts(dt_file_read(&found, path, 4096, NULL) == DT_OK && strcmp(found.data, text) == 0 &&
                 access(folder.data, W_OK | X_OK) == 0
             ? "yes"
             : "no");
    dt_strbuf_release(&found);
    dt_strbuf_release(&folder);
}

/* told: prints first how many bytes follow. DT_ERR_PEER: the file became shorter after that. */
static dt_status get(const char *path, int64_t offset, bool told, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    dt_status st = DT_OK;
    struct stat info = {0};
    int64_t left;
    char piece[131072];
    ssize_t got = 0;

    if (fd < 0 || offset < 0 || lseek(fd, (off_t)offset, SEEK_SET) < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    left = info.st_size > offset ? info.st_size - offset : 0;
    if (told && (printf("%lld\n", (long long)left) < 0 || fflush(stdout) != 0))
        DT_THROW(err, DT_ERR_PEER, "cannot answer: %s", strerror(errno));
    while (left > 0 && (got = read(fd, piece, sizeof(piece))) > 0) {
        got = got < left ? got : (ssize_t)left;
        left -= got;
        DT_TRY(dt_file_write_all(STDOUT_FILENO, piece, (size_t)got, err));
    }
    if (left > 0)
        DT_THROW(err, told ? DT_ERR_PEER : DT_ERR_IO, "cannot read '%s': %s", path,
                 got < 0 ? strerror(errno) : "it became shorter");
out:
    if (fd >= 0)
        close(fd);
    return st;
}

/* Holds a flock on the folder until this process ends, which protects it from removal. A file system without flock
 * gives no protection. */
static dt_status hold(const char *path, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot hold '%s': %s", path, strerror(errno));
    (void)flock(fd, LOCK_SH);
    puts("held");
    return DT_OK;
}

/* Returns false if it is not an operation of a talk. */
static bool answer(dt_status *st, int argc, char **argv, dt_error *err)
{
    const char *name = argc > 0 ? argv[0] : "";

    *st = DT_OK;
    if (strcmp(name, "folder") == 0 && argc == 2)
        *st = dt_file_make_dirs(argv[1], 0700, err);
    else if (strcmp(name, "size") == 0 && argc == 2)
        print_size(argv[1]);
    else if (strcmp(name, "digest") == 0 && argc == 2)
        *st = digest(argv[1], err);
    else if (strcmp(name, "same") == 0 && argc == 3)
        print_same(argv[1], argv[2]);
    else if (strcmp(name, "have") == 0 && argc == 3)
        *st = print_have(argv[1], argv[2], err);
    else if (strcmp(name, "hold") == 0 && argc == 2)
        *st = hold(argv[1], err);
    else if (strcmp(name, "get") == 0 && argc == 3)
        *st = get(argv[1], strtoll(argv[2], NULL, 10), true, err);
    else
        return false;
    return true;
}

enum { TALK_WORDS_MAX = 8 };

/* Reads the words of the next request, which the caller frees. Returns 0 at the end of stdin. */
static int next_request(char **words, int most)
{
    size_t room = 0;
    int count = 0;

    while (count < most && getdelim(&words[count], &room, '\0', stdin) > 1) {
        room = 0;
        count++;
    }
    return count;
}

static dt_status talk(dt_error *err)
{
    char *words[TALK_WORDS_MAX + 1];
    int count;

    do {
        dt_error problem = DT_ERROR_INIT;
        dt_status st = DT_OK;

        memset(words, 0, sizeof(words));
        count = next_request(words, TALK_WORDS_MAX);
        if (count > 0 && !answer(&st, count, words, &problem))
            st = DT_FAIL(&problem, DT_ERR_USAGE, "no such operation in a talk: %s", words[0]);
        for (int i = 0; i <= TALK_WORDS_MAX; i++)
            free(words[i]);
        if (st == DT_ERR_PEER) /* the rest of the answer would be taken for the file */
            return DT_FAIL(err, st, "%s", problem.message);
        for (char *c = problem.message; *c != '\0'; c++)
            *c = *c == '\n' ? ' ' : *c; /* of a path */
        if (count > 0 &&
            (printf(DT_TALK_END "%d %s\n", st != DT_OK, st != DT_OK ? problem.message : "") < 0 ||
             fflush(stdout) != 0))
            return DT_FAIL(err, DT_ERR_IO, "cannot answer: %s", strerror(errno));
    } while (count > 0);
    return DT_OK;
}

static dt_status run(int argc, char **argv, dt_error *err)
{
    const char *name = argc > 0 ? argv[0] : "";

    if (strcmp(name, "talk") == 0 && argc == 1)
        return talk(err);
    if (strcmp(name, "probe") == 0 && (argc == 2 || argc == 3))
        return dt_remote_helper_probe(argv[1], argc == 3 ? argv[2] : NULL, err);
    if (strcmp(name, "collect") == 0 && argc == 2)
        return dt_remote_helper_collect(argv[1], err);
    if (strcmp(name, "end_setup") == 0 && argc == 2)
        return dt_remote_helper_end_setup(argv[1], err);
    if (strcmp(name, "setup") == 0 && argc == 3)
        return dt_remote_helper_setup(argv[1], argv[2], err);
    if (strcmp(name, "tree") == 0 && (argc == 2 || argc == 3))
        return dt_remote_helper_tree(argv[1], argc == 3 ? argv[2] : "build", err);
    if (strcmp(name, "receive") == 0 && argc == 2)
        return dt_remote_helper_receive(argv[1], err);
    if (strcmp(name, "alike") == 0 && argc == 1)
        return dt_remote_helper_dedup(err);
    if (strcmp(name, "put") == 0 && (argc == 4 || argc == 5))
        return remote_helper_put(argv[1], strtoll(argv[2], NULL, 10), argv[3],
                                 argc == 5 ? argv[4] : NULL, err);
    if (strcmp(name, "get") == 0 && argc == 3)
        return get(argv[1], strtoll(argv[2], NULL, 10), false, err);
    if (strcmp(name, "forget") == 0 && argc == 4)
        return dt_remote_helper_forget(argv[1], argv[2], argv[3], err);
    if (strcmp(name, "wipe") == 0 && argc == 2)
        return dt_remote_helper_wipe(argv[1], err);
    if (strcmp(name, "gpus") == 0 && argc == 1)
        return dt_remote_helper_gpus(false, err);
    if (strcmp(name, "gpus") == 0 && argc == 2 && strcmp(argv[1], "watch") == 0)
        return dt_remote_helper_gpus(true, err);
    if (strcmp(name, "leave") == 0 && argc == 1)
        return dt_remote_helper_leave(err);
    if (strcmp(name, "look") == 0 && argc == 3)
        return dt_remote_helper_look(argv[1], argv[2]);
    if (strcmp(name, "listen") == 0 && argc == 2)
        return dt_remote_helper_listen(argv[1], err);
    if (strcmp(name, "dial") == 0 && argc >= 3 && argc % 2 == 1)
        return dt_remote_helper_dial((argc - 1) / 2, argv + 1, err);
    return DT_FAIL(err, DT_ERR_USAGE, "no such operation: node %s", name);
}

int dt_remote_helper_main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    signal(SIGPIPE, SIG_IGN);
    st = run(argc, argv, &err);
    if (st == DT_OK && fflush(stdout) != 0)
        st = DT_FAIL(&err, DT_ERR_IO, "cannot answer: %s", strerror(errno));
    if (st != DT_OK)
        fprintf(stderr, "%s\n", err.message);
    return st == DT_OK                ? 0
           : st == DT_ERR_USAGE       ? 2
           : st == DT_ERR_UNSUPPORTED ? DT_REMOTE_HELPER_CONFLICT
                                      : 3;
}
