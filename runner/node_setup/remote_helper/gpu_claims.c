/* gpu_claims: takes, answers and reads claims of GPUs. */
#include "runner/node_setup/remote_helper/gpu_claims.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/file.h"

#define NAME          "dtrun-gpu/"
#define LINE_BYTES    1024
#define FD_LEAST      200 /* above the descriptors that programs choose themselves */
#define BACKLOG       64
#define ANSWER_SECOND 1
#define DAY_MS        (12 * 3600000LL)
#define DRIVER_GPUS   "/proc/driver/nvidia/gpus"
#define FILE_BYTES    ((size_t)64 << 10)

/* --- sockets */

static socklen_t address_of(struct sockaddr_un *out, const char *key)
{
    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, NAME "%.*s",
                                        DT_CLAIM_KEY_SIZE - 1, key));
}

dt_status dt_claim_take(int *fd, const char *key, dt_error *err)
{
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), high;
    struct sockaddr_un address;
    socklen_t length = address_of(&address, key);
    dt_status st = DT_OK;

    *fd = -1;
    if (made >= 0 && (high = fcntl(made, F_DUPFD_CLOEXEC, FD_LEAST)) >= 0) {
        close(made);
        made = high;
    }
    if (made < 0 || bind(made, (struct sockaddr *)&address, length) != 0 ||
        listen(made, BACKLOG) != 0)
        DT_THROW(err, errno == EADDRINUSE ? DT_ERR_BUSY : DT_ERR_IO, "cannot claim GPU %s: %s", key,
                 strerror(errno));
    *fd = made;
    made = -1;
out:
    if (made >= 0)
        close(made);
    return st;
}

static bool is_of_us(int connection)
{
    socklen_t length = sizeof(struct ucred);
    struct ucred peer;

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           peer.uid == getuid();
}

/* Sends the line, with the descriptor `given` unless it is -1. */
static void send_line(int connection, const char *line, int given)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = {{0}};
    struct iovec text = {.iov_base = (char *)line, .iov_len = strlen(line)};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    struct cmsghdr *head;

    if (given >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &given, sizeof(given));
    }
    (void)sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void dt_claim_answer(int fd, const char *line)
{
    for (int i = 0; i < BACKLOG; i++) {
        int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (connection < 0)
            return;
        send_line(connection, line, is_of_us(connection) ? fd : -1);
        close(connection);
    }
}

/* Receives a line; *given: the descriptor that came with it, or -1. Returns false if none came in time. */
static bool receive_line(char line[LINE_BYTES], int *given, int connection)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control;
    struct iovec text = {.iov_base = line, .iov_len = LINE_BYTES - 1};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct timeval patience = {.tv_sec = ANSWER_SECOND};
    struct cmsghdr *head;
    ssize_t got;

    *given = -1;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    do
        got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return false;
    line[got] = '\0';
    head = CMSG_FIRSTHDR(&message);
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(given, CMSG_DATA(head), sizeof(*given));
    return true;
}

void dt_claim_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* --- who */

/* Copies text of other users: printable, and cut to fit. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t at = 0;

    for (; text != NULL && *text != '\0' && at + 1 < size; text++)
        if ((unsigned char)*text >= ' ' && (unsigned char)*text < 0x7f)
            out[at++] = *text;
    out[at] = '\0';
}

/* The name of a user in the file of users: a static program cannot ask a directory service. */
static void name_user(char *out, size_t size, uid_t uid, const char *otherwise)
{
    FILE *users = fopen("/etc/passwd", "re");
    const struct passwd *user = NULL;

    while (users != NULL && (user = fgetpwent(users)) != NULL && user->pw_uid != uid)
        ;
    if (user != NULL)
        copy_text(out, size, user->pw_name);
    else if (otherwise != NULL && otherwise[0] != '\0')
        copy_text(out, size, otherwise);
    else
        snprintf(out, size, "user %lld", (long long)uid);
    if (users != NULL)
        fclose(users);
}

