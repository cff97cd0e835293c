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
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/transfer/content.h"

dt_status dt_remote_helper_folder(const char *path, dt_error *err)
{
    dt_status st = dt_file_make_dirs(path, 0700, err);
    char absolute[PATH_MAX];

    if (st != DT_OK)
        return st;
    if (realpath(path, absolute) == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot use '%s': %s", path, strerror(errno));
    puts(absolute);
    return DT_OK;
}

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
static bool tell_at(void *unused, int64_t bytes)
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
    DT_TRY(dt_content_digest(hex, path, cache.data, NULL, tell_at, NULL, err));
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

static dt_status get(const char *path, int64_t offset, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    dt_status st = DT_OK;
    char piece[131072];
    ssize_t got;

    if (fd < 0 || offset < 0 || lseek(fd, (off_t)offset, SEEK_SET) < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    while ((got = read(fd, piece, sizeof(piece))) > 0)
        DT_TRY(dt_file_write_all(STDOUT_FILENO, piece, (size_t)got, err));
    if (got < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
out:
    if (fd >= 0)
        close(fd);
    return st;
}

/* Holds a flock on the folder until stdin ends, which protects it from removal. A file system without flock gives no
 * protection. */
static dt_status hold(const char *path, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char bytes[64];

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot hold '%s': %s", path, strerror(errno));
    (void)flock(fd, LOCK_SH);
    puts("held");
    fflush(stdout);
    while (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0)
        ;
    close(fd);
    return DT_OK;
}

static dt_status run(int argc, char **argv, dt_error *err)
{
    const char *name = argc > 0 ? argv[0] : "";

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
        return dt_remote_helper_put(argv[1], strtoll(argv[2], NULL, 10), argv[3],
                                    argc == 5 ? argv[4] : NULL, err);
    if (strcmp(name, "get") == 0 && argc == 3)
        return get(argv[1], strtoll(argv[2], NULL, 10), err);
    if (strcmp(name, "hold") == 0 && argc == 2)
        return hold(argv[1], err);
    if (strcmp(name, "folder") == 0 && argc == 2)
        return dt_remote_helper_folder(argv[1], err);
    if (strcmp(name, "size") == 0 && argc == 2) {
        print_size(argv[1]);
        return DT_OK;
    }
    if (strcmp(name, "digest") == 0 && argc == 2)
        return digest(argv[1], err);
    if (strcmp(name, "same") == 0 && argc == 3) {
        print_same(argv[1], argv[2]);
        return DT_OK;
    }
    if (strcmp(name, "forget") == 0 && argc == 4)
        return dt_remote_helper_forget(argv[1], argv[2], argv[3], err);
    if (strcmp(name, "wipe") == 0 && argc == 2)
        return dt_remote_helper_wipe(argv[1], err);
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