void dt_claim_user(char *out, size_t size, uid_t uid)
{
    name_user(out, size, uid, NULL);
}

static void since_text(char *out, size_t size, int64_t ms)
{
    int64_t age_ms = dt_clock_wall_ms() - ms;
    time_t seconds = (time_t)(ms / 1000);
    struct tm when;

    out[0] = '\0';
    if (ms > 0 && localtime_r(&seconds, &when) != NULL)
        strftime(out, size,
                 age_ms >= 0 && age_ms < DAY_MS ? ", since %H:%M" : ", since %Y-%m-%d %H:%M",
                 &when);
}

static void describe(dt_claim_holder *out, const struct ucred *peer, const char *line)
{
    json_t *told = NULL;
    char user[64], since[40];

    if (line != NULL)
        (void)dt_json_parse(&told, line, strlen(line), "a claim", NULL);
    copy_text(out->run, sizeof(out->run), json_string_value(json_object_get(told, "run")));
    copy_text(out->owner, sizeof(out->owner), json_string_value(json_object_get(told, "owner")));
    name_user(user, sizeof(user), peer->uid, json_string_value(json_object_get(told, "user")));
    since_text(since, sizeof(since), json_integer_value(json_object_get(told, "since_ms")));
    if (out->run[0] != '\0')
        snprintf(out->who, sizeof(out->who), "%s (run %s%s)", user, out->run, since);
    else
        snprintf(out->who, sizeof(out->who), "%s (a claim of pid %lld, which does not answer)",
                 user, (long long)peer->pid);
    json_decref(told);
}

/* Returns 0 if connected, else errno. */
static int connect_to(int connection, const char *key)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, key);

    return connect(connection, (struct sockaddr *)&address, length) == 0 ? 0 : errno;
}

bool dt_claim_ask(dt_claim_holder *out, const char *key)
{
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred peer = {0};
    socklen_t length = sizeof(peer);
    char line[LINE_BYTES];
    bool heard;
    int problem;

    *out = (dt_claim_holder){.uid = (uid_t)-1, .shared = -1};
    snprintf(out->who, sizeof(out->who), "a program that does not answer");
    if (connection < 0)
        return false;
    problem = connect_to(connection, key);
    if (problem == 0 && getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0) {
        fcntl(connection, F_SETFL, fcntl(connection, F_GETFL) & ~O_NONBLOCK);
        heard = receive_line(line, &out->shared, connection);
        out->uid = peer.uid;
        describe(out, &peer, heard ? line : NULL);
    }
    close(connection);
    return problem != ECONNREFUSED && problem != ENOENT;
}

/* --- GPUs of this machine */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_bus(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

void dt_claim_uuid(char uuid[DT_CLAIM_KEY_SIZE], int64_t gpu)
{
    static const char label[] = "GPU UUID:";
    struct dirent **buses = NULL;
    int count = scandir(DRIVER_GPUS, &buses, is_bus, by_name); /* in the order of the buses */
    dt_strbuf path, text;
    const char *at;

    uuid[0] = '\0';
    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    if (gpu >= 0 && gpu < count) {
        dt_strbuf_add_fmt(&path, DRIVER_GPUS "/%s/information", buses[gpu]->d_name);
        if (dt_file_read(&text, path.data, FILE_BYTES, NULL) == DT_OK &&
            (at = strstr(text.data, label)) != NULL) {
            at += sizeof(label) - 1;
            at += strspn(at, " \t");
            snprintf(uuid, DT_CLAIM_KEY_SIZE, "%.*s", (int)strcspn(at, " \t\n"), at);
        }
    }
    if (strchr(uuid, '?') != NULL) /* the driver has not read it yet */
        uuid[0] = '\0';
    for (int i = 0; i < count; i++)
        free(buses[i]);
    free(buses);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
}
